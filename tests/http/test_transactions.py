"""Transactions over HTTP, beside Kafka's own clients: what they see, who fences whom, what failures say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kbroker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kbroker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kbroker.protocol.messages.list_transactions import ListTransactionsRequest
from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess, eventually

_numbers = count()


@pytest.fixture
def topic(http: HttpClient) -> str:
    return made(http)


def made(http: HttpClient, partitions: int = 1) -> str:
    name = f"transactions-{next(_numbers)}"
    assert http.post("/topics", {"name": name, "partitions": partitions}).status == 201
    return name


def begin(http: HttpClient, **given: Any) -> str:
    """The path of a new transaction."""
    answer = http.post("/transactions", given)
    assert answer.status == 201, answer
    return str(answer.headers["Location"])


def committed(server: ServerProcess, topic: str, partition: int = 0) -> list[str]:
    """What a Kafka consumer finds that reads what is committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        values: list[str] = []
        while True:
            message = consumer.poll(20)
            assert message is not None
            if message.error() is not None:
                return values
            values.append((message.value() or b"").decode())
    finally:
        consumer.close()


def group_offset(server: ServerProcess, group: str, topic: str, partition: int = 0) -> int:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, partition)], 20)
        return int(found.offset)
    finally:
        consumer.close()


def kafka_producer(server: ServerProcess, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": server.bootstrap, "transactional.id": transactional_id, "log_level": 0}
    )
    producer.init_transactions(20)
    return producer


def problem(answer: Answer) -> tuple[int, str, str]:
    """Status, error and what became of the transaction."""
    assert answer.media_type == "application/problem+json", answer
    return answer.status, answer.json["error"], answer.json["transaction"]["state"]


