"""Fetch: sessions, limits, offsets, epochs, isolation."""

from __future__ import annotations

import time

import pytest

from compat.differential.recordings import NOW
from compat.harness.batches import Record, batch
from compat.harness.side import versions
from compat.harness.waiting import eventually


def filled(side, topic, partitions=1, batches=3, size=100, **configs):
    """A topic with `batches` batches of one record in each partition."""
    topic_id = side.create_topic(topic, partitions, **configs)
    for partition in range(partitions):
        for number in range(batches):
            record = Record(str(number).encode().ljust(size, b"."))
            assert side.produce(topic, batch((record,), timestamp_ms=NOW), partition)["ErrorCode"] == 0
    return topic_id


def wanted(topic, topic_id, *partitions):
    """The part of a request for one topic; a partition is (index, offset) or a dictionary."""
    described = []
    for each in partitions:
        if not isinstance(each, dict):
            each = {"Partition": each[0], "FetchOffset": each[1]}
        described.append({"PartitionMaxBytes": 1 << 20, **each})
    return {"Topic": topic, "TopicId": topic_id, "Partitions": described}


def fetch(side, *topics, version=12, **options):
    request = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "Topics": list(topics), **options}
    if version < 13:
        request["Topics"] = [{k: v for k, v in each.items() if k != "TopicId"} for each in request["Topics"]]
        request["ForgottenTopicsData"] = [
            {k: v for k, v in each.items() if k != "TopicId"}
            for each in options.get("ForgottenTopicsData", [])
        ]
    return grouped(side.ask("Fetch", version, request))


def grouped(answer):
    """Partitions by topic, sorted: the order is the broker's own affair."""
    if isinstance(answer, dict):
        topics = {}
        for part in answer["Responses"]:
            name = part.get("Topic") or part.get("TopicId")
            topics.setdefault(str(name), []).extend(part["Partitions"])
        for partitions in topics.values():
            partitions.sort(key=lambda each: each["PartitionIndex"])
        answer["Responses"] = topics
    return answer


def test_every_version(pair, topic):
    def scenario(side):
        topic_id = filled(side, topic)
        return {v: fetch(side, wanted(topic, topic_id, (0, 0)), version=v) for v in versions("Fetch")}

    pair.same(scenario)


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 4, -1, -2, 2**62])
@pytest.mark.parametrize("version", [4, 12, 18])
def test_offsets(pair, topic, offset, version):
    def scenario(side):
        topic_id = filled(side, topic)
        return fetch(side, wanted(topic, topic_id, (0, offset)), version=version)

    pair.same(scenario)


