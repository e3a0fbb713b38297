"""A kbroker that is killed, or stopped, and started again: what share groups have acknowledged stays away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat.differential.share_fetch.members import ShareGroup
from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import SETTINGS
from compat.harness.side import Side

T = ("t", 0)
ACCEPT, RELEASE, REJECT = 1, 2, 3


@pytest.fixture
def server() -> Iterator[KBrokerProcess]:
    with KBrokerProcess(SETTINGS) as server:
        yield server


@pytest.fixture
def group(server: KBrokerProcess) -> Iterator[ShareGroup]:
    side = Side(server)
    group = ShareGroup(side, "group", {"t": 1}, open_all=False)
    yield group
    group.close()
    side.disconnect()


def acquired(answer: Any) -> list[list[int]]:
    ranges: list[list[int]] = answer[1]["t0"]["acquired"]
    return ranges


def test_after_a_kill_only_what_was_not_acknowledged_comes_again(
    server: KBrokerProcess, group: ShareGroup
) -> None:
    group.produce("t", 10)
    one = group.member()
    assert acquired(one.fetch(T)) == [[0, 9, 1]]
    one.acknowledge({T: [(0, 1, [ACCEPT]), (4, 5, [RELEASE]), (7, 7, [REJECT])]})
    server.kill()
    server.start()
    group.side.disconnect()
    # Those that nobody has acknowledged have the count that was stored last: none, so this is the first.
    assert acquired(group.member().fetch(T)) == [[2, 3, 1], [4, 5, 2], [6, 6, 1], [8, 9, 1]]


def test_after_a_stop_what_was_held_is_released(server: KBrokerProcess, group: ShareGroup) -> None:
    group.produce("t", 10)
    one = group.member()
    one.fetch(T)
    one.acknowledge({T: [(0, 4, [ACCEPT])]})
    server.stop()
    server.start()
    group.side.disconnect()
    assert acquired(group.member().fetch(T)) == [[5, 9, 2]]


def test_a_partition_that_was_opened_at_the_end_of_its_log_begins_there_after_a_kill(
    server: KBrokerProcess, group: ShareGroup
) -> None:
    group.configure(share_auto_offset_reset="latest")
    group.produce("t", 5)
    group.member().fetch(T)
    group.produce("t", 5)
    server.kill()
    server.start()
    group.side.disconnect()
    assert acquired(group.member().fetch(T)) == [[5, 9, 1]]
