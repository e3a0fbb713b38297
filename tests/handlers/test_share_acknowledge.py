from __future__ import annotations

import time
from dataclasses import replace

import pytest

from kbroker.catalog.errors import CatalogFull
from kbroker.coordinators.shares.state import ShareState
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kbroker.storage.errors import DiskFull

from .conftest import NOW_MS
from .share_members import (
    ACCEPT,
    GAP,
    GROUP,
    REJECT,
    RELEASE,
    RENEW,
    ShareMember,
    acquired,
    codes,
    configure,
    initialize,
)

UNKNOWN_ID = b"nobody knows me!"
INVALID = ErrorCode.INVALID_REQUEST
WRONG_STATE = ErrorCode.INVALID_RECORD_STATE


@pytest.fixture(autouse=True)
def topic(cluster):
    topic = cluster.create("t", partitions=3)
    initialize(cluster, topic)
    cluster.produce("t", *[NOW_MS] * 10)
    return topic


@pytest.fixture
def one(cluster, topic):
    return ShareMember(cluster, topic, "one")


@pytest.fixture
def two(cluster, topic):
    return ShareMember(cluster, topic, "two")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("type_", [GAP, ACCEPT, REJECT])
def test_what_is_done_with_does_not_come_back(one, two, type_, version):
    one.fetch(0)
    answer = one.acknowledge({0: [(0, 9, [type_])]}, version=version)
    assert codes(answer) == {0: ErrorCode.NONE}
    assert answer.acquisition_lock_timeout_ms == (30_000 if version >= 2 else 0)
    one.disconnect()
    assert acquired(two.fetch(0)) == {0: []}


def test_each_record_may_have_its_own_type(one, two):
    one.fetch(0)
    types = [ACCEPT, REJECT, RELEASE, GAP, ACCEPT, ACCEPT, RELEASE, RELEASE, ACCEPT, RELEASE]
    one.acknowledge({0: [(0, 9, types)]})
    assert acquired(two.fetch(0)) == {0: [(2, 2, 2), (6, 7, 2), (9, 9, 2)]}


@pytest.mark.parametrize(
    ("acks", "code"),
    [
        ([(5, 4, [ACCEPT])], INVALID),
        ([(5, 9, [ACCEPT]), (0, 4, [ACCEPT])], INVALID),
        ([(0, 9, [])], INVALID),
        ([(0, 9, [ACCEPT] * 9)], INVALID),
        ([(0, 9, [5])], INVALID),
        ([(0, 9, [-1])], INVALID),
        ([(0, 9, [RENEW])], INVALID),
        ([(0, 4, [ACCEPT]), (5, 19, [ACCEPT])], INVALID),
        ([(0, 5, [ACCEPT]), (5, 9, [ACCEPT])], WRONG_STATE),
    ],
)
@pytest.mark.parametrize("with_fetch", [False, True])
def test_what_is_wrong_changes_nothing(one, acks, code, with_fetch):
    one.fetch(0)
    if with_fetch:
        assert codes(one.fetch(acks={0: acks})) == {0: (ErrorCode.NONE, code)}
    else:
        assert codes(one.acknowledge({0: acks})) == {0: code}
    assert codes(one.acknowledge({0: [(0, 9, [ACCEPT])]})) == {0: ErrorCode.NONE}


def test_only_who_holds_a_record_may_acknowledge_it(one, two):
    one.fetch(0)
    two.fetch(0)
    assert codes(two.acknowledge({0: [(0, 9, [ACCEPT])]})) == {0: WRONG_STATE}


def test_partitions_do_not_depend_on_each_other(one):
    one.fetch(0, 1)
    every = {0: [(0, 9, [ACCEPT])], 1: [(0, 9, [ACCEPT])], 2: [(0, 0, [ACCEPT])], 7: [(0, 0, [ACCEPT])]}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(one.acknowledge(every)) == {0: ErrorCode.NONE, 1: WRONG_STATE, 2: unknown, 7: unknown}


def test_an_unknown_topic_id_is_an_error_of_its_partitions(one):
    one.fetch(0)
    answer = one.acknowledge({0: [(0, 9, [ACCEPT])]}, topic_id=UNKNOWN_ID)
    assert codes(answer) == {0: ErrorCode.UNKNOWN_TOPIC_ID}


