"""A Kafka for tests: ready in a fraction of a second, gone with the test, and it fails when told to.

    with KafkaBroker(topics={"orders": 3}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

With pytest nothing needs importing: the fixtures kafka_broker, kafka_bootstrap and kafka_topic are there.
"""

from kbroker.testing.broker import BrokerFailed, KafkaBroker, Record, Request

__all__ = ["BrokerFailed", "KafkaBroker", "Record", "Request"]
