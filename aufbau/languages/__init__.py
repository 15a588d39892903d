"""The grammars that come with the package."""