def test_a_renewed_lock_lasts_longer(cluster, one, two):
    one.fetch(0)
    cluster.now_ms += 20_000
    assert codes(one.acknowledge({0: [(0, 4, [RENEW])]}, is_renew_ack=True)) == {0: ErrorCode.NONE}
    cluster.now_ms += 15_000
    cluster.broker.time_jumped()
    assert acquired(two.fetch(0)) == {0: [(5, 9, 2)]}


def test_renewal_can_be_forbidden(cluster, one):
    configure(cluster, share_renew_acknowledge_enable="false")
    one.fetch(0)
    assert codes(one.acknowledge({0: [(0, 4, [RENEW])]}, is_renew_ack=True)) == {0: WRONG_STATE}


def test_nothing_is_answered_before_it_is_stored(cluster, one, monkeypatch):
    one.fetch(0)
    stored: Pending[None] = Pending()
    monkeypatch.setattr(cluster.broker.share_states, "write", lambda changes: stored)
    answer = one.acknowledge({0: [(0, 9, [ACCEPT])]})
    assert isinstance(answer, Pending)
    stored.resolve(None)
    assert codes(answer.result()) == {0: ErrorCode.NONE}


def test_what_cannot_be_stored_has_not_happened(cluster, one, monkeypatch):
    one.fetch(0)
    failed: Pending[None] = Pending()
    failed.fail(CatalogFull("no room"))
    with monkeypatch.context() as full:
        full.setattr(cluster.broker.share_states, "write", lambda changes: failed)
        answer = one.acknowledge({0: [(0, 9, [ACCEPT])]})
        assert codes(answer) == {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert codes(one.acknowledge({0: [(0, 9, [ACCEPT])]})) == {0: ErrorCode.NONE}


def with_dead_letters(cluster, *, partitions: int) -> None:
    cluster.create("dlq.t", partitions, errors_deadletterqueue_group_enable="true")
    configure(cluster, errors_deadletterqueue_topic_name="dlq.t")


@pytest.mark.parametrize("with_fetch", [False, True])
def test_a_dead_letter_that_the_topic_does_not_take_fails_its_partition_alone(cluster, one, two, with_fetch):
    with_dead_letters(cluster, partitions=3)
    for partition in (1, 2):
        cluster.produce("t", *[NOW_MS] * 10, partition=partition)
    narrow = cluster.broker.find_log("dlq.t", 1)
    narrow.config = replace(narrow.config, max_message_bytes=1)
    one.fetch(0, 1, 2)
    every = {0: [(0, 9, [REJECT])], 1: [(0, 9, [REJECT])], 2: [(0, 9, [ACCEPT])]}
    answer = codes(one.fetch(acks=every) if with_fetch else one.acknowledge(every))
    expected = {0: ErrorCode.NONE, 1: ErrorCode.MESSAGE_TOO_LARGE, 2: ErrorCode.NONE}
    assert {number: code[1] if with_fetch else code for number, code in answer.items()} == expected
    assert [cluster.end_offset("dlq.t", number) for number in range(3)] == [10, 0, 0]
    # What is not among the dead letters is its member's still.
    assert codes(one.acknowledge({1: [(0, 9, [RELEASE])]})) == {1: ErrorCode.NONE}
    assert acquired(two.fetch(0, 1, 2)) == {0: [], 1: [(0, 9, 2)], 2: []}


def test_a_full_disk_of_one_dead_letter_partition_fails_its_partition_alone(cluster, one, monkeypatch):
    with_dead_letters(cluster, partitions=2)
    cluster.produce("t", *[NOW_MS] * 10, partition=1)
    one.fetch(0, 1)

    def no_room(*_: object) -> None:
        raise DiskFull("no room")

    every = {0: [(0, 9, [REJECT])], 1: [(0, 9, [REJECT])]}
    with monkeypatch.context() as full:
        full.setattr(cluster.broker.find_log("dlq.t", 0), "append_as_leader", no_room)
        answer = one.acknowledge(every)
    assert codes(answer) == {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: ErrorCode.NONE}
    assert codes(one.acknowledge({0: every[0]})) == {0: ErrorCode.NONE}
    assert [cluster.end_offset("dlq.t", number) for number in range(2)] == [10, 10]


def test_a_state_that_is_being_replaced_fails_its_partition_alone(cluster, topic, one, monkeypatch):
    cluster.produce("t", *[NOW_MS] * 10, partition=1)
    one.fetch(0, 1)
    monkeypatch.setattr(cluster.broker.share_states._store, "put", lambda states: Pending())
    cluster.broker.share_states.replace({ShareKey(GROUP, topic.topic_id, 0): ShareState(5)})
    every = {0: [(0, 9, [ACCEPT])], 1: [(0, 9, [ACCEPT])]}
    assert codes(one.acknowledge(every)) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER, 1: ErrorCode.NONE}


