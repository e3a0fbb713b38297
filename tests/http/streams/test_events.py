"""Streams as server-sent events: what comes, in which form, and where the next stream goes on."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.http.streams.conftest import publish, values
from tests.support.event_stream import EventStream
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually


def followed(server: ServerProcess, topic: str, query: str = "", **headers: str) -> EventStream:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    stream = EventStream(server.url, f"/topics/{topic}/stream?{query}", named)
    assert stream.status == 200, stream.problem()
    return stream.begun()


def test_records_come_as_they_are_published(server: ServerProcess, http: HttpClient, topic: str) -> None:
    publish(http, topic, "before")
    with followed(server, topic) as stream:
        assert stream.response.headers["Content-Type"].startswith("text/event-stream")
        assert stream.response.headers["Cache-Control"] == "no-store"
        assert stream.retry > 0
        for number in range(3):
            publish(http, topic, {"n": number}, key="ada", headers={"h": "v"})
            (record,) = stream.records(1)
            assert record["value"] == {"n": number}
            assert (record["topic"], record["partition"], record["offset"]) == (topic, 0, number + 1)
            assert (record["key"], record["headers"]) == ("ada", [{"key": "h", "value": "v"}])
            assert record["timestamp"] > 0


def test_the_long_path_and_the_short_one_are_the_same(server: ServerProcess, topic: str) -> None:
    with EventStream(server.url, f"/api/v1/topics/{topic}/stream") as stream:
        assert stream.status == 200


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("offset=earliest", [0, 1, 2]),
        ("offset=1", [1, 2]),
        ("timestamp=1700000000500", [1, 2]),
        ("timestamp=2023-11-14T22:13:22Z", [2]),
        ("offset=earliest&partition=0", [0, 1, 2]),
        ("lastEventId=2,0", [2]),
        ("offset=earliest&lastEventId=0:2", [2]),
    ],
)
def test_a_stream_begins_where_it_is_asked_to(
    server: ServerProcess, http: HttpClient, topic: str, query: str, expected: list[int]
) -> None:
    for number in range(3):
        publish(http, topic, number, timestamp=1_700_000_000_000 + number * 1000)
    publish(http, topic, "elsewhere", "elsewhere", partition=1, timestamp=1)
    with followed(server, topic, f"{query}&partition=0&maxRecords={len(expected)}") as stream:
        assert values(stream.records(9)) == expected


def test_keys_and_values_come_in_the_encodings_that_are_asked_for(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, {"a": 1}, key="k")
    with followed(server, topic, "offset=earliest&key=base64&value=text") as stream:
        (record,) = stream.records(1)
        assert (record["keyBase64"], record["valueText"]) == ("aw==", '{"a":1}')


def test_only_the_partitions_that_are_named_are_read(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    assert http.post(f"/topics/{topic}/partitions", {"partitions": 4}).status in (200, 201)
    with followed(server, topic, "partition=3&partition=1") as stream:
        for partition in (0, 1, 2, 3):
            publish(http, topic, partition, partition=partition)
        assert sorted(values(stream.records(2))) == [1, 3]
        assert stream.last_id.startswith("1:1,3:1~")


def test_partitions_that_come_later_are_read_too(server: ServerProcess, http: HttpClient, topic: str) -> None:
    with followed(server, topic) as stream:
        assert http.post(f"/topics/{topic}/partitions", {"partitions": 5}).status in (200, 201)
        publish(http, topic, "new", partition=4)
        (record,) = stream.records(1)
        assert (record["partition"], record["value"]) == (4, "new")
        assert stream.last_id.startswith("0,0,0,0,1~")


def test_a_stream_goes_on_behind_every_event(server: ServerProcess, http: HttpClient, topic: str) -> None:
    for number in range(6):
        publish(http, topic, number, partition=number % 2)
    with followed(server, topic, "offset=earliest&maxRecords=6") as stream:
        ids = [stream.last_id]
        all_records = []
        for event in stream.events():
            ids.append(event.id)
            all_records.append(event.json)
    assert len(all_records) == 6
    for index, last_id in enumerate(ids[:-1]):
        expected = {(each["partition"], each["offset"]) for each in all_records[index:]}
        for how in ({"Last-Event-ID": last_id}, {}):
            query = f"maxRecords={6 - index}" + ("" if how else f"&lastEventId={last_id}")
            with EventStream(server.url, f"/topics/{topic}/stream?{query}", how) as again:
                found = [(each["partition"], each["offset"]) for each in again.records(9)]
        assert (len(found), set(found)) == (6 - index, expected)


def test_reconnecting_all_the_time_loses_nothing_and_repeats_nothing(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    expected = 200
    for number in range(0, expected, 10):
        publish(http, topic, *range(number, number + 10), partition=number // 10 % 2)
    last_id = "0,0"
    seen: list[int] = []
    lengths = iter(range(1, 1000))
    while len(seen) < expected:
        with followed(server, topic, Last_Event_ID=last_id) as stream:
            seen += values(stream.records(min(next(lengths), expected - len(seen))))
            last_id = stream.last_id
    assert sorted(seen) == list(range(expected))


def test_a_topic_that_is_made_anew_is_read_from_its_beginning(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, "old", "old")
    with followed(server, topic, "offset=earliest") as stream:
        stream.records(2)
        last_id = stream.last_id
    assert http.ask("DELETE", f"/topics/{topic}").status == 200
    assert http.post("/topics", {"name": topic, "partitions": 2}).status == 201
    publish(http, topic, "new")
    with followed(server, topic, Last_Event_ID=last_id) as stream:
        assert values(stream.records(1)) == ["new"]


def test_what_was_deleted_before_it_was_read_is_told(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, *range(5))
    trimmed = http.ask("DELETE", f"/topics/{topic}/partitions/0/records?before=3")
    assert trimmed.status == 200, trimmed
    with followed(server, topic, Last_Event_ID="1,0") as stream:
        events = stream.events()
        gap = next(events)
        assert (gap.name, gap.json) == (
            "gap",
            {"topic": topic, "partition": 0, "offset": 1, "nextOffset": 3},
        )
        assert gap.id.startswith("3,0~")
        assert [next(events).json["value"] for _ in range(2)] == [3, 4]
    with followed(server, topic, "offset=0&partition=0") as stream:
        assert next(stream.events()).json["offset"] == 0


def test_a_position_behind_the_end_goes_on_with_what_comes(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, "there")
    with followed(server, topic, Last_Event_ID="9,0") as stream:
        events = stream.events()
        assert next(events).json == {"topic": topic, "partition": 0, "offset": 9, "nextOffset": 1}
        publish(http, topic, "next")
        assert next(events).json["value"] == "next"


def test_a_deleted_topic_ends_the_stream_and_says_so(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    with followed(server, topic) as stream:
        assert http.ask("DELETE", f"/topics/{topic}").status == 200
        end, *more = list(stream.events())
        assert end.name == "end"
        assert (end.json["status"], end.json["detail"]) == (404, f"The topic {topic} was deleted.")
        assert more == []
    with EventStream(server.url, f"/topics/{topic}/stream") as stream:
        assert stream.status == 404


def test_committed_reads_leave_out_what_is_aborted(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=f"t-{topic}")
    producer.init_transactions()
    with followed(server, topic, "isolation=read_committed") as stream:
        for value, ends in ((b'"no"', producer.abort_transaction), (b'"yes"', producer.commit_transaction)):
            producer.begin_transaction()
            producer.send(topic, value, partition=0).get(20)
            ends()
        assert values(stream.records(1)) == ["yes"]
    producer.close()


def test_a_silent_stream_says_that_it_is_still_there(quick: ServerProcess, quick_http: HttpClient) -> None:
    quick_http.post("/topics", {"name": "silent"})
    with followed(quick, "silent") as stream:
        blocks = stream.blocks()
        while stream.comments < 3:
            assert next(blocks) is None


def test_a_head_has_no_stream(http: HttpClient, topic: str) -> None:
    answer = http.ask("HEAD", f"/topics/{topic}/stream")
    assert (answer.status, answer.media_type, answer.body) == (200, "text/event-stream", b"")


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ("offset=5", 416, "Offset 5 is not there yet"),
        ("offset=x", 400, "offset must be a number"),
        ("offset=1&timestamp=1", 400, "name one of them"),
        ("timestamp=yesterday", 400, "timestamp must be"),
        ("partition=2", 404, "there is no partition 2"),
        ("partition=-1", 400, "partition must be a number"),
        ("partition=" + "&partition=".join(map(str, range(1001))), 400, "1000 partitions at most"),
        ("lastEventId=x", 400, "This is none: 'x'"),
        ("maxRecords=0", 400, "maxRecords must be"),
        ("isolation=x", 400, "isolation must be"),
        ("value=x", 400, "must be json, text or base64"),
        ("group=g&partition=0", 400, "partition does not go with it"),
        ("group=g&offset=7", 400, "offset=earliest or latest"),
        ("group=", 400, "group id"),
    ],
)
def test_what_cannot_be_streamed_is_refused_before_the_stream_begins(
    server: ServerProcess, topic: str, query: str, status: int, detail: str
) -> None:
    with EventStream(server.url, f"/topics/{topic}/stream?{query}") as stream:
        problem = stream.problem()
        assert (stream.status, problem["status"]) == (status, status), problem
        assert detail in problem["detail"]


def test_who_accepts_no_events_gets_none(http: HttpClient, topic: str) -> None:
    assert http.get(f"/topics/{topic}/stream", Accept="application/json").status == 406


def test_the_connection_is_used_again_after_a_stream_that_has_an_end(http: HttpClient, topic: str) -> None:
    publish(http, topic, 1, 2)
    for _ in range(2):
        answer = http.get(f"/topics/{topic}/stream?offset=earliest&maxRecords=2")
        assert (answer.status, answer.body.count(b"data:")) == (200, 2)


def test_a_reader_that_goes_away_leaves_nothing_behind(http: HttpClient) -> None:
    with ServerProcess("--in-memory", "--http-port", "0") as server, HttpClient(server.url) as own:
        own.post("/topics", {"name": "t"})
        streams = [followed(server, "t") for _ in range(20)]
        for stream in streams:
            stream.close()

        def descriptors() -> int:
            from pathlib import Path

            return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))

        before = descriptors()
        streams = [followed(server, "t") for _ in range(20)]
        for stream in streams:
            stream.close()
        eventually(lambda: descriptors() <= before)
        assert server.stop() == 0
        assert "Traceback" not in server.log()


def offsets(records: list[Any]) -> list[int]:
    return [record["offset"] for record in records]


def test_long_records_come_whole_and_in_order(server: ServerProcess, http: HttpClient, topic: str) -> None:
    sizes = [10, 500_000, 10, 900_000, 10, 10]
    with followed(server, topic, "partition=0") as stream:
        for size in sizes:
            publish(http, topic, "x" * size)
        records = stream.records(len(sizes))
    assert [len(record["value"]) for record in records] == sizes
    assert all(one + 1 == other for one, other in pairwise(offsets(records)))
