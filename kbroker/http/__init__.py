"""The HTTP door, for everybody who does not speak Kafka's protocol. Loaded with its first connection."""
