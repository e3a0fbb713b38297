"""Consumers inside the broker, for those who do not speak Kafka's protocol: HTTP, gRPC, code in the process.

`Consumers` (registry.py) makes and finds them, `Consumer` (consumer.py) is one.
"""
