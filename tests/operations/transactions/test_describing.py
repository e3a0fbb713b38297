"""All transactions there are: listed, described, aborted, as far as the caller may."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TopicPartition
from kbroker.operations.group_offsets import NewOffset
from kbroker.operations.transactions.describing import TransactionPage, list_transactions, parsed_id
from kbroker.operations.transactions.errors import NoSuchTransaction, TransactionOver
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.resources import Resources
from kbroker.security.acls import AclOperation, AclResourceType
from tests.support.timed_cluster import TimedCluster

from .support import abort, addressed, begin, commit, is_stable, publish, registry


def listed(
    cluster: TimedCluster, resources: Resources | None = None, *, limit: int = 100, **which: object
) -> TransactionPage:
    steps = list_transactions(resources or cluster.resources(), limit=limit, **which)  # type: ignore[arg-type]
    return cluster.result(cluster.broker.long_requests.run(steps))


def names(page: TransactionPage) -> list[str]:
    return [each.id.transactional_id for each in page.transactions]


def kafka_transaction(cluster: TimedCluster, name: str, version: int) -> ProducerIdAndEpoch:
    """One that a Kafka client has open."""
    coordinator, now_ms = cluster.broker.transactions, cluster.scheduler.now_ms
    producer = cluster.result(coordinator.init_producer_id(name, 60_000, None, now_ms))
    added = coordinator.add_partitions(name, producer, [TopicPartition("t", 1)], version, now_ms)
    cluster.result(added)
    return producer


def test_all_are_listed_with_their_ids(cluster: TimedCluster) -> None:
    ended, open_ = begin(cluster, "b"), begin(cluster, "c")
    publish(cluster, ended, "t", "1")
    publish(cluster, open_, "t", "2")
    commit(cluster, ended)
    producer = kafka_transaction(cluster, "a", 2)
    page = listed(cluster)
    assert [(str(each.id), each.state) for each in page.transactions] == [
        (f"a:{producer.producer_id}:0", "Ongoing"),
        (str(ended.id), "CompleteCommit"),
        (str(open_.id), "Ongoing"),
    ]
    assert not page.more
    for each in page.transactions:
        assert registry(cluster).describe(cluster.resources(), str(each.id)).state == each.state


def test_they_come_in_pages_and_as_they_are_asked_for(cluster: TimedCluster) -> None:
    open_ = [begin(cluster, f"id-{number}") for number in range(5)]
    publish(cluster, open_[0], "t", "1")
    cluster.scheduler.pass_ms(2_000)
    publish(cluster, open_[1], "t", "1")
    publish(cluster, open_[2], "t", "1")
    commit(cluster, open_[2])
    page = listed(cluster, limit=2)
    assert (names(page), page.more) == (["id-0", "id-1"], True)
    page = listed(cluster, limit=3, after="id-1")
    assert (names(page), page.more) == (["id-2", "id-3", "id-4"], False)
    assert names(listed(cluster, states=["Ongoing"])) == ["id-0", "id-1"]
    assert names(listed(cluster, duration_ms=1_000)) == ["id-0"]
    cluster.scheduler.pass_ms(2_000)
    assert names(listed(cluster, duration_ms=1_000)) == ["id-0", "id-1"]
    assert names(listed(cluster, prefix="id-4")) == ["id-4"]
    assert names(listed(cluster, producer_ids=[open_[3].id.producer.producer_id])) == ["id-3"]
    assert names(listed(cluster, states=["Nonsense"])) == []


def test_an_open_one_tells_its_partitions_and_since_when(cluster: TimedCluster) -> None:
    transaction = begin(cluster, "a", timeout_ms=30_000)
    cluster.scheduler.pass_ms(1_000)
    publish(cluster, transaction, "t", "1", partition=1)
    publish(cluster, transaction, "u", "2")
    cluster.result(transaction.add_offsets(cluster.resources(), "g", [NewOffset("t", 0, 1)]))
    described = registry(cluster).describe(cluster.resources(), str(transaction.id))
    assert (described.start_ms, described.timeout_ms) == (cluster.scheduler.now_ms, 30_000)
    assert list(described.topics) == ["__consumer_offsets", "t", "u"]


@pytest.mark.parametrize("version", [0, 2])
def test_what_a_kafka_client_has_left_open_is_aborted_and_the_client_fenced(
    cluster: TimedCluster, version: int
) -> None:
    producer = kafka_transaction(cluster, "a", version)
    cluster.produce(
        "t",
        1,
        b"left",
        producer_id=producer.producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    assert not is_stable(cluster, "t", 1)
    ((id_, *_),) = listed(cluster).transactions
    for _ in range(2):
        cluster.result(registry(cluster).abort(cluster.resources(), str(id_)))
        assert is_stable(cluster, "t", 1)
        assert registry(cluster).describe(cluster.resources(), str(id_)).state == "CompleteAbort"
    end = cluster.broker.transactions.end_transaction("a", producer, commit=True, version=version, now_ms=0)
    with pytest.raises(Exception, match=r"epoch|does not allow"):
        cluster.result(end)


def test_an_id_means_one_transaction_and_no_later_one(cluster: TimedCluster) -> None:
    first = begin(cluster, "a")
    publish(cluster, first, "t", "1")
    abort(cluster, first)
    second = begin(cluster, "a")
    publish(cluster, second, "t", "2")
    third = str(second.id).removesuffix(str(second.id.producer.producer_epoch)) + "99"
    cluster.result(registry(cluster).abort(cluster.resources("admin"), str(second.id)))
    for other in (str(first.id), third):
        with pytest.raises(TransactionOver):
            registry(cluster).describe(cluster.resources("admin"), other)
        with pytest.raises(TransactionOver):
            cluster.result(registry(cluster).abort(cluster.resources("admin"), other))


def test_transactional_ids_may_have_any_characters(cluster: TimedCluster) -> None:
    for name in ("a:b", "a/b c?", ":", "ä\u2603", "..", "7:8"):
        transaction = begin(cluster, name)
        assert parsed_id(str(transaction.id)) == transaction.id
        assert registry(cluster).describe(cluster.resources("x"), str(transaction.id)).state == "Empty"


class Acls:
    """An authorizer that allows what it is told."""

    def __init__(self, *allowed: tuple[str, AclOperation, AclResourceType, str]) -> None:
        self.allowed = set(allowed)

    def authorize(self, caller: object, operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        return (caller.principal.name, operation, kind, name) in self.allowed  # type: ignore[attr-defined]

    def authorize_by_resource_type(
        self, caller: object, operation: AclOperation, kind: AclResourceType
    ) -> bool:
        user = caller.principal.name  # type: ignore[attr-defined]
        return any((user, operation, kind) == each[:3] for each in self.allowed)


def allow(cluster: TimedCluster, allowed: Iterable[tuple[str, AclOperation, AclResourceType, str]]) -> None:
    cluster.broker.authorizer = Acls(*allowed)  # type: ignore[assignment]


TOPIC, GROUP, ID = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID


def test_rights_are_those_that_kafka_asks_for(cluster: TimedCluster) -> None:
    write, read = AclOperation.WRITE, AclOperation.READ
    everything = [
        ("ann", write, ID, "orders"),
        ("ann", write, TOPIC, "t"),
        ("ann", read, TOPIC, "u"),
        ("ann", read, GROUP, "g"),
    ]
    ann = cluster.resources("ann")

    def work() -> None:
        transaction = begin(cluster, "orders", resources=cluster.resources("ann"))
        ann = cluster.resources("ann")
        cluster.result(transaction.publish(ann, addressed("t", "1")))
        cluster.result(transaction.add_offsets(ann, "g", [NewOffset("u", 0, 1)]))
        cluster.result(transaction.commit(ann))

    allow(cluster, everything)
    work()
    for missing in everything:
        allow(cluster, [each for each in everything if each != missing])
        with pytest.raises(ApiError) as refusal:
            work()
        assert refusal.value.code.name == f"{missing[2].name}_AUTHORIZATION_FAILED"
        assert is_stable(cluster, "t")
    assert ann.principal is not None


def test_who_may_write_to_any_topic_needs_no_transactional_id(cluster: TimedCluster) -> None:
    allow(cluster, [])
    with pytest.raises(ApiError) as refusal:
        begin(cluster, resources=cluster.resources("ann"))
    assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allow(cluster, [("ann", AclOperation.WRITE, TOPIC, "t")])
    ann = cluster.resources("ann")
    transaction = begin(cluster, resources=ann)
    cluster.result(transaction.publish(ann, addressed("t", "1")))
    assert names(listed(cluster, ann)) == [transaction.id.transactional_id]
    assert registry(cluster).describe(ann, str(transaction.id)).state == "Ongoing"
    bob = cluster.resources("bob")
    assert names(listed(cluster, bob)) == []
    for call in (registry(cluster).describe, registry(cluster).abort, registry(cluster).commit):
        with pytest.raises(ApiError) as refusal:
            call(bob, str(transaction.id))
        assert refusal.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    cluster.result(transaction.commit(ann))


def test_who_may_only_describe_sees_the_topics_that_they_may_see(cluster: TimedCluster) -> None:
    transaction = begin(cluster, "orders")
    publish(cluster, transaction, "t", "1")
    publish(cluster, transaction, "u", "1")
    describe = AclOperation.DESCRIBE
    allow(cluster, [("bob", describe, ID, "orders"), ("bob", describe, TOPIC, "u")])
    bob = cluster.resources("bob")
    described = registry(cluster).describe(bob, str(transaction.id))
    assert described.topics == {"u": [0]}
    assert names(listed(cluster, bob)) == ["orders"]
    with pytest.raises(ApiError):
        registry(cluster).abort(bob, str(transaction.id))


def test_rights_that_are_taken_away_end_the_work(cluster: TimedCluster) -> None:
    rights = [("ann", AclOperation.WRITE, ID, "orders"), ("ann", AclOperation.WRITE, TOPIC, "t")]
    allow(cluster, rights)
    ann = cluster.resources("ann")
    transaction = begin(cluster, "orders", resources=ann)
    cluster.result(transaction.publish(ann, addressed("t", "1")))
    allow(cluster, [rights[1]])
    ann = cluster.resources("ann")
    for call in (
        transaction.commit(ann),
        transaction.abort(ann),
        transaction.publish(ann, addressed("t", "1")),
    ):
        with pytest.raises(ApiError):
            cluster.result(call)
    assert is_stable(cluster, "t")


def test_nothing_is_known_of_a_transactional_id_that_never_was(cluster: TimedCluster) -> None:
    for call in (registry(cluster).describe, registry(cluster).abort, registry(cluster).commit):
        with pytest.raises(NoSuchTransaction):
            cluster.result(call(cluster.resources(), "never:1:1"))  # type: ignore[arg-type]
