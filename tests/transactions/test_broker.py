"""Transactions through the whole broker: logs, groups, long polls, restarts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.storage.errors import DiskFull
from kbroker.storage.memory import MemoryDirectory, MemoryLog
from tests.handlers.conftest import Cluster
from tests.support.late_logs import LateDirectory

from .broker_support import (
    READ_COMMITTED,
    TransactionalClient,
    committed_values,
    fetch,
    fetched_offset,
    produce_error,
    use_slow_store,
)


@pytest.fixture(params=[MemoryDirectory, LateDirectory], ids=["memory", "late"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    cluster = Cluster({"node.id": "1"}, request.param())
    cluster.create("topic", 2)
    yield cluster
    cluster.catalog.close()


@pytest.fixture
def client(cluster: Cluster) -> TransactionalClient:
    client = TransactionalClient(cluster)
    client.init()
    return client


def values(cluster: Cluster, partition: int = 0) -> list[bytes]:
    return committed_values(cluster.broker.find_log("topic", partition))


def last_stable_offset(cluster: Cluster) -> int:
    wanted = ListOffsetsTopic("topic", [ListOffsetsPartition(0, timestamp=-1)])
    answer = cluster.send(ListOffsetsRequest(-1, READ_COMMITTED, [wanted]), 4)
    return int(answer.topics[0].partitions[0].offset)


# visibility


@pytest.mark.parametrize("version", [9, 12])
def test_a_transaction_shows_when_it_commits(cluster: Cluster, client: TransactionalClient, version) -> None:
    if version == 9:
        client.add("topic", 0, 1)
    client.produce("topic", b"a", version=version)
    client.produce("topic", b"b", partition=1, version=version)
    assert values(cluster) == values(cluster, 1) == []
    assert last_stable_offset(cluster) == 0
    client.end(version=5 if version == 12 else 3)
    assert values(cluster) == [b"a"]
    assert values(cluster, 1) == [b"b"]
    assert last_stable_offset(cluster) == 2


def test_an_aborted_transaction_never_shows(cluster: Cluster, client: TransactionalClient) -> None:
    client.produce("topic", b"aborted")
    client.end(commit=False)
    client.produce("topic", b"committed")
    client.end()
    assert values(cluster) == [b"committed"]
    (aborted,) = fetch(cluster, "topic").responses[0].partitions[0].aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (client.producer.producer_id, 0)
    assert fetch(cluster, "topic", committed=False).responses[0].partitions[0].aborted_transactions is None


def test_what_comes_after_an_open_transaction_waits_for_it(cluster: Cluster, client) -> None:
    client.produce("topic", b"open")
    other = TransactionalClient(cluster, "other")
    other.init()
    other.produce("topic", b"later")
    other.end()
    cluster.produce("topic", cluster.now_ms)
    assert values(cluster) == []
    client.end()
    assert values(cluster) == [b"open", b"later", b"value"]


@pytest.mark.parametrize("commit", [True, False])
def test_a_waiting_committed_fetch_wakes_when_the_transaction_ends(cluster: Cluster, client, commit) -> None:
    client.produce("topic", b"open")
    answer = fetch(cluster, "topic", max_wait_ms=60_000)
    assert isinstance(answer, Pending)
    client.produce("topic", b"more")
    assert not answer.done
    client.end(commit=commit)
    (partition,) = answer.result().responses[0].partitions
    assert partition.last_stable_offset == 3
    assert len(partition.records) > 0
    assert len(partition.aborted_transactions) == (0 if commit else 1)


# producing


def test_a_batch_is_written_once_its_partition_is_in_the_transaction(cluster: Cluster, client) -> None:
    store = use_slow_store(cluster)
    client.init()
    store.held = True
    answer = client.produce("topic", b"a")
    assert not answer.done
    assert cluster.broker.find_log("topic", 0).log_end_offset == 0
    store.finish()
    cluster.deliver()
    assert produce_error(answer.result()) == ErrorCode.NONE
    assert cluster.broker.find_log("topic", 0).log_end_offset == 1
    assert produce_error(client.produce("topic", b"b")) == ErrorCode.NONE  # nothing to wait for any more


def test_a_batch_whose_partition_could_not_be_added_is_to_be_sent_again(cluster: Cluster, client) -> None:
    store = use_slow_store(cluster)
    client.init()
    store.held = True
    answer = client.produce("topic", b"a")
    store.finish(error=OSError("no space"))
    assert produce_error(answer.result()) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.broker.find_log("topic", 0).log_end_offset == 0


def test_a_batch_whose_producer_has_gone_is_not_written(cluster: Cluster, client) -> None:
    store = use_slow_store(cluster)
    client.init()
    store.held = True
    client.produce("topic", b"a").abandon()
    store.finish()
    assert cluster.broker.find_log("topic", 0).log_end_offset == 0


def test_nothing_is_written_after_the_end(cluster: Cluster, client: TransactionalClient) -> None:
    client.add("topic")
    client.produce("topic", b"a", version=11)
    client.end(version=3)
    assert produce_error(client.produce("topic", b"late", version=11)) == ErrorCode.TRANSACTION_ABORTABLE
    assert produce_error(client.produce("topic", b"late", version=10)) == ErrorCode.INVALID_TXN_STATE
    assert values(cluster) == [b"a"]


def test_verification_can_be_switched_off(cluster: Cluster) -> None:
    cluster.broker = cluster.start({"transaction.partition.verification.enable": "false"})
    client = TransactionalClient(cluster)
    client.init()
    assert produce_error(client.produce("topic", b"a", version=9)) == ErrorCode.NONE


@pytest.mark.parametrize("cluster", [MemoryDirectory], ids=["memory"], indirect=True)  # late logs show first
@pytest.mark.parametrize(
    ("version", "refusal"),
    [(11, ErrorCode.NOT_ENOUGH_REPLICAS), (12, ErrorCode.INVALID_PRODUCER_EPOCH)],
)
def test_nothing_is_written_between_the_answer_and_the_markers(
    cluster: Cluster, version: int, refusal: ErrorCode
) -> None:
    """As when it was sent together with EndTxn: it is executed as soon as that is answered."""
    store = use_slow_store(cluster)
    client = TransactionalClient(cluster)
    client.init()
    client.add("topic")
    client.produce("topic", b"a", version=version)
    codes: list[int] = []

    def write_late(_: object) -> None:
        assert cluster.broker.find_log("topic", 0).last_stable_offset == 0
        answer = client.produce("topic", b"late", version=version)
        if isinstance(answer, Pending):
            answer.then(lambda settled: codes.append(produce_error(settled.result())))
        else:
            codes.append(produce_error(answer))

    store.held = True
    client.end(version=5 if version == 12 else 4).then(write_late)
    store.finish(1)
    assert codes == [refusal]
    assert values(cluster) == [b"a"]
    assert last_stable_offset(cluster) == 2


@pytest.mark.parametrize("topic", ["topic", "synced"])
def test_who_asks_after_the_answer_sees_the_transaction(cluster: Cluster, topic: str) -> None:
    store = use_slow_store(cluster)
    cluster.create("synced", **{"flush.messages": "1"})
    client = TransactionalClient(cluster)
    client.init()
    client.produce(topic, b"a")
    store.held = True
    ending = client.end()
    assert not ending.done
    store.finish(1)
    cluster.deliver()
    assert ending.result().error_code == ErrorCode.NONE
    assert committed_values(cluster.broker.find_log(topic, 0)) == [b"a"]


# offsets


def test_offsets_count_when_the_transaction_commits(cluster: Cluster, client) -> None:
    client.commit_offset("group", "topic", 5)
    assert fetched_offset(cluster, "group", "topic", require_stable=False) == (0, -1)
    assert fetched_offset(cluster, "group", "topic", require_stable=True) == (
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        -1,
    )
    client.end()
    assert fetched_offset(cluster, "group", "topic", require_stable=True) == (0, 5)


def test_offsets_of_an_aborted_transaction_do_not_count(cluster: Cluster, client) -> None:
    client.add_offsets("group")
    client.commit_offset("group", "topic", 5, version=3)
    client.end(commit=False, version=3)
    assert fetched_offset(cluster, "group", "topic", require_stable=True) == (0, -1)


def test_a_later_commit_outside_the_transaction_wins(cluster: Cluster, client) -> None:
    client.commit_offset("group", "topic", 5)
    topics = [OffsetCommitRequestTopic("topic", partitions=[OffsetCommitRequestPartition(0, 9)])]
    cluster.send(OffsetCommitRequest("group", topics=topics), 8)
    client.end()
    assert fetched_offset(cluster, "group", "topic", require_stable=True) == (0, 9)


# ends that meet trouble


def test_a_deleted_topic_does_not_hold_up_the_end(cluster: Cluster, client) -> None:
    doomed = cluster.create("doomed")
    client.produce("doomed", b"a")
    client.produce("topic", b"a")
    cluster.broker.topics.delete(doomed).result()
    assert client.end().error_code == ErrorCode.NONE
    assert cluster.broker.transactions.describe("id").state == "CompleteCommit"
    assert values(cluster) == [b"a"]


def test_a_full_disk_delays_the_end_until_there_is_room(
    cluster: Cluster, client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.produce("topic", b"a")
    client.produce("topic", b"b", partition=1)
    append = MemoryLog.append_control

    def full(self: MemoryLog, *arguments, **more):
        if self.partition == 1:
            raise DiskFull("no room")
        return append(self, *arguments, **more)

    monkeypatch.setattr(MemoryLog, "append_control", full)
    assert client.end().error_code == ErrorCode.NONE
    assert cluster.broker.transactions.describe("id").state == "PrepareCommit"
    assert produce_error(client.produce("topic", b"next")) == ErrorCode.CONCURRENT_TRANSACTIONS
    monkeypatch.undo()
    cluster.now_ms += 2000
    cluster.broker.transactions.tick(cluster.now_ms)
    cluster.deliver()
    assert cluster.broker.transactions.describe("id").state == "CompleteCommit"
    assert values(cluster, 1) == [b"b"]
    assert values(cluster) == [b"a"]


def test_what_was_prepared_is_ended_by_the_next_start(
    cluster: Cluster, client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.produce("topic", b"a")
    client.produce("topic", b"b", partition=1)
    client.commit_offset("group", "topic", 5)
    with monkeypatch.context() as patch:
        patch.setattr("kbroker.transactions.markers.TransactionMarkers._mark", _killed)
        with pytest.raises(Killed):
            client.end()
    cluster.broker = cluster.start({"node.id": "1"})
    cluster.deliver()
    assert values(cluster) == [b"a"]
    assert values(cluster, 1) == [b"b"]
    assert fetched_offset(cluster, "group", "topic", require_stable=True) == (0, 5)
    assert cluster.broker.transactions.describe("id").state == "CompleteCommit"


def test_an_open_transaction_is_aborted_by_its_timeout_after_a_restart(cluster: Cluster, client) -> None:
    client.produce("topic", b"a")
    cluster.broker = cluster.start({"node.id": "1"})
    cluster.now_ms += 80_000
    cluster.broker.transactions.tick(cluster.now_ms)
    assert values(cluster) == []
    assert last_stable_offset(cluster) == 2
    assert produce_error(client.produce("topic", b"late")) == ErrorCode.INVALID_PRODUCER_EPOCH


class Killed(BaseException):
    """The process dies here."""


def _killed(*_: object) -> None:
    raise Killed
