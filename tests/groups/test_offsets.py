"""Offsets: committed by whom, fetched when, deleted, expired, and held back by transactions."""

from __future__ import annotations

import pytest
from classic_support import GROUP, RANGE, FakeTopics, Simulation, SlowStore, failure, subscription

from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupError,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from kbroker.coordinators.groups.offsets.commit_grouping import CommitErrors
from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.coordinators.groups.store import TopicPartition

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 0)
READS_ORDERS = (("range", subscription("orders")),)
DAY_MS = 86_400_000
PRODUCER = 4711


@pytest.fixture
def simulation() -> Simulation:
    return Simulation()


def commit(simulation, offset=1, partition=ORDERS, *, metadata="", leader_epoch=-1, **request):
    new = NewOffset(partition.topic, partition.partition, offset, leader_epoch, metadata)
    return simulation.coordinator.offsets.commit(
        CommitRequest(request.pop("group_id", GROUP), [new], **request), simulation.now_ms
    )


def commit_error(simulation, *arguments, **keywords) -> GroupError | None:
    return the_error(commit(simulation, *arguments, **keywords).result())


def the_error(errors: CommitErrors) -> GroupError | None:
    assert len(errors) <= 1
    return next(iter(errors.values()), None)


def committed(simulation, partition=ORDERS, **keywords):
    result = simulation.coordinator.offsets.fetch(GROUP, [partition], **keywords).result()[partition]
    return result.offset if hasattr(result, "offset") else result


def transactional_commit(simulation, offset=1, partition=ORDERS, producer_id=PRODUCER, **request):
    request = CommitRequest(GROUP, [NewOffset(partition.topic, partition.partition, offset)], **request)
    pending = simulation.coordinator.offsets.commit_in_transaction(producer_id, request, simulation.now_ms)
    return the_error(pending.result())


# who may commit


def test_anyone_may_commit_to_a_group_without_members(simulation):
    assert commit_error(simulation, 42) is None
    assert committed(simulation) == 42
    assert simulation.coordinator.list_groups() == [(GROUP, "", "Empty", "classic")]


def test_a_member_commits_with_its_generation(simulation):
    leader, _ = simulation.stable_group()
    assert commit_error(simulation, 42, member_id=leader, generation_or_epoch=1) is None
    assert committed(simulation) == 42


def test_nobody_else_commits_while_a_group_has_members(simulation):
    simulation.stable_group()
    assert isinstance(commit_error(simulation), UnknownMemberId)


def test_an_unknown_member_does_not_commit(simulation):
    simulation.stable_group()
    assert isinstance(commit_error(simulation, member_id="x", generation_or_epoch=1), UnknownMemberId)


def test_a_member_of_an_older_generation_does_not_commit(simulation):
    leader, _ = simulation.stable_group()
    assert isinstance(commit_error(simulation, member_id=leader, generation_or_epoch=0), IllegalGeneration)


def test_a_member_may_commit_while_others_join(simulation):
    leader, _ = simulation.stable_group()
    simulation.join_with_id()
    assert commit_error(simulation, member_id=leader, generation_or_epoch=1) is None


def test_a_member_without_an_assignment_does_not_commit(simulation):
    member, _ = simulation.join_with_id()
    simulation.advance(100)
    error = commit_error(simulation, member_id=member, generation_or_epoch=1)
    assert isinstance(error, RebalanceInProgress)


def test_a_replaced_static_member_does_not_commit(simulation):
    join = simulation.join(group_instance_id="a")
    simulation.advance(100)
    simulation.settle([join.result()])
    simulation.join(group_instance_id="a")
    old = join.result().member_id
    error = commit_error(simulation, member_id=old, generation_or_epoch=1, group_instance_id="a")
    assert isinstance(error, FencedInstanceId)


@pytest.mark.parametrize(("api_version", "error"), [(8, IllegalGeneration), (9, GroupIdNotFound)])
def test_a_generation_needs_a_group(simulation, api_version, error):
    problem = commit_error(simulation, member_id="x", generation_or_epoch=1, api_version=api_version)
    assert isinstance(problem, error)


def test_a_commit_keeps_the_session_alive(simulation):
    leader, _ = simulation.stable_group()
    simulation.advance(9_000)
    commit(simulation, member_id=leader, generation_or_epoch=1)
    simulation.advance(9_000)
    assert [m.member_id for m in simulation.group.members] == [leader]


