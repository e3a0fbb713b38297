"""The catalog: topics, configs, offsets, group and transaction state, kept in one SQLite database.

One module per concern; ``database`` owns the connection and the writer thread. No SQLite idiom leaves this
package.
"""
