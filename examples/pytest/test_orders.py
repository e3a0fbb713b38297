"""A service that writes orders to Kafka, and its tests.

The fixtures kafka_broker, kafka_bootstrap and kafka_topic come with kbroker: nothing to import or configure.
"""

import json

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError


class OrderService:
    def __init__(self, bootstrap, topic):
        self._topic = topic
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap, request_timeout_ms=2000, delivery_timeout_ms=5000
        )

    def place(self, customer, amount):
        order = json.dumps({"customer": customer, "amount": amount}).encode()
        return self._producer.send(self._topic, order, key=customer.encode()).get(timeout=10)

    def close(self):
        self._producer.close()


@pytest.fixture
def service(kafka_bootstrap, kafka_topic):
    service = OrderService(kafka_bootstrap, kafka_topic)
    yield service
    service.close()


def test_an_order_is_keyed_by_its_customer(service, kafka_broker, kafka_topic):
    service.place("ada", 12)

    (record,) = kafka_broker.records(kafka_topic)
    assert record.key == b"ada"
    assert json.loads(record.value) == {"customer": "ada", "amount": 12}


def test_orders_are_read_in_their_order(service, kafka_bootstrap, kafka_topic):
    for amount in range(5):
        service.place("ada", amount)

    consumer = KafkaConsumer(
        kafka_topic,
        bootstrap_servers=kafka_bootstrap,
        group_id=kafka_topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=5000,
    )
    amounts = [json.loads(next(consumer).value)["amount"] for _ in range(5)]
    consumer.close()
    assert amounts == [0, 1, 2, 3, 4]


def test_an_order_survives_a_broker_that_is_not_the_leader_for_a_moment(service, kafka_broker, kafka_topic):
    kafka_broker.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)

    service.place("ada", 1)

    assert len(kafka_broker.records(kafka_topic)) == 1


def test_an_order_survives_dropped_connections(service, kafka_broker, kafka_topic):
    service.place("ada", 1)
    kafka_broker.drop_connections()

    service.place("ada", 2)

    assert len(kafka_broker.records(kafka_topic)) == 2


def test_a_refusal_reaches_the_caller(service, kafka_broker):
    kafka_broker.fail(api="Produce", error="TOPIC_AUTHORIZATION_FAILED")

    with pytest.raises(KafkaError):
        service.place("ada", 1)
