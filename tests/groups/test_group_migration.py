"""Groups that go from the classic to the consumer protocol and back with members in them."""

from __future__ import annotations

from typing import Any

import pytest
from migration_support import Broker, Classic, encoded

from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.classic.protocol import JoinRequest, JoinResult, LeavingMember, SyncRequest
from kbroker.coordinators.groups.consumer.settings import MigrationPolicy
from kbroker.coordinators.groups.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)


def stable_classic_group(broker: Broker, count: int = 1, **fields: Any) -> list[Classic]:
    """That many classic members, the partitions of topic t dealt out among them."""
    members = [Classic(broker, **fields).join() for _ in range(count)]
    broker.pass_time(3_000)
    for member in members:
        member.joined()
    dealt = {member.member_id: {"t": set(range(number, 4, count))} for number, member in enumerate(members)}
    members[0].sync(**dealt)
    for member in members[1:]:
        member.sync()
    assert broker.group.state == "Stable"
    return members


@pytest.fixture
def broker() -> Broker:
    return Broker()


# upgrade


def test_a_consumer_that_joins_a_classic_group_turns_it_into_a_consumer_group(broker: Broker):
    (classic,) = stable_classic_group(broker)
    generation = classic.generation_id
    joined = broker.consumer_heartbeat("c", 0)
    assert broker.group.type == "consumer"
    assert joined.member_epoch == generation + 1
    assert broker.assigned(joined) == {}

    with pytest.raises(RebalanceInProgress):
        classic.heartbeat()
    classic.join()
    assert classic.generation_id == generation  # it has to give up partitions first
    assert classic.sync() == {"t": {0, 1}}
    with pytest.raises(RebalanceInProgress):
        classic.heartbeat()
    classic.join()
    assert classic.generation_id == generation + 1
    assert classic.sync() == {"t": {0, 1}}
    classic.heartbeat()
    assert broker.assigned(broker.consumer_heartbeat("c", joined.member_epoch)) == {"t": {2, 3}}
    assert broker.group.state == "Stable"


def test_an_eager_member_gives_up_everything_by_joining_again(broker: Broker):
    (classic,) = stable_classic_group(broker)
    epoch = broker.consumer_heartbeat("c", 0).member_epoch
    classic.owned = {}
    classic.join()
    assert classic.generation_id == epoch
    assert classic.sync() == {"t": {0, 1}}
    assert broker.assigned(broker.consumer_heartbeat("c", epoch)) == {"t": {2, 3}}


def test_an_upgraded_group_survives_a_restart(broker: Broker):
    (classic,) = stable_classic_group(broker)
    epoch = broker.consumer_heartbeat("c", 0).member_epoch
    broker = classic.broker = broker.restarted()
    with pytest.raises(RebalanceInProgress):
        classic.heartbeat()
    classic.owned = {}
    classic.join()
    assert classic.sync() == {"t": {0, 1}}
    assert broker.consumer_heartbeat("c", epoch).member_epoch == epoch


def test_members_that_wait_for_a_rebalance_are_told_to_join_the_upgraded_group(broker: Broker):
    first, second = stable_classic_group(broker, 2)
    newcomer = Classic(broker).join()
    assert newcomer.waiting is not None
    assert not newcomer.waiting.done
    broker.consumer_heartbeat("c", 0)
    with pytest.raises(RebalanceInProgress):
        newcomer.waiting.result()
    newcomer.join()
    assert newcomer.generation_id == broker.group.assignment_epoch
    assert broker.group.member_ids == {first.member_id, second.member_id, "c", newcomer.member_id}


def test_an_empty_classic_group_becomes_a_consumer_group(broker: Broker):
    (classic,) = stable_classic_group(broker)
    classic.leave()
    assert broker.group.state == "Empty"
    assert broker.consumer_heartbeat("c", 0).member_epoch == 2
    assert broker.group.type == "consumer"


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_without_leave_to_upgrade_the_classic_group_stays(policy: MigrationPolicy):
    broker = Broker(migration_policy=policy)
    (classic,) = stable_classic_group(broker)
    with pytest.raises(GroupIdNotFound):
        broker.consumer_heartbeat("c", 0)
    classic.heartbeat()


def test_a_classic_group_larger_than_a_consumer_group_may_be_stays():
    broker = Broker(max_size=1)
    stable_classic_group(broker, 2)
    with pytest.raises(GroupIdNotFound):
        broker.consumer_heartbeat("c", 0)


def test_a_group_of_another_protocol_type_stays(broker: Broker):
    protocols = (("v1", b"x"),)
    request = JoinRequest("g", "", None, "c", "/h", 45_000, 60_000, "connect", protocols, False)
    broker.coordinator.join_group(request, broker.now_ms)
    broker.pass_time(3_000)
    with pytest.raises(GroupIdNotFound):
        broker.consumer_heartbeat("c", 0)