def test_offsets_around_the_log_start(pair, topic):
    def scenario(side):
        topic_id = filled(side, topic)
        deleted = {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": 2}]}
        side.raw("DeleteRecords", 2, {"Topics": [deleted], "TimeoutMs": 10_000})
        return [fetch(side, wanted(topic, topic_id, (0, offset)), version=12) for offset in range(4)]

    pair.same(scenario)


def test_an_offset_inside_a_batch_gets_the_whole_batch(pair, topic):
    def scenario(side):
        topic_id = side.create_topic(topic)
        side.produce(topic, batch([Record(str(n).encode()) for n in range(10)], timestamp_ms=NOW))
        return [fetch(side, wanted(topic, topic_id, (0, offset))) for offset in (0, 5, 9, 10)]

    pair.same(scenario)


@pytest.mark.parametrize("limit", [0, 1, 100, 200, 400, 10_000])
def test_a_partitions_limit(pair, topic, limit):
    def scenario(side):
        topic_id = filled(side, topic, partitions=2)
        parts = [{"Partition": n, "FetchOffset": 0, "PartitionMaxBytes": limit} for n in (0, 1)]
        return [fetch(side, wanted(topic, topic_id, *parts), version=version) for version in (4, 12)]

    pair.same(scenario)


@pytest.mark.parametrize("limit", [0, 1, 300, 700, 10_000])
def test_the_limit_of_the_whole_answer(pair, topic, limit):
    def scenario(side):
        topic_id = filled(side, topic, partitions=4)
        parts = [(number, 0) for number in range(4)]
        return [fetch(side, wanted(topic, topic_id, *parts), version=v, MaxBytes=limit) for v in (4, 12)]

    pair.same(scenario)


@pytest.mark.parametrize("isolation", [0, 1])
def test_isolation_levels_without_transactions(pair, topic, isolation):
    def scenario(side):
        topic_id = filled(side, topic)
        return {
            v: fetch(side, wanted(topic, topic_id, (0, 0)), version=v, IsolationLevel=isolation)
            for v in (4, 11, 18)
        }

    pair.same(scenario)


@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
def test_topics_and_partitions_that_do_not_exist(pair, topic, version):
    def scenario(side):
        topic_id = filled(side, topic)
        unknown = side.call(b"unknown topic id", "unknown id")
        return [
            fetch(side, wanted(topic, topic_id, (7, 0)), version=version),
            fetch(side, wanted(topic, topic_id, (-1, 0)), version=version),
            fetch(side, wanted(f"{topic}-unknown", unknown, (0, 0)), version=version),
            fetch(side, wanted("bad name", bytes(16), (0, 0)), version=version),
            fetch(
                side,
                wanted(topic, topic_id, (0, 0), (5, 0)),
                wanted(f"{topic}-x", unknown, (0, 0)),
                version=version,
            ),
        ]

    pair.same(scenario)


@pytest.mark.parametrize("epoch", [-1, 0, 1, 99, -2])
def test_leader_epochs(pair, topic, epoch):
    def scenario(side):
        topic_id = filled(side, topic)
        part = {"Partition": 0, "FetchOffset": 0, "CurrentLeaderEpoch": epoch}
        return {v: fetch(side, wanted(topic, topic_id, part), version=v) for v in (9, 12, 16, 18)}

    pair.same(scenario)


@pytest.mark.parametrize("last_epoch", [-1, 0, 1, 5])
@pytest.mark.parametrize("offset", [0, 2, 3, 9])
def test_the_last_fetched_epoch(pair, topic, last_epoch, offset):
    def scenario(side):
        topic_id = filled(side, topic)
        part = {
            "Partition": 0,
            "FetchOffset": offset,
            "LastFetchedEpoch": last_epoch,
            "CurrentLeaderEpoch": 0,
        }
        return {v: fetch(side, wanted(topic, topic_id, part), version=v) for v in (12, 18)}

    pair.same(scenario)


def test_nothing_to_fetch(pair):
    pair.same(lambda side: {v: fetch(side, version=v) for v in versions("Fetch")})


def test_an_empty_partition(pair, topic):
    def scenario(side):
        topic_id = side.create_topic(topic)
        return {v: fetch(side, wanted(topic, topic_id, (0, 0)), version=v) for v in versions("Fetch")}

    pair.same(scenario)


def test_the_same_partition_twice(pair, topic):
    def scenario(side):
        topic_id = filled(side, topic)
        return [
            fetch(side, wanted(topic, topic_id, (0, 0), (0, 2)), version=version) for version in (4, 12, 18)
        ]

    pair.same(scenario)


def test_a_rack_makes_no_difference(pair, topic):
    def scenario(side):
        topic_id = filled(side, topic)
        return {v: fetch(side, wanted(topic, topic_id, (0, 0)), version=v, RackId="r1") for v in (11, 12, 18)}

    pair.same(scenario)


def test_a_consumer_cannot_pretend_to_be_a_replica(pair, topic):
    def scenario(side):
        topic_id = filled(side, topic)
        return [
            fetch(side, wanted(topic, topic_id, (0, 0)), version=12, ReplicaId=replica)
            for replica in (7, -2, -3)
        ]

    pair.same(scenario)


# Waiting


def timed(question):
    started = time.monotonic()
    answer = question()
    return answer, time.monotonic() - started


@pytest.mark.parametrize(
    ("min_bytes", "wait_ms", "offset", "waits"),
    [
        (1, 600, 3, True),
        (0, 600, 3, False),
        (1, 600, 0, False),
        (1_000_000, 600, 0, True),
        (1, 600, 99, False),
    ],
)
def test_how_long_it_waits(pair, topic, min_bytes, wait_ms, offset, waits):
    def scenario(side):
        topic_id = filled(side, topic)
        answer, seconds = timed(
            lambda: fetch(side, wanted(topic, topic_id, (0, offset)), MinBytes=min_bytes, MaxWaitMs=wait_ms)
        )
        assert (seconds >= 0.5) is waits
        return answer

    pair.same(scenario)


def test_a_wait_ends_when_records_come(pair, topic):
    def scenario(side):
        topic_id = side.create_topic(topic)
        part = {"TopicId": topic_id, "Partitions": [{"Partition": 0, "PartitionMaxBytes": 1000}]}
        limits = {"MaxWaitMs": 10_000, "MinBytes": 1, "MaxBytes": 1000}
        side.connection.send("Fetch", 13, {**limits, "Topics": [part]})
        waiting = side.connection
        side.use_another_connection()
        side.produce(topic, batch(timestamp_ms=NOW))
        started = time.monotonic()
        body = waiting.receive(flexible=True)
        waiting.close()
        return len(body), time.monotonic() - started < 5

    pair.same(scenario)


# Sessions


def session_fetch(side, *topics, session=0, epoch=-1, forgotten=(), version=12):
    return fetch(
        side,
        *topics,
        SessionId=session,
        SessionEpoch=epoch,
        ForgottenTopicsData=list(forgotten),
        version=version,
    )


def open_session(side, *topics, version=12):
    """Opens a session; the answer and the session's id."""
    names = [{k: v for k, v in each.items() if version >= 13 or k != "TopicId"} for each in topics]
    request = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "Topics": names, "SessionEpoch": 0}
    answer = side.raw("Fetch", version, request)
    return grouped(side.comparable(answer)), answer["SessionId"]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_an_incremental_session(pair, topic, version):
    def scenario(side):
        topic_id = filled(side, topic, partitions=3)
        opened, session = open_session(side, wanted(topic, topic_id, (0, 0), (1, 0)), version=version)
        steps = [opened]
        ask = lambda *topics, **options: steps.append(  # noqa: E731
            session_fetch(side, *topics, session=session, version=version, **options)
        )
        ask(wanted(topic, topic_id, (0, 3), (1, 3)), epoch=1)
        ask(epoch=2)
        ask(wanted(topic, topic_id, (2, 1)), epoch=3)
        ask(wanted(topic, topic_id, (2, 3)), epoch=4)
        side.produce(topic, batch(timestamp_ms=NOW), 1)
        ask(epoch=5)
        ask(
            wanted(topic, topic_id, (1, 4)),
            epoch=6,
            forgotten=[{"Topic": topic, "TopicId": topic_id, "Partitions": [0]}],
        )
        side.produce(topic, batch(timestamp_ms=NOW), 0)
        ask(epoch=7)
        ask(epoch=99)
        ask(epoch=8)
        ask(epoch=-1)
        ask(epoch=9)
        return steps

    pair.same(scenario)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
