"""The catalog: topics, configs, facts, offsets, group and transaction state, which outlive the process.

``interface`` is all that the broker knows of it; ``sqlite`` keeps it in one SQLite database and two journals,
``memory`` only as long as the process lives.
"""