@pytest.mark.parametrize("assignment", [encoded({"t": {0}}, b"custom"), b"\x00", b"\x00\x00\xff"])
def test_a_group_with_assignments_that_the_broker_cannot_keep_stays(broker: Broker, assignment: bytes):
    (classic,) = stable_classic_group(broker)
    member = broker.group.members.get(classic.member_id)
    assert member is not None
    member.assignment = assignment
    with pytest.raises(GroupIdNotFound):
        broker.consumer_heartbeat("c", 0)
    assert broker.group.type == "classic"


def test_user_data_of_the_sticky_assignors_does_not_count(broker: Broker):
    (classic,) = stable_classic_group(broker)
    broker.group.protocol_name = "cooperative-sticky"
    broker.group.members.get(classic.member_id).assignment = encoded({"t": {0, 1, 2, 3}}, b"as subscribed")
    broker.consumer_heartbeat("c", 0)
    assert broker.group.type == "consumer"


def test_a_classic_member_that_does_not_join_the_new_epoch_in_time_is_removed(broker: Broker):
    (classic,) = stable_classic_group(broker, rebalance_timeout_ms=20_000)
    epoch = broker.consumer_heartbeat("c", 0).member_epoch
    for _ in range(4):
        with pytest.raises(RebalanceInProgress):
            classic.heartbeat()
        broker.pass_time(5_000)
        broker.consumer_heartbeat("c", epoch)
    with pytest.raises(UnknownMemberId):
        classic.heartbeat()
    assert list(broker.group.member_ids) == ["c"]