def test_partitions_of_one_request_are_stored_in_one_write(cluster, one, monkeypatch):
    cluster.produce("t", NOW_MS, partition=1)
    one.fetch(0, 1)
    writes = []
    write = cluster.broker.share_states.write
    monkeypatch.setattr(
        cluster.broker.share_states, "write", lambda changes: (writes.append(len(changes)), write(changes))[1]
    )
    one.acknowledge({0: [(0, 9, [ACCEPT])], 1: [(0, 0, [ACCEPT])]})
    assert writes == [2]


def test_many_acknowledgements_take_turns_with_others(cluster, topic, one):
    for _ in range(299):
        cluster.produce("t", *[NOW_MS] * 10)
    configure(cluster, share_partition_max_record_locks="4000")
    one.fetch(0, max_records=4000)
    answer = one.acknowledge({0: [(0, 2999, [ACCEPT] * 3000)], 1: [(0, 0, [])]})
    assert codes(answer) == {0: ErrorCode.NONE, 1: INVALID}


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (0, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
        (1, ErrorCode.SHARE_SESSION_NOT_FOUND),
        (-1, ErrorCode.SHARE_SESSION_NOT_FOUND),
    ],
)
def test_only_a_fetch_opens_a_session(one, epoch, code):
    assert one.acknowledge({0: [(0, 9, [ACCEPT])]}, epoch=epoch).error_code == code


@pytest.mark.parametrize("field", ["group_id", "member_id"])
def test_a_group_and_a_member_are_needed(one, field):
    assert one.acknowledge(**{field: None}).error_code == INVALID


def test_share_groups_can_be_switched_off(cluster, one):
    cluster.broker.features._levels["share.version"] = 0
    assert one.acknowledge().error_code == ErrorCode.UNSUPPORTED_VERSION


def test_what_is_acknowledged_does_not_come_back_after_a_restart(cluster, topic, one, settings):
    cluster.send(ShareGroupHeartbeatRequest(GROUP, "one", 0, None, ["t"]), 1)
    one.fetch(0)
    one.acknowledge({0: [(0, 3, [ACCEPT]), (4, 5, [RELEASE])]})
    cluster.broker = cluster.start(settings)
    assert acquired(ShareMember(cluster, topic, "two").fetch(0)) == {0: [(4, 5, 2), (6, 9, 1)]}


class TestTheLargestWindow:
    """A window has at most as many records as the highest limit, and as many more of one log batch."""

    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return {"node.id": "1", "group.share.partition.max.record.locks": "10000"}

    def test_cut_as_finely_as_can_be_it_keeps_nobody_waiting_for_long(self, cluster):
        topic = cluster.create("wide", max_message_bytes="10000000")
        initialize(cluster, topic)
        for records in (9_999, 100_000):
            cluster.produce("wide", *[NOW_MS] * records)
        one, two = ShareMember(cluster, topic, "one"), ShareMember(cluster, topic, "two")
        assert acquired(one.fetch(0, max_records=9_999)) == {0: [(0, 9_998, 1)]}
        assert acquired(one.fetch(0)) == {0: [(9_999, 19_998, 1)]}
        begun = time.process_time()
        answer = one.acknowledge({0: [(0, 19_998, [RELEASE, ACCEPT] * 9_999 + [RELEASE])]})
        assert codes(answer) == {0: ErrorCode.NONE}
        again = [each for _ in range(2) for each in acquired(two.fetch(0, max_records=10_000))[0]]
        assert again == [(offset, offset, 2) for offset in range(0, 19_999, 2)]
        two.disconnect()
        assert time.process_time() - begun < 2  # a tenth of it, mostly
        assert acquired(ShareMember(cluster, topic, "three").fetch(0))[0][0] == (0, 0, 3)