@pytest.mark.parametrize("partition", [TopicPartition("nothing", 0), TopicPartition("orders", 4)])
def test_a_partition_that_does_not_exist_has_no_offset(simulation, partition):
    assert isinstance(commit_error(simulation, partition=partition), UnknownTopicOrPartition)
    assert simulation.coordinator.list_groups() == []


def test_each_partition_has_its_own_result(simulation):
    offsets = [
        NewOffset("orders", 0, 5),
        NewOffset("nothing", 0, 5),
        NewOffset("orders", 1, 5, metadata="x" * 4097),
    ]
    errors = simulation.coordinator.offsets.commit(CommitRequest(GROUP, offsets), 0).result()
    assert {partition: type(error) for partition, error in errors.items()} == {
        TopicPartition("nothing", 0): UnknownTopicOrPartition,
        TopicPartition("orders", 1): OffsetMetadataTooLarge,
    }
    assert committed(simulation, ORDERS) == 5
    assert committed(simulation, TopicPartition("orders", 1)) is None


def test_metadata_and_leader_epoch_come_back(simulation):
    commit(simulation, 7, metadata="m" * 4096, leader_epoch=3)
    result = simulation.coordinator.offsets.fetch(GROUP, [ORDERS]).result()[ORDERS]
    assert (result.offset, result.leader_epoch, result.metadata) == (7, 3, "m" * 4096)


# durability


def test_a_commit_is_answered_and_shown_once_it_is_stored():
    store = SlowStore()
    simulation = Simulation(store)
    pending = commit(simulation, 42)
    assert not pending.done
    assert committed(simulation) is None
    store.finish()
    assert pending.result() == {}
    assert committed(simulation) == 42


def test_a_commit_that_cannot_be_stored_fails():
    store = SlowStore()
    simulation = Simulation(store)
    pending = commit(simulation, 42)
    store.finish(OSError("disk full"))
    assert isinstance(failure(pending), CoordinatorNotAvailable)
    assert committed(simulation) is None


def test_a_stable_fetch_waits_for_commits_under_way():
    store = SlowStore()
    simulation = Simulation(store)
    commit(simulation, 42)
    fetch = simulation.coordinator.offsets.fetch(GROUP, [ORDERS], require_stable=True)
    assert not fetch.done
    store.finish()
    assert fetch.result()[ORDERS].offset == 42


def test_offsets_survive_a_restart(simulation):
    commit(simulation, 42, metadata="m")
    simulation.restart()
    assert committed(simulation) == 42
    assert simulation.coordinator.list_groups() == [(GROUP, "", "Empty", "classic")]


# fetching


def test_a_missing_group_has_no_offsets(simulation):
    assert simulation.coordinator.offsets.fetch("x", [ORDERS]).result() == {ORDERS: None}
    assert simulation.coordinator.offsets.fetch("x", None).result() == {}


def test_all_offsets_of_a_group_can_be_asked_for(simulation):
    commit(simulation, 1, ORDERS)
    commit(simulation, 2, PAYMENTS)
    results = simulation.coordinator.offsets.fetch(GROUP, None).result()
    assert {partition: result.offset for partition, result in results.items()} == {ORDERS: 1, PAYMENTS: 2}


# deleting


def delete(simulation, *partitions):
    return simulation.coordinator.offsets.delete(GROUP, partitions).result()


def test_offsets_of_an_empty_group_are_deleted(simulation):
    commit(simulation)
    assert delete(simulation, ORDERS) == {ORDERS: None}
    assert committed(simulation) is None
    simulation.restart()
    assert GROUP not in simulation.coordinator.groups


def test_offsets_of_a_subscribed_topic_are_not_deleted(simulation):
    (member,) = simulation.stable_group(1, protocols=READS_ORDERS)
    for partition in (ORDERS, PAYMENTS):
        commit(simulation, 1, partition, member_id=member, generation_or_epoch=1)
    results = delete(simulation, ORDERS, PAYMENTS, TopicPartition("nothing", 0))
    errors = [type(error) for error in results.values()]
    assert errors == [GroupSubscribedToTopic, type(None), UnknownTopicOrPartition]
    assert committed(simulation, ORDERS) == 1
    assert committed(simulation, PAYMENTS) is None


