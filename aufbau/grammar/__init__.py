"""The `.auf` notation: model, reader, load checks, compilation and rendering."""