def test_records_of_several_requests_show_with_the_commit(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    other = made(http, 2)
    answer = http.post("/transactions", {"timeoutMs": 30_000})
    begun = answer.json
    assert (answer.status, begun["state"], begun["timeoutMs"]) == (201, "Empty", 30_000)
    assert begun["url"] == server.url + answer.headers["Location"]
    path = answer.headers["Location"]
    one = http.post(f"{path}/messages", {"topic": topic, "value": 1})
    assert one.json.keys() == {"topic", "partition", "offset", "timestamp"}
    many = http.post(
        f"{path}/messages?codec=zstd",
        [{"topic": topic, "value": 2}, {"topic": other, "partition": 1, "valueText": "x"}],
    )
    assert [each["offset"] for each in many.json["records"]] == [1, 0]
    wrapped = {"records": [{"topic": other, "partition": 1, "value": None}], "codec": "gzip"}
    assert http.post(f"{path}/messages", wrapped).status == 200
    raw = http.ask("POST", f"{path}/topics/{topic}/partitions/0?key=k", b"\xff raw")
    assert raw.json["offset"] == 2
    described = http.get(path).json
    assert described["state"] == "Ongoing"
    assert described["topics"] == [
        {"topic": name, "partitions": [number]} for name, number in sorted([(topic, 0), (other, 1)])
    ]
    assert committed(server, other, 1) == []
    for _ in range(3):
        answer = http.post(f"{path}/commit", None)
        assert (answer.status, answer.json["state"]) == (200, "CompleteCommit")
    assert committed(server, other, 1) == ["x", ""]
    found = http.get(f"/topics/{topic}/partitions/0/fetch?isolation=read_committed").json["records"]
    assert [each.get("value", each.get("valueBase64")) for each in found] == [1, 2, "/yByYXc="]


def test_an_abort_shows_nothing_and_is_answered_again(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    path = begin(http)
    assert http.post(f"{path}/messages", {"topic": topic, "value": 1}).status == 200
    for _ in range(2):
        assert http.post(f"{path}/abort", None).json["state"] == "CompleteAbort"
    late = http.post(f"{path}/commit", None)
    assert problem(late) == (409, "INVALID_TXN_STATE", "CompleteAbort")
    assert "Begin a new one" in late.json["detail"]
    assert committed(server, topic) == []


def test_what_fails_aborts_the_transaction_and_says_so(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    failing: list[tuple[str, Any, int, str]] = [
        ("messages", {"topic": topic, "partition": 9, "value": 1}, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("messages", {"topic": topic, "value": "x" * 2_000_000}, 413, "MESSAGE_TOO_LARGE"),
        ("messages", {"topic": "no such topic", "value": 1}, 400, "INVALID_TOPIC_EXCEPTION"),
        (
            "offsets",
            {"groupId": "g", "offsets": [{"topic": topic, "partition": 9, "offset": 0}]},
            404,
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ]
    for what, given, status, error in failing:
        path = begin(http)
        assert http.post(f"{path}/messages", {"topic": topic, "value": 0}).status == 200
        failed = http.post(f"{path}/{what}", given)
        assert problem(failed) == (status, error, "CompleteAbort")
        assert "begin a new one" in failed.json["detail"]
        assert failed.json["retriable"] is False
        for end in ("messages", "offsets", "commit"):
            again = http.post(f"{path}/{end}", failing[0][1] if end == "messages" else failing[3][1])
            assert problem(again) == (409, "INVALID_TXN_STATE", "CompleteAbort")
            assert "something in it failed" in again.json["detail"]
        assert http.post(f"{path}/abort", None).status == 200
    assert committed(server, topic) == []


def test_what_is_not_well_formed_changes_nothing(server: ServerProcess, http: HttpClient, topic: str) -> None:
    path = begin(http)
    wrong: list[tuple[str, Any, dict[str, str]]] = [
        ("messages", {"value": 1}, {}),
        ("messages", [{"topic": topic, "value": 1}, {"topic": topic}], {}),
        ("messages", [], {}),
        ("messages?acks=1", {"topic": topic, "value": 1}, {}),
        ("messages?codec=none-such", {"topic": topic, "value": 1}, {}),
        ("messages", {"topic": topic, "value": 1}, {"If-Match": "0"}),
        ("messages", {"topic": topic, "value": 1}, {"X-Origin-Id": "a", "X-Origin-Sequence": "0"}),
        ("offsets", {"groupId": "g"}, {}),
        ("offsets", {"offsets": []}, {}),
        ("offsets", {"groupId": "g", "offsets": [], "memberId": "m"}, {}),
        ("offsets", {"groupId": "g", "offsets": [], "groupInstanceId": "m"}, {}),
        ("offsets", {"groupId": "g", "consumer": "c", "memberId": "m", "generationId": 1}, {}),
        ("offsets", {"groupId": "g", "offsets": [{"topic": topic, "partition": 0, "offset": -1}]}, {}),
        ("topics/x/partitions/none", {}, {}),
        ("topics/x/partitions/0?timestamp=-5", {}, {}),
    ]
    for what, given, headers in wrong:
        answer = http.post(f"{path}/{what}", given, headers)
        assert answer.status == 400, (what, answer)
    assert http.get(path).json["state"] == "Empty"
    assert http.post(f"{path}/messages", {"topic": topic, "value": 1}).status == 200
    assert http.post(f"{path}/commit", None).status == 200
    assert committed(server, topic) == ["1"]
    for given in ({"timeoutMs": "1"}, {"name": "x"}, {"transactionalId": ""}, {"transactionalId": "\ud800"}):
        assert http.post("/transactions", given).status == 400
    assert http.post("/transactions", {"transactionalId": "x" * 600}).status == 400
    for timeout in (0, 10_000_000):
        answer = http.post("/transactions", {"timeoutMs": timeout})
        assert (answer.status, answer.json["error"]) == (400, "INVALID_TRANSACTION_TIMEOUT")


@pytest.mark.parametrize("name", ["a/b", "a:b:c", "ü ☃?#%", "..", "%2F", '"quoted"'])
def test_a_transactional_id_may_have_any_characters(
    server: ServerProcess, http: HttpClient, topic: str, name: str
) -> None:
    path = begin(http, transactionalId=name)
    assert http.post(f"{path}/messages", {"topic": topic, "value": name}).status == 200
    assert http.get(path).json["transactionalId"] == name
    assert http.post(f"{path}/commit", None).status == 200
    assert [json.loads(value) for value in committed(server, topic)] == [name]


def test_offsets_of_a_group_are_committed_with_the_records(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    group, source = f"group-{topic}", made(http)
    offsets = [{"topic": source, "partition": 0, "offset": 3}]
    http.post(f"/topics/{source}/messages", [{"value": number} for number in range(5)])
    for end, found in (("abort", -1001), ("commit", 3)):
        path = begin(http)
        http.post(f"{path}/messages", {"topic": topic, "value": end})
        added = http.post(f"{path}/offsets", {"groupId": group, "offsets": offsets})
        assert (added.status, added.json) == (200, {"groupId": group, "offsets": offsets})
        assert http.post(f"{path}/{end}", None).status == 200
        assert group_offset(server, group, source) == found
    assert committed(server, topic) == ['"commit"']


def test_a_consumer_over_http_reads_and_a_transaction_commits_what_it_has_read(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    group, source = f"group-{topic}", made(http)
    http.post(f"/topics/{source}/messages", [{"value": number} for number in range(5)])
    given = {"name": "me", "topics": [source], "autoOffsetReset": "earliest", "autoCommit": False}
    consumer = http.post(f"/groups/{group}/consumers", given).headers["Location"]
    records: list[Any] = []

    def read() -> bool:
        records.extend(http.get(f"{consumer}/records?maxWaitMs=500").json["records"])
        return len(records) == 5

    eventually(read)
    path = begin(http)
    copies = [{"topic": topic, "value": each["value"] * 10} for each in records]
    assert http.post(f"{path}/messages", copies).status == 200
    added = http.post(f"{path}/offsets", {"groupId": group, "consumer": "me"})
    assert added.json["offsets"] == [{"topic": source, "partition": 0, "offset": 5}]
    assert http.get(f"/groups/{group}/offsets").json["offsets"] == []
    assert http.post(f"{path}/commit", None).status == 200
    assert group_offset(server, group, source) == 5
    assert committed(server, topic) == ["0", "10", "20", "30", "40"]
    # One that commits by itself, or that is not there, is refused.
    http.post(f"/groups/{group}/consumers", {"name": "auto"})
    path = begin(http)
    refused = http.post(f"{path}/offsets", {"groupId": group, "consumer": "auto"})
    assert problem(refused) == (400, "INVALID_REQUEST", "CompleteAbort")
    path = begin(http)
    refused = http.post(f"{path}/offsets", {"groupId": group, "consumer": "none"})
    assert problem(refused) == (409, "UNKNOWN_MEMBER_ID", "CompleteAbort")


def test_a_member_that_the_group_does_not_have_is_refused(http: HttpClient, topic: str) -> None:
    group = f"group-{topic}"
    http.post(f"/groups/{group}/consumers", {"name": "me", "topics": [topic]})
    eventually(lambda: http.get(f"/groups/{group}/consumers/me").json["assignment"] != [])
    path = begin(http)
    http.post(f"{path}/messages", {"topic": topic, "value": 1})
    offsets = [{"topic": topic, "partition": 0, "offset": 1}]
    member = {"memberId": "stranger", "generationId": 1}
    refused = http.post(f"{path}/offsets", {"groupId": group, "offsets": offsets, **member})
    assert problem(refused) == (409, "UNKNOWN_MEMBER_ID", "CompleteAbort")


# who fences whom


def test_a_kafka_client_and_http_fence_each_other(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    name = f"id-{topic}"
    path = begin(http, transactionalId=name)
    http.post(f"{path}/messages", {"topic": topic, "value": "http"})
    producer = kafka_producer(server, name)
    producer.begin_transaction()
    producer.produce(topic, b"kafka")
    assert producer.flush(20) == 0
    for what, given in (("messages", {"topic": topic, "value": 1}), ("commit", None)):
        answer = http.post(f"{path}/{what}", given)
        assert problem(answer) == (409, "PRODUCER_FENCED", "CompleteAbort")
    later = begin(http, transactionalId=name)
    with pytest.raises(KafkaException) as fenced:
        producer.commit_transaction(20)
    assert fenced.value.args[0].fatal()
    http.post(f"{later}/messages", {"topic": topic, "value": "http again"})
    assert http.post(f"{later}/commit", None).status == 200
    assert committed(server, topic) == ['"http again"']
    assert http.get(path).json["state"] == "CompleteAbort"


def test_all_transactions_are_listed_and_what_hangs_is_aborted(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    name = f"list-{topic}"
    producer = kafka_producer(server, f"{name}-kafka")
    producer.begin_transaction()
    producer.produce(topic, b"hangs")
    assert producer.flush(20) == 0
    path = begin(http, transactionalId=f"{name}-http")
    listed = http.get(f"/transactions?prefix={name}").json
    assert [(each["transactionalId"], each["state"]) for each in listed["transactions"]] == [
        (f"{name}-http", "Empty"),
        (f"{name}-kafka", "Ongoing"),
    ]
    assert listed["next"] is None
    first = http.get(f"/transactions?prefix={name}&limit=1").json
    assert first["next"] == f"{name}-http"
    (kafka,) = http.get(f"/transactions?prefix={name}&after={first['next']}").json["transactions"]
    assert kafka["startMs"] > 0
    assert http.get(f"/transactions?prefix={name}&state=Ongoing&openForMs=0").json["transactions"] == [kafka]
    assert http.get(f"/transactions?prefix={name}&producerId={kafka['producerId']}").json["transactions"] == [
        kafka
    ]
    assert http.get("/transactions?producerId=x").status == 400
    refused = http.post(f"/transactions/{kafka['id']}/messages", {"topic": topic, "value": 1})
    assert problem(refused) == (409, "TRANSACTION_ABORTABLE", "Ongoing")
    assert problem(http.post(f"/transactions/{kafka['id']}/commit", None))[0] == 409
    assert http.get(f"/transactions/{kafka['id']}").json["topics"] == [{"topic": topic, "partitions": [0]}]
    for _ in range(2):
        assert http.post(f"/transactions/{kafka['id']}/abort", None).json["state"] == "CompleteAbort"
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)
    assert committed(server, topic) == []
    assert http.post(f"{path}/abort", None).status == 200
    for wrong in ("nonsense", "a:1", "never-was:1:1"):
        assert http.get(f"/transactions/{wrong}").status == 404
        assert http.post(f"/transactions/{wrong}/commit", None).status == 404
        assert http.post(f"/transactions/{wrong}/messages", {"topic": topic, "value": 1}).status == 404


def test_kafkas_tools_see_what_http_has_open(server: ServerProcess, http: HttpClient, topic: str) -> None:
    name = f"seen-{topic}"
    path = begin(http, transactionalId=name, timeoutMs=45_000)
    http.post(f"{path}/messages", {"topic": topic, "value": 1})
    mine = http.get(path).json
    with server.client() as client:
        listed = client.ask(ListTransactionsRequest(transactional_id_pattern=f"seen-{topic}"), 2)
        (described,) = client.ask(DescribeTransactionsRequest([name]), 0).transaction_states
        hanging = client.ask(DescribeProducersRequest([TopicRequest(topic, [0])]), 0)
    assert [(each.transactional_id, each.producer_id) for each in listed.transaction_states] == [
        (name, mine["producerId"])
    ]
    assert described.transaction_state == "Ongoing"
    assert described.transaction_timeout_ms == 45_000
    assert [(each.topic, each.partitions) for each in described.topics] == [(topic, [0])]
    (producer,) = hanging.topics[0].partitions[0].active_producers
    assert (producer.producer_id, producer.current_txn_start_offset) == (mine["producerId"], 0)
    assert http.post(f"{path}/abort", None).status == 200


# at the same time, and twice


def test_requests_at_the_same_time_are_done_one_after_the_other(
    server: ServerProcess, http: HttpClient
) -> None:
    topic = made(http, 3)
    path = begin(http)

    def publish(number: int) -> int:
        with HttpClient(server.url) as own:
            return own.post(
                f"{path}/messages",
                [{"topic": topic, "partition": at, "value": number} for at in range(3)],
            ).status

    with ThreadPoolExecutor(10) as pool:
        assert set(pool.map(publish, range(100))) == {200}
    assert http.post(f"{path}/commit", None).status == 200
    first = committed(server, topic, 0)
    assert sorted(map(int, first)) == list(range(100))
    assert first == committed(server, topic, 1) == committed(server, topic, 2)


def test_a_commit_beside_publishes_commits_what_was_answered(server: ServerProcess, http: HttpClient) -> None:
    for _ in range(5):
        topic = made(http)
        path = begin(http)

        def publish(number: int, path: str = path, topic: str = topic) -> int | None:
            with HttpClient(server.url) as own:
                answer = own.post(f"{path}/messages", {"topic": topic, "value": number})
                return number if answer.status == 200 else None

        def end(_: int, path: str = path) -> int:
            with HttpClient(server.url) as own:
                return own.post(f"{path}/commit", None).status

        with ThreadPoolExecutor(10) as pool:
            ends = pool.map(end, range(3))
            published = {each for each in pool.map(publish, range(20)) if each is not None}
            assert set(ends) == {200}
        assert {int(value) for value in committed(server, topic)} == published


def test_a_publish_that_is_sent_again_with_its_key_is_written_once(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    key = {"Idempotency-Key": f"begin-{topic}"}
    path = http.post("/transactions", {}, key).json["url"].removeprefix(server.url)
    assert http.post("/transactions", {}, key).json["url"] == server.url + path
    for what, given in (
        ("messages", {"topic": topic, "value": 1}),
        ("offsets", {"groupId": topic, "offsets": [{"topic": topic, "partition": 0, "offset": 1}]}),
    ):
        key = {"Idempotency-Key": f"{what}-{topic}"}
        answers = [http.post(f"{path}/{what}", given, key) for _ in range(3)]
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
    assert http.post(f"{path}/commit", None).status == 200
    assert committed(server, topic) == ["1"]
    assert http.post(f"{path}/messages", {"topic": topic, "value": 2}, key).status == 422


def test_more_than_the_broker_has_room_for_is_refused() -> None:
    arguments = ("--in-memory", "--http-port", "0", "--set", "kbroker.http.max.transactions=3")
    with ServerProcess(*arguments) as server, HttpClient(server.url) as http:
        paths = [begin(http) for _ in range(3)]
        full = http.post("/transactions", {})
        assert (full.status, "kbroker.http.max.transactions" in full.json["detail"]) == (429, True)
        assert http.post(f"{paths[0]}/abort", None).status == 200
        begin(http)


# time and restarts


def test_one_that_is_not_ended_in_time_is_aborted(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    path = begin(http, timeoutMs=100)
    http.post(f"{path}/messages", {"topic": topic, "value": 1})
    eventually(lambda: http.get(path).json["state"] == "CompleteAbort")
    assert "timeout" in http.get(path).json["reason"]
    answer = http.post(f"{path}/commit", None)
    assert problem(answer) == (409, "INVALID_TXN_STATE", "CompleteAbort")
    assert "100 ms" in answer.json["detail"]
    assert committed(server, topic) == []


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path), "--http-port", "0") as server:
        yield server


@pytest.mark.parametrize("given", [{"transactionalId": "orders/1"}, {}], ids=["own id", "made up"])
def test_after_a_kill_a_commit_that_was_done_is_told_and_what_was_open_can_only_be_aborted(
    durable: ServerProcess, given: dict[str, str]
) -> None:
    with HttpClient(durable.url) as http:
        topic = made(http)
        done = begin(http, **given)
        http.post(f"{done}/messages", {"topic": topic, "value": "done"})
        assert http.post(f"{done}/commit", None).status == 200
        left = begin(http)
        http.post(f"{left}/messages", {"topic": topic, "value": "left"})
    durable.kill()
    durable.start()
    with HttpClient(durable.url) as http:
        for _ in range(2):
            assert http.post(f"{done}/commit", None).json["state"] == "CompleteCommit"
        assert problem(http.post(f"{done}/abort", None)) == (409, "INVALID_TXN_STATE", "CompleteCommit")
        for what, body in (("commit", None), ("messages", {"topic": topic, "value": 1})):
            answer = http.post(f"{left}/{what}", body)
            assert problem(answer) == (409, "TRANSACTION_ABORTABLE", "Ongoing")
        assert http.post(f"{left}/abort", None).status == 200
        assert committed(durable, topic) == ['"done"']
