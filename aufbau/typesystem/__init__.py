"""Terms, unification, contexts and the type fragment of a grammar."""
