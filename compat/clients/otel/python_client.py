"""A producer or consumer as users write it, with OpenTelemetry's instrumentation, in a process of its own.

python -m compat.clients.otel.python_client kafka-python|confluent produce|consume BOOTSTRAP TOPIC RECEIVER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import kafka
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor
from opentelemetry.instrumentation.kafka import KafkaInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


@contextmanager
def exporting(service: str, receiver: str) -> Iterator[None]:
    provider = TracerProvider(resource=Resource({"service.name": service}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{receiver}/v1/traces")))
    trace.set_tracer_provider(provider)
    yield
    provider.shutdown()


def produce_by_kafka_python(bootstrap: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(topic, b"value", key=b"key")
    producer.flush(20)
    producer.close()


def consume_by_kafka_python(bootstrap: str, topic: str) -> None:
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id="readers", auto_offset_reset="earliest"
    )
    next(consumer)
    consumer.close()


def produce_by_confluent(bootstrap: str, topic: str) -> None:
    producer = ConfluentKafkaInstrumentor().instrument_producer(
        confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    )
    producer.produce(topic, b"value", key=b"key")
    producer.flush(20)


def consume_by_confluent(bootstrap: str, topic: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer: Any = ConfluentKafkaInstrumentor().instrument_consumer(confluent_kafka.Consumer(settings))
    consumer.subscribe([topic])
    while consumer.poll(1) is None:
        pass
    consumer.poll(0)  # ends the span of the record before
    consumer.close()


CLIENTS = {
    ("kafka-python", "produce"): produce_by_kafka_python,
    ("kafka-python", "consume"): consume_by_kafka_python,
    ("confluent", "produce"): produce_by_confluent,
    ("confluent", "consume"): consume_by_confluent,
}


def main() -> None:
    library, action, bootstrap, topic, receiver = sys.argv[1:]
    with exporting(f"{library}-{action}", receiver):
        if library == "kafka-python":
            KafkaInstrumentor().instrument()
        CLIENTS[library, action](bootstrap, topic)


if __name__ == "__main__":
    main()
