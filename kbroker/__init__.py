"""kbroker: Kafka without the JVM."""

__version__ = "0.1.0"
