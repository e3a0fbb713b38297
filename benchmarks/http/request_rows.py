"""What one request costs: records published in every way there is, and fetched in every form.

The limits of the same run: uvicorn alone, which answers 200 and does nothing, and Kafka's protocol, which
carries the same records in one Produce or Fetch.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.compare.brokers import Meter
from benchmarks.compare.measures import new_topic, remove_topics
from benchmarks.http import client
from benchmarks.http.bare import Bare, bare_application
from benchmarks.http.brokers import HttpBroker
from benchmarks.raw import fetch_frame, frame_of_records

Numbers = dict[str, float]
MIB = 2**20
_JSON = "application/json"
_MANY = 100  # records of a batch
_STORED = 1000  # records of a topic that is read, and of an answer
_VALUE = bytes(range(256))[:100]
_DOCUMENT = {"amount": 12, "name": "x" * 77}  # 100 bytes as compact JSON


class Load(NamedTuple):
    name: str
    asked: Callable[[HttpBroker, str], bytes]
    """What is sent again and again, made for a topic."""
    messages: int
    """Of each request."""
    requests: int
    records: tuple[bytes, ...] = ()
    """What the topic has before."""
    take: client.Take = client.take_answer
    by_kafka: bool = False


def run(load: Load, broker: HttpBroker, scale: float) -> Numbers:
    topic = new_topic(broker)
    if load.records:
        frame = frame_of_records(topic, 0, list(load.records), -1)
        client.pump(broker.address, frame, 1, client.take_frame)
    address = broker.address if load.by_kafka else broker.http_address
    numbers = _measured(broker, address, load.asked(broker, topic), load, scale)
    remove_topics(broker)
    return numbers


def run_limit(scale: float) -> Numbers:
    """Of the first load."""
    with bare_application() as bare:
        asked = client.request("POST", "/topics/t/partitions/0", _VALUE)
        return _measured(bare, bare.address, asked, LOADS[0], scale)


def _measured(
    process: HttpBroker | Bare, address: client.Address, asked: bytes, load: Load, scale: float
) -> Numbers:
    count = max(20, int(load.requests * scale))
    client.pump(address, asked, max(10, count // 5), load.take)
    meter = Meter(process)
    seconds, size = client.pump(address, asked, count, load.take)
    cpu = meter.cpu_seconds
    return {
        "requests_per_s": count / seconds,
        "messages_per_s": count * load.messages / seconds,
        "cpu_us_per_request": cpu / count * 1e6,
        "cpu_us_per_message": cpu / count / load.messages * 1e6,
        "answered_mb_per_s": size / MIB / seconds,
    }


# published


def _post(path: str, body: bytes, content_type: str = _JSON) -> Callable[[HttpBroker, str], bytes]:
    def asked(broker: HttpBroker, topic: str) -> bytes:
        cluster_id = broker.cluster_id() if "{cluster}" in path else ""
        filled = path.format(topic=topic, cluster=cluster_id)
        return client.request("POST", filled, body, content_type=content_type)

    return asked


def _produce(count: int) -> Callable[[HttpBroker, str], bytes]:
    return lambda broker, topic: frame_of_records(topic, 0, [_VALUE] * count, -1)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _base64() -> str:
    return b64encode(_VALUE).decode()


_RECORDS = [{"key": f"key-{number}", "value": _DOCUMENT} for number in range(_MANY)]
_V3_RECORD = {"value": {"type": "JSON", "data": _DOCUMENT}}
_BINARY = "application/vnd.kafka.binary.v2+json"
_TO_TOPIC = "/topics/{topic}/messages"
_TO_PARTITION = "/topics/{topic}/partitions/0"
_V3_RECORDS = "/v3/clusters/{cluster}/topics/{topic}/records"

# fetched


def _get(accept: str, query: str = "") -> Callable[[HttpBroker, str], bytes]:
    return lambda broker, topic: client.request(
        "GET", f"/topics/{topic}/partitions/0/fetch?offset=0{query}", accept=accept
    )


_OF_JSON = (_json(_DOCUMENT),) * _STORED
_LARGE = (bytes(900_000),)

LOADS: tuple[Load, ...] = (
    Load("publish 100 B, raw", _post(_TO_PARTITION, _VALUE, "application/octet-stream"), 1, 20_000),
    Load("publish 100 B, JSON", _post(_TO_TOPIC, _json(_RECORDS[0])), 1, 20_000),
    Load("publish 100 × 100 B, JSON", _post(_TO_TOPIC, _json(_RECORDS)), _MANY, 2_000),
    Load(
        "publish 100 × 100 B, base64, atomic",
        _post(f"{_TO_PARTITION}/batch", _json({"records": [_base64()] * _MANY})),
        _MANY,
        2_000,
    ),
    Load(
        "REST Proxy v2, 100 × 100 B, base64",
        _post("/topics/{topic}", _json({"records": [{"value": _base64()}] * _MANY}), _BINARY),
        _MANY,
        2_000,
    ),
    Load(
        "REST Proxy v3, 100 B, JSON",
        _post(_V3_RECORDS, _json(_V3_RECORD)),
        1,
        10_000,
        take=client.take_chunked_answer,
    ),
    Load(
        "REST Proxy v3, 100 × 100 B, JSON",
        _post(_V3_RECORDS, _json(_V3_RECORD) * _MANY),
        _MANY,
        1_000,
        take=client.take_chunked_answer,
    ),
    Load("fetch 1,000 × 100 B, JSON", _get(_JSON), _STORED, 100, _OF_JSON),
    Load("fetch 1,000 × 100 B, NDJSON", _get("application/x-ndjson"), _STORED, 100, _OF_JSON),
    Load(
        "fetch 1,000 × 100 B, length-prefixed",
        _get("application/vnd.kbroker.length-prefixed"),
        _STORED,
        300,
        _OF_JSON,
    ),
    Load("fetch 900 KB, raw", _get("application/octet-stream", "&raw=1"), 1, 1_000, _LARGE),
    Load("Produce 100 B", _produce(1), 1, 20_000, take=client.take_frame, by_kafka=True),
    Load("Produce 100 × 100 B", _produce(_MANY), _MANY, 20_000, take=client.take_frame, by_kafka=True),
    Load(
        "Fetch 1,000 × 100 B",
        lambda broker, topic: fetch_frame(topic, MIB),
        _STORED,
        2_000,
        _OF_JSON,
        client.take_frame,
        by_kafka=True,
    ),
    Load(
        "Fetch 900 KB",
        lambda broker, topic: fetch_frame(topic, MIB),
        1,
        2_000,
        _LARGE,
        client.take_frame,
        by_kafka=True,
    ),
)
