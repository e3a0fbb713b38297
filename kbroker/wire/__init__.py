"""Kafka frames explained: from bytes, from captured packets, or live between a client and a broker.

Loads construct: only `kbroker wire` imports it.
"""