@pytest.mark.parametrize(
    ("session", "epoch"), [(12345, 1), (12345, 0), (12345, -1), (0, 1), (0, 5), (-1, 1), (12345, -2), (0, -2)]
)
def test_sessions_that_do_not_exist(pair, topic, session, epoch, version):
    def scenario(side):
        topic_id = filled(side, topic)
        return session_fetch(
            side, wanted(topic, topic_id, (0, 0)), session=session, epoch=epoch, version=version
        )

    pair.same(scenario)


def test_a_session_shows_errors_and_the_high_watermark_when_they_change(pair, topic):
    def scenario(side):
        topic_id = filled(side, topic)
        unknown = side.call(b"unknown topic id", "unknown id")
        opened, session = open_session(
            side, wanted(topic, topic_id, (0, 3), (9, 0)), wanted(f"{topic}-unknown", unknown, (0, 0))
        )
        steps = [opened]
        steps.append(session_fetch(side, session=session, epoch=1))
        side.produce(topic, batch(timestamp_ms=NOW))
        steps.append(session_fetch(side, session=session, epoch=2))
        steps.append(session_fetch(side, wanted(topic, topic_id, (0, 4)), session=session, epoch=3))
        deleted = {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": 4}]}
        side.raw("DeleteRecords", 2, {"Topics": [deleted], "TimeoutMs": 10_000})
        steps.append(session_fetch(side, session=session, epoch=4))
        steps.append(session_fetch(side, wanted(topic, topic_id, (0, 0)), session=session, epoch=5))
        return steps

    pair.same(scenario)


def test_a_session_whose_topic_is_deleted(pair, topic):
    def scenario(side):
        topic_id = filled(side, topic)
        opened, session = open_session(side, wanted(topic, topic_id, (0, 3)), version=13)
        side.raw("DeleteTopics", 6, {"Topics": [{"Name": topic}], "TimeoutMs": 10_000})
        named = {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False}
        eventually(lambda: side.raw("Metadata", 9, named)["Topics"][0]["ErrorCode"] == 3)
        return opened, session_fetch(side, session=session, epoch=1, version=13)["ErrorCode"]

    pair.same(scenario)
