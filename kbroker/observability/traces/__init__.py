"""Traces: spans of what happens to records, for topics that ask for it (docs/traces.md, adr/0045).

A log whose topic is not traced has no LogTrace, and nothing here is loaded.
"""