def test_offsets_of_another_protocol_type_are_not_deleted_while_it_has_members(simulation):
    simulation.stable_group(protocol_type="connect", protocols=RANGE)
    with pytest.raises(NonEmptyGroup):
        delete(simulation, ORDERS)


def test_deleting_needs_a_group(simulation):
    with pytest.raises(GroupIdNotFound):
        delete(simulation, ORDERS)
    with pytest.raises(InvalidGroupId):
        simulation.coordinator.offsets.delete("", [ORDERS])


def test_deleting_a_group_deletes_its_offsets(simulation):
    commit(simulation)
    simulation.coordinator.delete_group(GROUP, simulation.now_ms)
    assert committed(simulation) is None
    simulation.restart()
    assert committed(simulation) is None


def test_offsets_go_with_their_topic():
    store = SlowStore()
    simulation = Simulation(store, FakeTopics(orders=1, payments=1))
    for partition in (ORDERS, PAYMENTS):
        commit(simulation, 1, partition)
    store.finish()
    commit(simulation, 2, ORDERS)
    del simulation.topics.partitions["orders"]
    simulation.coordinator.topic_deleted("orders")
    store.finish()
    store.finish()
    assert committed(simulation, ORDERS) is None, "also what was on its way to the store"
    assert committed(simulation, PAYMENTS) == 1
    simulation.restart()
    assert committed(simulation, ORDERS) is None


# expiry


def test_offsets_of_a_simple_group_expire_after_their_commit(simulation):
    commit(simulation)
    simulation.advance(6 * DAY_MS)
    commit(simulation, partition=PAYMENTS)
    simulation.advance(DAY_MS + 600_000)
    assert committed(simulation, ORDERS) is None
    assert committed(simulation, PAYMENTS) == 1
    simulation.advance(6 * DAY_MS)
    assert simulation.coordinator.list_groups() == [], "nothing is left of the group"
    assert simulation.store.load().offsets.get(GROUP) is None


def test_offsets_of_a_group_expire_after_it_became_empty(simulation):
    (member,) = simulation.stable_group(1, session_timeout_ms=1_800_000, protocols=READS_ORDERS)
    commit(simulation, member_id=member, generation_or_epoch=1)
    for _ in range(10 * 72):
        simulation.advance(1_200_000)
        simulation.heartbeat(member, 1)
    assert committed(simulation) == 1
    simulation.leave(member)
    simulation.advance(7 * DAY_MS - 600_000)
    assert committed(simulation) == 1
    simulation.advance(1_200_000)
    assert committed(simulation) is None
    assert simulation.coordinator.list_groups() == []


def test_offsets_of_a_topic_no_longer_subscribed_expire_while_the_group_lives(simulation):
    (member,) = simulation.stable_group(1, session_timeout_ms=1_800_000, protocols=READS_ORDERS)
    for partition in (ORDERS, PAYMENTS):
        commit(simulation, 1, partition, member_id=member, generation_or_epoch=1)
    for _ in range(8 * 72):
        simulation.advance(1_200_000)
        simulation.heartbeat(member, 1)
    assert committed(simulation, ORDERS) == 1
    assert committed(simulation, PAYMENTS) is None


def test_a_retention_time_of_the_commit_itself_counts_first(simulation):
    commit(simulation, retention_ms=3_600_000)
    simulation.advance(3_000_000)
    assert committed(simulation) == 1
    simulation.advance(1_200_000)
    assert committed(simulation) is None


def test_an_offset_that_is_being_committed_again_does_not_expire():
    store = SlowStore()
    simulation = Simulation(store)
    commit(simulation, 1)
    store.finish()
    simulation.now_ms += 30 * DAY_MS
    pending = commit(simulation, 2)
    simulation.coordinator.offsets.expire(simulation.now_ms)
    while store.waiting:
        store.finish()
    assert pending.result() == {}
    assert committed(simulation) == 2


def test_the_longest_retention_time_lasts(simulation):
    commit(simulation, retention_ms=2**63 - 1)
    simulation.advance(30 * DAY_MS)
    assert committed(simulation) == 1
    stored = simulation.store.load().offsets[GROUP][ORDERS]
    assert stored.expire_timestamp_ms == 2**63 - 1  # no more fits into the catalog


