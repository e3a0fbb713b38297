"""Streams: the records of a topic as they come, as server-sent events and by WebSocket."""
