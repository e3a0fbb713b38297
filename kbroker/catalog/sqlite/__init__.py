"""A catalog in one SQLite database in the data directory, with journals beside it.

One module per concern; ``database`` owns the connection and the writer thread. Nothing else knows SQLite: its
errors leave this package as those of kbroker.catalog.errors.
"""
