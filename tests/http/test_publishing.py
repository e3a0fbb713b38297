"""Records published by HTTP, read by Kafka's own client."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess

_numbers = count()


@pytest.fixture
def topic(http: HttpClient) -> str:
    return made(http)


def made(http: HttpClient, partitions: int = 1, **configs: str) -> str:
    name = f"publish-{next(_numbers)}"
    assert http.post("/topics", {"name": name, "partitions": partitions, "configs": configs}).status == 201
    return name


@pytest.fixture
def consumer(server: ServerProcess) -> Iterator[KafkaConsumer]:
    with KafkaConsumerContext(server) as consumer:
        yield consumer


class KafkaConsumerContext:
    def __init__(self, server: ServerProcess) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=server.bootstrap, isolation_level="read_committed", enable_auto_commit=False
        )

    def __enter__(self) -> KafkaConsumer:
        return self._consumer

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


def read(consumer: KafkaConsumer, topic: str, partition: int = 0) -> list[Any]:
    """All records up to the end of what is committed."""
    at = TopicPartition(topic, partition)
    consumer.assign([at])
    consumer.seek_to_beginning(at)
    end = consumer.end_offsets([at])[at]
    found: list[Any] = []
    while consumer.position(at) < end:
        for records in consumer.poll(1000).values():
            found += records
    return found


def values(consumer: KafkaConsumer, topic: str, partition: int = 0) -> list[Any]:
    return [record.value for record in read(consumer, topic, partition)]


def test_a_body_becomes_the_value_of_a_record(http: HttpClient, consumer: KafkaConsumer, topic: str) -> None:
    body = bytes(range(256))
    answer = http.ask("POST", f"/topics/{topic}/partitions/0?key=k&timestamp=1700000000000", body)
    assert answer.status == 200
    assert answer.json == {"topic": topic, "partition": 0, "offset": 0, "timestamp": 1700000000000}
    assert http.ask("POST", f"/api/v1/topics/{topic}/partitions/0", b"").json["offset"] == 1
    first, second = read(consumer, topic)
    assert (first.key, first.value, first.timestamp) == (b"k", body, 1700000000000)
    assert (second.key, second.value) == (None, b"")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_json_records_with_every_codec(
    http: HttpClient, consumer: KafkaConsumer, topic: str, codec: str
) -> None:
    given = [
        {"key": "ada", "value": {"amount": 12}, "headers": {"trace": "a1"}},
        {"keyBase64": base64.b64encode(b"\xff").decode(), "valueText": "two", "timestamp": 5},
        {"value": None},
    ]
    answer = http.post(f"/topics/{topic}/messages?codec={codec}", given)
    assert answer.status == 200
    assert [each["offset"] for each in answer.json["records"]] == [0, 1, 2]
    first, second, third = read(consumer, topic)
    assert (first.key, json.loads(first.value), first.headers) == (
        b"ada",
        {"amount": 12},
        [("trace", b"a1")],
    )
    assert (second.key, second.value, second.timestamp) == (b"\xff", b"two", 5)
    assert third.value is None


def test_one_record_is_answered_as_one(http: HttpClient, consumer: KafkaConsumer, topic: str) -> None:
    answer = http.post(f"/topics/{topic}/messages", {"value": 1, "codec": "zstd"})
    assert (answer.status, answer.json["offset"]) == (200, 0)
    answer = http.post("/messages", {"topic": topic, "value": 2})
    assert (answer.status, answer.json["topic"], answer.json["offset"]) == (200, topic, 1)
    assert values(consumer, topic) == [b"1", b"2"]


def test_keys_choose_the_partitions_that_javas_producer_would(http: HttpClient) -> None:
    topic = made(http, 4)
    answer = http.post(f"/topics/{topic}/messages", [{"key": key, "value": 1} for key in ("21", "foobar")])
    assert [each["partition"] for each in answer.json["records"]] == [0, 2]


def test_records_of_several_topics_and_what_became_of_each(http: HttpClient, topic: str) -> None:
    other = made(http)
    answer = http.post(
        "/messages",
        [
            {"topic": topic, "value": 1},
            {"topic": other, "value": 2, "partition": 7},
            {"topic": other, "value": 3},
            {"topic": "no such topic", "value": 4},
        ],
    )
    assert answer.status == 207
    first, second, third, fourth = answer.json["records"]
    assert (first["topic"], first["offset"], third["topic"], third["offset"]) == (topic, 0, other, 0)
    assert second["problem"]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert fourth["problem"]["error"] == "INVALID_TOPIC_EXCEPTION"


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        ("messages", [{"value": 1}, {"value": 1, "valueText": "a"}], 400, "records[1].valueText"),
        ("messages", {"key": "a"}, 400, "a value is expected"),
        ("messages", [], 400, "no records"),
        ("messages", 7, 400, "JSON object"),
        ("messages", {"value": 1, "codec": "brotli"}, 400, "codec must be one of"),
        ("messages?acks=2", {"value": 1}, 400, "acks"),
        ("messages", {"value": 1, "partition": 9}, 404, ""),
        ("partitions/0/batch", {"records": ["=="]}, 400, "records[0]"),
        ("partitions/0/batch", {"records": []}, 400, "no records"),
        ("partitions/0/batch", {"records": [{"value": 1, "partition": 1}]}, 400, "records[0].partition"),
        ("partitions/9/batch", {"records": [""]}, 404, ""),
        ("partitions/0/batch?acks=0", {"records": [""]}, 400, "acks"),
        ("messages", {"value": "x" * 2_000_000}, 413, "max.message.bytes"),
        ("messages", {"value": 1, "timestamp": 2**62}, 422, ""),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(
    http: HttpClient, consumer: KafkaConsumer, topic: str, path: str, body: Any, status: int, detail: str
) -> None:
    answer = http.post(f"/topics/{topic}/{path}", body)
    assert (answer.status, answer.media_type) == (status, "application/problem+json"), answer
    assert detail in answer.json["detail"]
    assert values(consumer, topic) == []


def test_a_long_list_is_taken_and_what_is_wrong_at_its_end_is_told(
    http: HttpClient, consumer: KafkaConsumer, topic: str
) -> None:
    given: list[Any] = [{"value": number} for number in range(20_000)]
    answer = http.post(f"/topics/{topic}/messages", given)
    assert [each["offset"] for each in answer.json["records"]] == list(range(20_000))
    assert values(consumer, topic) == [str(number).encode() for number in range(20_000)]
    answer = http.post(f"/topics/{topic}/messages", [*given, {}])
    assert (answer.status, "records[20000]" in answer.json["detail"]) == (400, True)
    body = json.dumps(given)[:-1] + ",}"
    assert http.ask("POST", f"/topics/{topic}/messages", body).status == 400


# all or nothing


def test_a_batch_for_one_partition_is_one(http: HttpClient, consumer: KafkaConsumer, topic: str) -> None:
    given = {"records": [base64.b64encode(b"a").decode(), {"valueText": "b"}]}
    answer = http.post(f"/topics/{topic}/partitions/0/batch", given)
    assert (answer.status, [each["offset"] for each in answer.json["records"]]) == (200, [0, 1])
    assert values(consumer, topic) == [b"a", b"b"]


def test_a_batch_that_is_too_large_for_one_is_a_transaction(
    http: HttpClient, consumer: KafkaConsumer
) -> None:
    topic = made(http, **{"max.message.bytes": "10000"})
    given = {"records": [{"valueText": str(number) * 4000} for number in range(8)]}
    answer = http.post(f"/topics/{topic}/partitions/0/batch", given)
    assert answer.status == 200
    found = read(consumer, topic)
    assert [record.offset for record in found] == [each["offset"] for each in answer.json["records"]]
    assert [record.value[:1] for record in found] == [b"%d" % number for number in range(8)]


def test_records_of_several_topics_are_published_together(http: HttpClient, consumer: KafkaConsumer) -> None:
    orders, payments = made(http, 2), made(http)
    for turn in range(3):  # one transaction after the other
        answer = http.post(
            "/messages/batch",
            {
                "records": [
                    {"topic": orders, "partition": 1, "value": turn},
                    {"topic": payments, "value": turn},
                ]
            },
        )
        assert answer.status == 200, answer
        assert [each["offset"] for each in answer.json["records"]] == [
            2 * turn,
            2 * turn,
        ]  # and a marker each
    assert values(consumer, orders, 1) == values(consumer, payments) == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        ({"value": 1, "partition": 5}, 404),
        ({"value": "x" * 2_000_000}, 413),
        ({"value": 1, "timestamp": 2**62}, 422),
    ],
)
def test_one_record_that_cannot_be_published_keeps_all_from_being_seen(
    http: HttpClient, consumer: KafkaConsumer, bad: dict[str, Any], status: int
) -> None:
    good, topic = made(http), made(http)
    given = {"records": [{"topic": good, "value": 1}, {"topic": topic, **bad}]}
    assert http.post("/messages/batch", given).status == status
    assert values(consumer, good) == values(consumer, topic) == []
    # Nothing is left open: what comes next can be read.
    assert http.post("/messages/batch", {"records": [{"topic": good, "value": 2}]}).status == 200
    assert values(consumer, good) == [b"2"]


def test_many_at_once_all_or_nothing(
    server: ServerProcess, http: HttpClient, consumer: KafkaConsumer
) -> None:
    first, second = made(http), made(http)

    def publish(number: int) -> Answer:
        with HttpClient(server.url) as own:
            return own.post(
                "/messages/batch",
                {"records": [{"topic": first, "value": number}, {"topic": second, "value": number}]},
            )

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(publish, range(100)))
    assert {answer.status for answer in answers} == {200}
    assert sorted(values(consumer, first)) == sorted(values(consumer, second))
    assert {int(value) for value in values(consumer, first)} == set(range(100))


# sent twice


def test_a_request_that_is_sent_again_with_its_key_is_answered_as_before(
    http: HttpClient, consumer: KafkaConsumer, topic: str
) -> None:
    key = {"Idempotency-Key": f"order-{topic}"}
    first = http.post(f"/topics/{topic}/messages", {"value": 17}, key)
    again = http.post(f"/topics/{topic}/messages", {"value": 17}, key)
    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = http.post(f"/topics/{topic}/messages", {"value": 18}, key)
    assert (other.status, "another request" in other.json["detail"]) == (422, True)
    assert values(consumer, topic) == [b"17"]
    assert http.post(f"/topics/{topic}/messages", {"value": 1}, {"Idempotency-Key": "a b"}).status == 400


def test_repetitions_at_the_same_time_write_once(
    server: ServerProcess, http: HttpClient, consumer: KafkaConsumer, topic: str
) -> None:
    def publish(_: int) -> bytes:
        with HttpClient(server.url) as own:
            path = "/messages/batch"
            given = {"records": [{"topic": topic, "value": 1}, {"topic": f"{topic}-b", "value": 1}]}
            return own.post(path, given, {"Idempotency-Key": f"same-{topic}"}).body

    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(publish, range(30)))) == 1
    assert values(consumer, topic) == [b"1"]


def test_a_request_that_failed_may_be_sent_again_with_its_key(http: HttpClient) -> None:
    topic, key = f"publish-{next(_numbers)}", {"Idempotency-Key": "late"}
    path, given = f"/topics/{topic}/messages", {"value": 1, "partition": 2}
    assert http.post(path, given, key).status == 404
    assert http.post("/topics", {"name": topic, "partitions": 3}).status in (201, 409)
    if http.get(f"/topics/{topic}").json["partitions"] < 3:
        assert http.post(f"/topics/{topic}/partitions", {"partitions": 3}).status == 200
    assert http.post(path, given, key).json["offset"] == 0


def origin(name: str, sequence: int) -> dict[str, str]:
    return {"X-Origin-Id": name, "X-Origin-Sequence": str(sequence)}


def test_what_an_origin_sends_again_is_written_once_even_if_the_broker_was_killed(tmp_path: Path) -> None:
    path = "/topics/sensors/partitions/0"
    with ServerProcess("--data", str(tmp_path), "--http-port", "0") as server, HttpClient(server.url) as http:
        assert http.post("/topics", {"name": "sensors"}).status == 201
        for sequence in range(3):
            answer = http.ask("POST", path, b"%d" % sequence, origin("s-1", sequence))
            assert answer.json["offset"] == sequence
        assert http.ask("POST", path, b"2", origin("s-1", 2)).json["offset"] == 2
        server.kill()
    with ServerProcess("--data", str(tmp_path), "--http-port", "0") as server, HttpClient(server.url) as http:
        assert http.ask("POST", path, b"2", origin("s-1", 2)).json["offset"] == 2
        assert http.ask("POST", path, b"3", origin("s-1", 3)).json["offset"] == 3
        gap = http.ask("POST", path, b"9", origin("s-1", 9))
        assert (gap.status, gap.json["error"]) == (409, "OUT_OF_ORDER_SEQUENCE_NUMBER")
        assert http.ask("POST", path, b"other", origin("s-2", 0)).json["offset"] == 4
        assert http.get(path).json["logEndOffset"] == 5
        assert http.ask("POST", path, b"x", {"X-Origin-Id": "s-1"}).status == 400


def test_an_open_batch_of_a_broker_that_was_killed_is_never_seen_in_part(tmp_path: Path) -> None:
    """Killed again and again while clients publish all or nothing: both topics have the same."""
    acknowledged: set[int] = set()
    numbers = count()
    for _ in range(3):
        with ServerProcess("--data", str(tmp_path), "--http-port", "0") as server:
            url = server.url

            def publish(_: int, url: str = url) -> int | None:
                number = next(numbers)
                try:
                    with HttpClient(url) as own:
                        answer = own.post(
                            "/messages/batch",
                            {"records": [{"topic": "a", "value": number}, {"topic": "b", "value": number}]},
                        )
                except (OSError, HTTPException):
                    return None
                return number if answer.status == 200 else None

            with ThreadPoolExecutor(4) as pool:
                begun = [pool.submit(publish, turn) for turn in range(60)]
                begun[20].result()
                server.kill()
                acknowledged |= {number for each in begun if (number := each.result()) is not None}
    with ServerProcess("--data", str(tmp_path), "--http-port", "0") as server:
        # The next use of what was open ends it.
        with ThreadPoolExecutor(8) as pool:

            def end(number: int) -> int:
                with HttpClient(server.url) as own:
                    given = {"records": [{"topic": "a", "value": -1}, {"topic": "b", "value": -1}]}
                    return own.post("/messages/batch", given).status

            assert set(pool.map(end, range(100))) == {200}
        with KafkaConsumerContext(server) as consumer:
            first = [int(value) for value in values(consumer, "a")]
            second = [int(value) for value in values(consumer, "b")]
    assert sorted(first) == sorted(second)
    assert acknowledged <= set(first)
    written = [number for number in first if number >= 0]
    assert len(written) == len(set(written))


# only if nobody was faster


def test_a_record_is_written_only_at_the_offset_that_is_expected(
    http: HttpClient, consumer: KafkaConsumer, topic: str
) -> None:
    path = f"/topics/{topic}/partitions/0"
    assert http.ask("POST", path, b"mine", {"If-Match": "0"}).json["offset"] == 0
    late = http.ask("POST", path, b"late", {"If-Match": '"0"'})
    assert (late.status, late.json["nextOffset"]) == (409, 1)
    assert (
        http.post(f"/topics/{topic}/messages", [{"value": 1}, {"value": 2}], {"If-Match": "1"}).status == 200
    )
    late = http.post(f"{path}/batch", {"records": [""]}, {"If-Match": "1"})
    assert (late.status, late.json["nextOffset"]) == (409, 3)
    assert http.post(f"{path}/batch", {"records": [""]}, {"If-Match": "3"}).status == 200
    assert http.ask("POST", path, b"x", {"If-Match": "*"}).status == 400
    assert values(consumer, topic) == [b"mine", b"1", b"2", b""]


def test_of_many_who_expect_the_same_offset_one_succeeds(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    def publish(number: int) -> int:
        with HttpClient(server.url) as own:
            return own.ask("POST", f"/topics/{topic}/partitions/0", b"%d" % number, {"If-Match": "0"}).status

    with ThreadPoolExecutor(10) as pool:
        assert sorted(pool.map(publish, range(20))) == [200] + [409] * 19


def test_an_expected_offset_needs_one_partition(http: HttpClient) -> None:
    topic = made(http, 2)
    answer = http.post(f"/topics/{topic}/messages", {"value": 1}, {"If-Match": "0"})
    assert (answer.status, "one partition" in answer.json["detail"]) == (400, True)
