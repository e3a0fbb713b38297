"""One broker for a test case, with nothing but the standard library and a client."""

import unittest

from confluent_kafka import Consumer, Producer

from kbroker.testing import KafkaBroker


class OrdersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(
            KafkaBroker(topics={"orders": 2}, configs={"log.retention.ms": "3600000"})
        )

    def setUp(self):
        self.broker.heal()

    def test_every_record_is_delivered(self):
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers})
        for number in range(10):
            producer.produce("orders", str(number), key=str(number))
        self.assertEqual(producer.flush(10), 0)

        values = sorted(int(record.value) for record in self.broker.records("orders"))
        self.assertEqual(values, list(range(10)))

    def test_a_slow_broker_is_waited_for(self):
        self.broker.delay(api="Metadata", ms=300, times=1)
        settings = {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "billing"}
        consumer = Consumer(settings)

        topics = consumer.list_topics(timeout=10).topics

        consumer.close()
        self.assertIn("orders", topics)

    def test_what_the_client_asked_is_known(self):
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers, "client.id": "shop"})
        producer.list_topics(timeout=10)

        asked = {request.api for request in self.broker.requests if request.client_id == "shop"}
        self.assertIn("Metadata", asked)


if __name__ == "__main__":
    unittest.main()
