"""What clients push about themselves (KIP-714): read, kept for /metrics, handed on by OTLP.

Which client is asked for what is the matter of kbroker.telemetry.
"""
