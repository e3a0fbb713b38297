"""Stories of share groups, told to each broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from compat.differential.compaction.scenarios import SETTINGS as COMPACTION
from compat.differential.pair import Pair
from compat.differential.share_fetch.members import ShareGroup
from compat.harness.brokers import SETTINGS, Server, running
from compat.harness.side import Side

Story = Callable[[ShareGroup], None]
TOPICS = MappingProxyType({"t": 1, "u": 3})


@pytest.fixture(scope="session")
def brokers() -> Iterator[tuple[Server, ...]]:
    """Where a lock may be short, and logs are compacted at once."""
    settings = {**SETTINGS, **COMPACTION, "group.share.min.record.lock.duration.ms": "1000"}
    with running(settings) as servers:
        yield servers


@pytest.fixture
def same(pair: Pair, unique: Callable[[str], str]) -> Callable[..., None]:
    """Both brokers answer the same to a story of one group, with topics t (one partition) and u (three)."""

    def same(story: Story, topics: Mapping[str, int] = TOPICS, **configs: Any) -> None:
        group_id = unique("share")

        def scenario(side: Side) -> Any:
            group = ShareGroup(side, group_id, topics, **configs)
            try:
                story(group)
            finally:
                group.close()
            return group.notes

        pair.same(scenario)

    return same