def test_the_retention_is_a_setting():
    simulation = Simulation(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
    commit(simulation)
    simulation.advance(59_999)
    assert committed(simulation) == 1
    simulation.advance(1_001)
    assert committed(simulation) is None


def test_a_group_without_offsets_is_forgotten_once_empty(simulation):
    simulation.leave(*simulation.stable_group())
    simulation.advance(600_000)
    assert simulation.coordinator.list_groups() == []


# transactions


def test_offsets_of_a_transaction_count_when_it_commits(simulation):
    commit(simulation, 1)
    assert transactional_commit(simulation, 9) is None
    assert committed(simulation) == 1
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=True)
    assert committed(simulation) == 9
    simulation.restart()
    assert committed(simulation) == 9


def test_offsets_of_an_aborted_transaction_never_count(simulation):
    transactional_commit(simulation, 9)
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=False)
    assert committed(simulation) is None
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=True)
    assert committed(simulation) is None


def test_a_stable_fetch_is_told_of_an_open_transaction(simulation):
    commit(simulation, 1)
    transactional_commit(simulation, 9)
    assert isinstance(committed(simulation, require_stable=True), UnstableOffsetCommit)
    assert committed(simulation, PAYMENTS, require_stable=True) is None
    fetched = simulation.coordinator.offsets.fetch(GROUP, None, require_stable=True).result()
    assert isinstance(fetched[ORDERS], UnstableOffsetCommit)
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=False)
    assert committed(simulation, require_stable=True) == 1


def test_an_open_transaction_survives_a_restart(simulation):
    transactional_commit(simulation, 9)
    simulation.restart()
    assert isinstance(committed(simulation, require_stable=True), UnstableOffsetCommit)
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=True)
    assert committed(simulation, require_stable=True) == 9


@pytest.mark.parametrize("restart", [False, True])
def test_a_commit_after_the_transactional_one_wins(simulation, restart):
    transactional_commit(simulation, 9)
    commit(simulation, 5)
    if restart:
        simulation.restart()
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=True)
    assert committed(simulation) == 5
    simulation.restart()
    assert committed(simulation) == 5


def test_a_transactional_commit_without_a_member_is_fine_also_while_there_are_members(simulation):
    simulation.stable_group()
    assert transactional_commit(simulation) is None


def test_a_transactional_commit_of_an_old_generation_is_illegal(simulation):
    leader, _ = simulation.stable_group()
    error = transactional_commit(simulation, member_id=leader, generation_or_epoch=0)
    assert isinstance(error, IllegalGeneration)


def test_a_transactional_commit_with_a_generation_needs_a_group(simulation):
    assert isinstance(transactional_commit(simulation, generation_or_epoch=1), IllegalGeneration)


def test_a_transactional_commit_is_fine_before_the_assignment(simulation):
    member, _ = simulation.join_with_id()
    simulation.advance(100)
    assert transactional_commit(simulation, member_id=member, generation_or_epoch=1) is None


def test_an_open_transaction_keeps_offsets_and_group_from_expiring(simulation):
    commit(simulation)
    transactional_commit(simulation, 9)
    simulation.advance(30 * DAY_MS)
    assert committed(simulation) == 1
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=False)
    simulation.advance(600_000)
    assert committed(simulation) is None


def test_deleted_offsets_do_not_come_back_with_the_transaction(simulation):
    transactional_commit(simulation, 9)
    delete(simulation, ORDERS)
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=True)
    assert committed(simulation) is None
    simulation.restart()
    assert committed(simulation) is None


def test_offsets_whose_topic_went_just_before_a_crash_are_gone(simulation):
    commit(simulation)
    transactional_commit(simulation, 9, TopicPartition("orders", 1))
    commit(simulation, 2, PAYMENTS)
    partitions = simulation.topics.partitions.pop("orders")
    simulation.restart()
    simulation.topics.partitions["orders"] = partitions
    simulation.coordinator.offsets.end_transaction(PRODUCER, commit=True)
    assert committed(simulation, ORDERS) is None
    assert committed(simulation, TopicPartition("orders", 1)) is None
    assert committed(simulation, PAYMENTS) == 2
