"""The HTTP API of Confluent's REST Proxy, so that its clients need not change."""
