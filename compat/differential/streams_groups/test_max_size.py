"""A streams group that is full: group.streams.max.size."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat.differential.pair import Pair
from compat.differential.streams_groups.test_streams import NO_DELAYS
from compat.differential.streams_groups.transcript import StreamsTranscript, told_to
from compat.harness.brokers import SETTINGS, Server, running


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running(SETTINGS | NO_DELAYS | {"group.streams.max.size": "2"}) as servers:
        yield servers


def a_third_member(t: StreamsTranscript) -> None:
    t.join_streams("one")
    t.join_streams("two")
    t.join_streams("three")
    t.stream("two", -1)
    t.join_streams("three")


def test_a_full_streams_group_is_the_same_on_both(unique: Callable[[str], str], pair: Pair) -> None:
    name = unique("full")
    pair.same(lambda side: told_to(side.server.bootstrap, a_third_member, name))