def test_a_classic_member_that_does_not_fetch_its_assignment_in_time_is_removed(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    Classic(broker, rebalance_timeout_ms=20_000).join()
    broker.pass_time(20_000)
    assert list(broker.group.member_ids) == ["c"]


def test_a_classic_member_has_the_session_timeout_it_asked_for(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    classic = Classic(broker, session_timeout_ms=6_000).join()
    classic.sync()
    broker.pass_time(5_999)
    assert len(broker.group.members) == 2
    broker.pass_time(1)
    assert len(broker.group.members) == 1


# classic requests to a consumer group


def test_a_classic_member_joins_a_consumer_group(broker: Broker):
    epoch = broker.consumer_heartbeat("c", 0).member_epoch
    classic = Classic(broker).join()
    result = classic.joined()
    assert result == JoinResult(classic.member_id, epoch + 1, "consumer", "range", "", [])
    assert classic.sync() == {}
    classic.heartbeat()  # c has not given up anything yet: nothing to join for
    broker.consumer_heartbeat("c", epoch, {"t": {0, 1}})
    with pytest.raises(RebalanceInProgress):
        classic.heartbeat()
    classic.join()
    assert classic.sync() == {"t": {2, 3}}


def test_with_migration_disabled_no_classic_member_joins():
    broker = Broker(migration_policy=MigrationPolicy.DISABLED)
    broker.consumer_heartbeat("c", 0)
    with pytest.raises(InconsistentGroupProtocol):
        Classic(broker).join()


def test_a_full_consumer_group_takes_no_classic_member():
    broker = Broker(max_size=1)
    broker.consumer_heartbeat("c", 0)
    with pytest.raises(GroupMaxSizeReached):
        Classic(broker).join()


def test_classic_members_need_a_protocol_in_common(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    Classic(broker).join()
    other = Classic(broker)
    other.names = ("roundrobin",)
    with pytest.raises(InconsistentGroupProtocol):
        other.join()


def test_requests_with_another_generation_or_of_other_members_are_refused(broker: Broker):
    epoch = broker.consumer_heartbeat("c", 0).member_epoch
    classic = Classic(broker).join()
    classic.generation_id += 1
    with pytest.raises(IllegalGeneration):
        classic.sync()
    with pytest.raises(IllegalGeneration):
        classic.heartbeat()
    classic.member_id, classic.generation_id = "c", epoch
    for request in (classic.sync, classic.heartbeat):
        with pytest.raises(UnknownMemberId):
            request()
    classic.member_id = "nobody"
    for request in (classic.sync, classic.heartbeat, classic.leave):
        with pytest.raises(UnknownMemberId):
            request()


def test_a_sync_with_another_protocol_is_inconsistent(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    classic = Classic(broker).join()
    request = SyncRequest("g", classic.member_id, None, classic.generation_id, "consumer", "roundrobin", {})
    with pytest.raises(InconsistentGroupProtocol):
        broker.coordinator.sync_group(request, broker.now_ms).result()


def test_a_sync_behind_the_target_is_sent_back_to_join(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    classic = Classic(broker).join()
    broker.consumer_heartbeat("d", 0)
    with pytest.raises(RebalanceInProgress):
        classic.sync()


def test_a_static_classic_member_takes_over_from_its_predecessor(broker: Broker):
    epoch = broker.consumer_heartbeat("c", 0).member_epoch
    old = Classic(broker, instance_id="i").join()
    broker.consumer_heartbeat("c", epoch, {"t": {0, 1}})
    old.join()
    assert old.sync() == {"t": {2, 3}}
    new = Classic(broker, instance_id="i").join()
    assert (new.generation_id, new.sync()) == (old.generation_id, {"t": {2, 3}})
    for request in (old.heartbeat, old.sync, old.leave):
        with pytest.raises(FencedInstanceId):
            request()


def test_an_administrator_removes_a_static_member_by_its_instance_id(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    Classic(broker, instance_id="i").join()
    leaving = [LeavingMember("", "i"), LeavingMember("", "unknown")]
    gone, unknown = broker.coordinator.leave_group("g", leaving, broker.now_ms).result()
    assert gone.error is None
    assert isinstance(unknown.error, UnknownMemberId)
    assert list(broker.group.member_ids) == ["c"]


def test_a_classic_member_commits_by_generation(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    classic = Classic(broker).join()
    group = broker.group
    group.validate_offset_commit(
        classic.member_id, None, classic.generation_id, api_version=2, transactional=False
    )
    with pytest.raises(IllegalGeneration):
        group.validate_offset_commit(
            classic.member_id, None, classic.generation_id + 1, api_version=2, transactional=False
        )


# downgrade


def test_when_the_last_consumer_leaves_the_group_is_classic_again(broker: Broker):
    (classic,) = stable_classic_group(broker)
    broker.consumer_heartbeat("c", 0)
    classic.owned = {}
    classic.join()
    classic.sync()
    broker.consumer_heartbeat("c", -1)
    assert isinstance(broker.group, ClassicGroup)
    assert broker.group.state == "PreparingRebalance"
    with pytest.raises(RebalanceInProgress):
        classic.heartbeat()
    generation = classic.generation_id
    classic.join()
    assert classic.joined().leader == classic.member_id
    assert classic.generation_id > generation
    assert classic.sync(**{classic.member_id: {"t": {0, 1, 2, 3}}}) == {"t": {0, 1, 2, 3}}
    assert broker.restarted().group.type == "classic"


def test_when_the_last_consumer_expires_the_group_is_classic_again(broker: Broker):
    (classic,) = stable_classic_group(broker)
    broker.consumer_heartbeat("c", 0)
    classic.owned = {}
    classic.join()
    classic.sync()
    for _ in range(5):
        broker.pass_time(9_000)
        if broker.group.type == "consumer":
            classic.heartbeat()
    assert broker.group.type == "classic"
    with pytest.raises(RebalanceInProgress):
        classic.heartbeat()


def test_a_group_that_all_leave_stays_a_consumer_group(broker: Broker):
    broker.consumer_heartbeat("c", 0)
    broker.consumer_heartbeat("c", -1)
    assert (broker.group.type, broker.group.state) == ("consumer", "Empty")


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE])
def test_without_leave_to_downgrade_the_consumer_group_stays(policy: MigrationPolicy):
    broker = Broker(migration_policy=policy)
    broker.consumer_heartbeat("c", 0)
    Classic(broker).join()
    broker.consumer_heartbeat("c", -1)
    assert broker.group.type == "consumer"


def test_a_static_consumer_that_comes_back_with_the_classic_protocol_keeps_its_partitions(broker: Broker):
    epoch = broker.consumer_heartbeat("c", 0, instance_id="i").member_epoch
    other = Classic(broker).join()
    broker.consumer_heartbeat("c", epoch, {"t": {0, 1}}, instance_id="i")
    other.join()
    assert other.sync() == {"t": {2, 3}}
    broker.consumer_heartbeat("c", -2, instance_id="i")
    back = Classic(broker, instance_id="i").join()
    assert (broker.group.type, broker.group.state) == ("classic", "Stable")
    assert back.sync() == {"t": {0, 1}}
    other.heartbeat()
    back.heartbeat()


def test_a_static_consumer_that_comes_back_with_another_subscription_causes_a_rebalance(broker: Broker):
    broker.consumer_heartbeat("c", 0, instance_id="i")
    Classic(broker).join()
    broker.consumer_heartbeat("c", -2, instance_id="i")
    Classic(broker, topics=("t", "u"), instance_id="i").join()
    assert (broker.group.type, broker.group.state) == ("classic", "PreparingRebalance")


def test_there_and_back_again_and_again(broker: Broker):
    members = stable_classic_group(broker, 2)
    for _ in range(3):
        broker.consumer_heartbeat("c", 0)
        for member in members:
            member.owned = {}
            member.join()
            member.sync()
        broker.consumer_heartbeat("c", -1)
        for member in members:
            member.join()
        for member in members:
            member.joined()
        dealt = {member.member_id: {"t": {number, number + 2}} for number, member in enumerate(members)}
        for member in sorted(members, key=lambda member: member.joined().leader != member.member_id):
            member.sync(**(dealt if member.joined().leader == member.member_id else {}))
        assert broker.group.state == "Stable"
        assert sorted(partition for member in members for partition in member.owned["t"]) == [0, 1, 2, 3]
