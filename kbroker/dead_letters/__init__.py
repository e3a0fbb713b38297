"""Records that could not be processed, in topics of their own."""
