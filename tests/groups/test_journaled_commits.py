"""Commits that the store journals: those of one turn of the loop in one write, and in order with all else."""

from __future__ import annotations

import pytest
from classic_support import GROUP, Simulation, SlowStore, failure
from test_offsets import DAY_MS, ORDERS, PAYMENTS, commit, committed

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.coordinators.groups.errors import CoordinatorNotAvailable
from kbroker.coordinators.groups.offsets.commit_grouping import APPLY_MS


class JournalingStore(SlowStore):
    """Journals offsets at once; everything else takes its time."""

    journals = True

    def __init__(self) -> None:
        super().__init__()
        self.journaled: list[dict[str, list[int]]] = []
        self.applied = 0
        self.full = self.broken = False

    def journal_offsets(self, groups):
        if self.full:
            self.journals = not self.broken
            raise OSError("disk full")
        self.journaled.append(
            {group_id: [each.offset for each in offsets.values()] for group_id, offsets in groups.items()}
        )
        MemoryGroupStore.commit_offsets(self, groups)

    def apply_journal(self):
        self.applied += 1
        return super().apply_journal()


class Turns(Simulation):
    """A coordinator in a loop whose turns the test ends."""

    store: JournalingStore

    def __init__(self) -> None:
        self.at_the_end: list = []
        super().__init__(JournalingStore(), soon=self.at_the_end.append)

    def end_turn(self) -> None:
        waiting, self.at_the_end[:] = list(self.at_the_end), []
        for callback in waiting:
            callback()


@pytest.fixture
def turns() -> Turns:
    """Somebody has just committed: others are to be expected."""
    turns = Turns()
    commit(turns, group_id="somebody")
    turns.store.journaled.clear()
    return turns


def test_the_commits_of_one_turn_are_one_write_and_are_answered_after_it(turns):
    commits = [commit(turns, number, group_id=f"group {number}") for number in range(3)]
    assert not turns.store.journaled
    assert not any(each.done for each in commits)
    turns.end_turn()
    assert turns.store.journaled == [{"group 0": [0], "group 1": [1], "group 2": [2]}]
    assert [each.result() for each in commits] == [{}, {}, {}]


def test_of_two_commits_of_a_partition_in_one_turn_the_later_one_counts(turns):
    first, other = commit(turns, 1, PAYMENTS), commit(turns, 2, member_id="", group_id="other")
    second, third = commit(turns, 3), commit(turns, 4, group_id="other")
    turns.end_turn()
    assert [each.result() for each in (first, other, second, third)] == [{}] * 4
    assert turns.store.journaled == [{GROUP: [1, 3], "other": [4]}]
    assert (committed(turns, PAYMENTS), committed(turns)) == (1, 3)


def test_a_client_that_commits_while_no_other_does_is_answered_at_once(turns):
    commit(turns, 1)
    turns.end_turn()
    assert commit(turns, 2).done
    assert committed(turns) == 2
    assert not turns.at_the_end


def test_a_client_that_commits_when_no_other_just_did_is_answered_at_once(turns):
    turns.advance(1)
    assert commit(turns, 1).done
    assert not turns.at_the_end
    assert not commit(turns, 2, group_id="other").done


def test_a_commit_does_not_end_the_wait_of_those_before_it(turns):
    first = commit(turns, 1)
    turns.advance(1)
    assert not commit(turns, 2).done
    assert not first.done
    turns.end_turn()
    assert turns.store.journaled == [{GROUP: [2]}]


def test_a_write_that_fails_fails_all_commits_of_the_turn_and_leaves_nothing(turns):
    commit(turns, 1)
    turns.end_turn()
    turns.store.full = True
    commits = [commit(turns, 2, group_id="other"), commit(turns, 2)]
    turns.end_turn()
    assert all(isinstance(failure(each), CoordinatorNotAvailable) for each in commits)
    assert committed(turns) == 1
    turns.store.full = False
    after = commit(turns, 3, group_id="other"), commit(turns, 3)
    turns.end_turn()
    assert [each.result() for each in after] == [{}, {}]
    assert committed(turns) == 3


def test_a_store_that_can_no_longer_journal_commits_as_others_do(turns):
    turns.store.full = turns.store.broken = True
    failed = commit(turns, 1)
    turns.end_turn()
    assert isinstance(failure(failed), CoordinatorNotAvailable)
    stored = commit(turns, 2)
    assert not stored.done
    turns.store.finish()
    assert stored.result() == {}
    assert committed(turns) == 2


def test_a_commit_that_is_journaled_shows_after_the_deletion_before_it(turns):
    commit(turns, 41)
    turns.end_turn()
    deletion = turns.coordinator.offsets.delete(GROUP, [ORDERS])
    first, other, second = commit(turns, 42), commit(turns, 1, group_id="other"), commit(turns, 43)
    turns.end_turn()
    assert other.done
    assert not any(each.done for each in (deletion, first, second))
    assert committed(turns) == 41
    turns.store.finish()
    assert first.result() == second.result() == {}
    assert committed(turns) == 43


def test_what_else_is_asked_about_offsets_comes_after_the_commits_of_the_turn(turns):
    commit(turns, 1)
    turns.end_turn()
    commits = [commit(turns, 1, group_id="other"), commit(turns, 2)]
    deletion = turns.coordinator.offsets.delete(GROUP, [ORDERS])
    assert all(each.done for each in commits)
    assert committed(turns) == 2
    turns.store.finish()
    assert deletion.result() == {ORDERS: None}
    assert committed(turns) is None
    turns.end_turn()
    assert committed(turns) is None


def test_a_stable_fetch_sees_the_commits_of_the_turn(turns):
    commit(turns, 1)
    assert committed(turns, require_stable=True) == 1


def test_offsets_of_a_topic_that_goes_within_the_turn_go_too(turns):
    commit(turns, 1)
    commit(turns, 2, PAYMENTS)
    turns.coordinator.topic_deleted("orders")
    turns.store.finish()
    turns.end_turn()
    assert (committed(turns), committed(turns, PAYMENTS)) == (None, 2)


def test_an_offset_that_is_committed_again_does_not_expire_meanwhile(turns):
    commit(turns, 1)
    turns.end_turn()
    turns.now_ms += 30 * DAY_MS
    pending = [commit(turns, 1, group_id="other"), commit(turns, 2)]
    turns.coordinator.offsets.expire(turns.now_ms)
    turns.store.finish()
    turns.end_turn()
    assert [each.result() for each in pending] == [{}, {}]
    assert committed(turns) == 2


def test_a_stop_in_the_middle_of_a_turn_stores_its_commits(turns):
    pending = commit(turns, 1)
    turns.coordinator.close()
    assert pending.result() == {}
    assert turns.store.load().offsets[GROUP][ORDERS].offset == 1


def test_the_journal_is_applied_once_a_second(turns):
    for value in range(10):
        commit(turns, value)
        turns.end_turn()
        turns.advance(APPLY_MS // 5)
    turns.advance(APPLY_MS)
    assert turns.store.applied == 2
