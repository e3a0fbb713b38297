"""Streams of groups: members beside each other and beside Kafka's clients, and what is committed."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.http.streams.conftest import publish, values
from tests.http.streams.test_events import followed
from tests.http.streams.test_sockets import opened, records
from tests.support.event_stream import EventStream
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually


@pytest.fixture
def group(topic: str) -> str:
    return f"g-{topic}"


def member(server: ServerProcess, topic: str, group: str, more: str = "&offset=earliest") -> EventStream:
    stream = EventStream(server.url, f"/topics/{topic}/stream?group={group}{more}")
    assert stream.status == 200, stream.problem()
    return stream


def committed(http: HttpClient, group: str) -> dict[int, int]:
    found = http.get(f"/groups/{group}/offsets").json["offsets"]
    return {each["partition"]: each["offset"] for each in found}


def members(http: HttpClient, group: str) -> list[Any]:
    answer = http.get(f"/groups/{group}")
    return list(answer.json["members"]) if answer.status == 200 else []


def test_what_was_sent_is_committed_and_the_next_member_goes_on(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    publish(http, topic, 0, 1, 2)
    with member(server, topic, group) as stream:
        assert values(stream.records(3)) == [0, 1, 2]
        assert stream.last_id == ""
        eventually(lambda: committed(http, group).get(0) == 3)
        publish(http, topic, 3)
        assert values(stream.records(1)) == [3]
        eventually(lambda: committed(http, group).get(0) == 4)
    eventually(lambda: not members(http, group))
    publish(http, topic, 4)
    with member(server, topic, group) as stream:
        assert values(stream.records(1)) == [4]


def test_a_member_that_has_all_it_wanted_commits_no_more_than_that(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    publish(http, topic, *range(10))
    for expected in ([0, 1, 2], [3, 4, 5], [6, 7, 8]):
        with member(server, topic, group, "&offset=earliest&maxRecords=3") as stream:
            assert values(stream.records(9)) == expected
        eventually(lambda: not members(http, group))
        assert committed(http, group)[0] == expected[-1] + 1


def test_a_group_that_has_committed_nothing_begins_at_the_end_or_as_asked(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    publish(http, topic, "old")
    with member(server, topic, f"{group}-1") as stream:
        assert values(stream.records(1)) == ["old"]
    for number, begin in enumerate(("", "&offset=latest"), 2):
        with opened(server, f"/topics/{topic}/stream?group={group}-{number}{begin}") as socket:
            found: list[Any] = []
            while not found:  # until it has looked where the end is
                publish(http, topic, "new")
                with suppress(TimeoutError):
                    found.append(json.loads(socket.recv(timeout=0.1)))
            assert values(found) == ["new"]


def test_members_share_the_partitions(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    with (
        member(server, topic, group) as one,
        opened(server, f"/topics/{topic}/stream?group={group}&offset=earliest") as other,
    ):
        eventually(lambda: [len(each["assignment"]) for each in members(http, group)] == [1, 1])
        publish(http, topic, "a", partition=0)
        publish(http, topic, "b", partition=1)
        found = {*values(one.records(1)), *values(records(other, 1))}
        assert found == {"a", "b"}
    eventually(lambda: not members(http, group))


def test_a_stream_and_a_kafka_consumer_are_members_of_one_group(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    with (
        member(server, topic, group) as stream,
        closing(
            KafkaConsumer(
                topic,
                bootstrap_servers=server.bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
        ) as consumer,
    ):

        def shared() -> bool:
            consumer.poll(50)
            return sorted(len(each["assignment"]) for each in members(http, group)) == [1, 1]

        eventually(shared)
        publish(http, topic, "a", partition=0)
        publish(http, topic, "b", partition=1)
        found = set(values(stream.records(1)))
        while len(found) < 2:
            for batch in consumer.poll(1000).values():
                found |= {record.value.decode().strip('"') for record in batch}
        assert found == {"a", "b"}
    eventually(lambda: not members(http, group))
    with closing(
        KafkaConsumer(bootstrap_servers=server.bootstrap, group_id=group, enable_auto_commit=False)
    ) as outside:
        places = [TopicPartition(topic, number) for number in (0, 1)]
        assert 1 in [outside.committed(place) for place in places]
        outside.assign(places)
        outside.commit({place: OffsetAndMetadata(0, "", -1) for place in places})
    with member(server, topic, group) as stream:
        assert set(values(stream.records(2))) == {"a", "b"}


def test_what_was_deleted_before_the_group_read_it_is_told(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    publish(http, topic, *range(4))
    with member(server, topic, group, "&offset=earliest&maxRecords=1") as stream:
        stream.records(1)
    eventually(lambda: committed(http, group).get(0) == 1)
    assert http.ask("DELETE", f"/topics/{topic}/partitions/0/records?before=3").status == 200
    with member(server, topic, group) as stream:
        events = stream.events()
        gap = next(events)
        assert (gap.name, gap.json["offset"], gap.json["nextOffset"]) == ("gap", 1, 3)
        assert next(events).json["value"] == 3


def test_a_deleted_topic_ends_the_stream_of_a_group(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    with member(server, topic, group) as stream:
        eventually(lambda: any(each["assignment"] for each in members(http, group)))
        assert http.ask("DELETE", f"/topics/{topic}").status == 200
        (end,) = list(stream.events())
        assert (end.name, end.json["status"]) == ("end", 404)
    eventually(lambda: not members(http, group))


def test_partitions_that_come_later_are_read_too(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    with member(server, topic, group) as stream:
        eventually(lambda: any(each["assignment"] for each in members(http, group)))
        assert http.post(f"/topics/{topic}/partitions", {"partitions": 4}).status in (200, 201)
        publish(http, topic, "new", partition=3)
        assert values(stream.records(1)) == ["new"]


def test_a_group_and_the_id_of_an_event_do_not_go_together(server: ServerProcess, topic: str) -> None:
    with EventStream(server.url, f"/topics/{topic}/stream?group=g&lastEventId=1") as stream:
        assert stream.status == 400


def test_who_reads_events_cannot_leave_the_commit_to_itself(server: ServerProcess, topic: str) -> None:
    with EventStream(server.url, f"/topics/{topic}/stream?group=g&autoCommit=false") as stream:
        assert stream.status == 400
        assert "WebSocket" in stream.problem()["detail"]


def test_the_members_of_a_stream_count_among_the_consumers() -> None:
    with (
        ServerProcess("--in-memory", "--http-port", "0", "--set", "kbroker.http.max.consumers=1") as server,
        HttpClient(server.url) as http,
    ):
        http.post("/topics", {"name": "t"})
        with (
            followed(server, "t"),
            member(server, "t", "g"),
            EventStream(server.url, "/topics/t/stream?group=g") as refused,
        ):
            assert refused.status == 429
        eventually(lambda: not members(http, "g"))
        with member(server, "t", "g"):
            pass
