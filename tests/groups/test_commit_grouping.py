"""How many writes the commits of many clients become."""

from __future__ import annotations

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.coordinators.groups.offsets.commit_grouping import LINGER_MS, Commit, CommitGrouping
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.coordinators.timers import Timers
from kbroker.pending import Pending

PARTITION = TopicPartition("orders", 0)


def offset(value: int) -> CommittedOffset:
    return CommittedOffset(value, -1, "", 0, None, bytes(16), value)


class CountingStore(MemoryGroupStore):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[dict[str, dict[TopicPartition, CommittedOffset]]] = []
        self.error: Exception | None = None

    def commit_offsets(self, groups):
        self.writes.append({group_id: dict(offsets) for group_id, offsets in groups.items()})
        if self.error is not None:
            failed: Pending[None] = Pending()
            failed.fail(self.error)
            return failed
        return super().commit_offsets(groups)


class Clients:
    """Clients 0, 1, 2 …, each with a group of its own."""

    def __init__(self) -> None:
        self.store = CountingStore()
        self.timers = Timers()
        self.grouping = CommitGrouping(self.store, self.timers, lambda callback: callback(), self.written)
        self.now_ms = 1_000_000

    def commit(self, client: int, value: int = 1) -> Commit:
        commit = Commit(f"group {client}", {PARTITION: offset(value)}, {})
        self.grouping.add(client, commit, self.now_ms)
        return commit

    def written(self, commits: list[Commit], written: Pending[None]) -> None:
        for commit in commits:
            written.then(commit.follow)

    def advance(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.timers.fire(self.now_ms)


def test_a_client_that_commits_as_fast_as_it_can_never_waits():
    clients = Clients()
    assert all(clients.commit(0, value).done for value in range(100))
    assert len(clients.store.writes) == 100


def test_few_clients_do_not_wait_for_each_other():
    clients = Clients()
    for value in range(10):
        assert all(clients.commit(client, value).done for client in range(4))
        clients.advance(1)


def test_a_thousand_commits_a_second_of_a_hundred_clients_are_some_fifty_writes():
    clients = Clients()
    pending = []
    for number in range(1_000):
        pending.append(clients.commit(number % 100, number))
        clients.advance(1)
    clients.advance(LINGER_MS)
    assert all(each.done for each in pending)
    assert len(clients.store.writes) <= 60


def test_clients_that_commit_as_fast_as_they_can_are_held_only_until_half_of_them_wait():
    clients = Clients()
    for client in range(50):
        clients.commit(client)
    clients.grouping.flush()
    clients.store.writes.clear()
    for value in range(10):
        assert not any(clients.commit(client, value).done for client in range(24))
        assert clients.commit(24, value).done
    assert len(clients.store.writes) == 10


def test_nobody_waits_longer_than_the_linger_time():
    clients = Clients()
    held = [clients.commit(client) for client in range(10)][-1]
    assert not held.done
    clients.advance(LINGER_MS - 1)
    assert not held.done
    clients.advance(1)
    assert held.done


def test_the_later_commit_of_a_partition_is_the_one_that_is_stored():
    clients = Clients()
    for client in range(10):
        clients.commit(client)
    clients.commit(9, 7)
    clients.commit(9, 8)
    clients.grouping.flush()
    assert clients.store.load().offsets["group 9"][PARTITION].offset == 8
    assert not clients.timers.next_deadline()


def test_a_write_that_fails_fails_all_that_it_held_and_nothing_else():
    clients = Clients()
    held = [clients.commit(client) for client in range(10)][-2:]
    clients.store.error = OSError("no space left")
    clients.advance(LINGER_MS)
    for each in held:
        try:
            each.result()
        except OSError:
            continue
        raise AssertionError("stored after all")
    clients.store.error = None
    clients.advance(100)
    assert clients.commit(0).done


def test_a_clock_that_goes_back_holds_nobody():
    clients = Clients()
    for client in range(10):
        clients.commit(client)
    clients.now_ms -= 3_600_000
    assert clients.commit(0).done
