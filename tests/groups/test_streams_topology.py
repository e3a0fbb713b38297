"""How wide internal topics have to be, and what does not fit together."""

from __future__ import annotations

import pytest
from streams_support import internal, sub, topology

from kbroker.coordinators.groups.errors import StreamsInvalidTopology
from kbroker.coordinators.groups.streams.configured_topology import ConfiguredTopology, StatusCode, configure
from kbroker.coordinators.groups.streams.topology import Subtopology, from_state, to_state


def configured(*subtopologies: Subtopology, **widths: int) -> ConfiguredTopology:
    return configure(topology(*subtopologies), widths.get)


def missing(found: ConfiguredTopology) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in found.missing}


def test_a_subtopology_has_as_many_tasks_as_its_widest_source():
    found = configured(sub("0", "a", "b"), a=2, b=5)
    assert (found.problem, found.task_counts) == (None, {"0": 5})


def test_a_changelog_has_a_partition_for_each_task():
    assert missing(configured(sub("0", "a", "b", changelogs=("c",)), a=2, b=5)) == {"c": 5}


def test_a_repartition_topic_is_as_wide_as_what_its_writers_read():
    found = configured(
        sub("2", repartitions=internal("s"), changelogs=("c",)),
        sub("1", repartitions=internal("r"), sinks=("s",)),
        sub("0", "a", "b", sinks=("r",)),
        a=2,
        b=3,
    )
    assert missing(found) == {"c": 3, "r": 3, "s": 3}


def test_a_repartition_topic_may_have_its_own_width():
    found = configured(sub("0", "a", sinks=("r",)), sub("1", repartitions=internal("r", partitions=7)), a=2)
    assert missing(found) == {"r": 7}


def test_copartitioned_repartition_topics_are_as_wide_as_the_source_beside_them():
    found = configured(
        sub("0", "a", sinks=("r",)),
        sub("1", "b", repartitions=internal("r"), copartitioned=({"b", "r"},)),
        a=2,
        b=6,
    )
    assert missing(found) == {"r": 6}


def test_copartitioned_repartition_topics_among_themselves_take_the_widest():
    found = configured(
        sub("0", "a", sinks=("r",)),
        sub("1", "b", sinks=("s",)),
        sub("2", repartitions=internal("r", "s"), copartitioned=({"r", "s"},)),
        a=2,
        b=6,
    )
    assert missing(found) == {"r": 6, "s": 6}


@pytest.mark.parametrize(
    "subtopology",
    [
        sub("0", "a", "b", copartitioned=({"a", "b"},)),
        sub("0", "a", repartitions=internal("r", partitions=9), copartitioned=({"a", "r"},)),
        sub(
            "0",
            repartitions={**internal("r", partitions=9), **internal("s", partitions=8)},
            copartitioned=({"r", "s"},),
        ),
        sub("0", "a", changelogs=("b",)),
    ],
    ids=["sources", "fixed beside a source", "two fixed", "an existing changelog"],
)
def test_topics_that_do_not_fit_together_stop_the_group(subtopology):
    found = configured(subtopology, a=2, b=3)
    assert found.problem is not None
    assert found.problem.code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert (found.task_counts, found.missing) == ({}, ())


def test_missing_sources_come_before_everything_else():
    found = configured(sub("0", "a", "z", changelogs=("c",)), a=2)
    assert found.problem is not None
    assert (found.problem.code, "z" in found.problem.detail) == (StatusCode.MISSING_SOURCE_TOPICS, True)
    assert found.missing == ()


def test_many_missing_topics_are_not_all_named():
    names = [f"source-{number:03}" for number in range(300)]
    found = configured(sub("0", *names))
    assert found.problem is not None
    assert "and 290 more" in found.problem.detail


@pytest.mark.parametrize(
    "subtopology",
    [
        sub("0", repartitions=internal("r"), sinks=("r",)),
        sub("0", "a", repartitions=internal("r")),
        sub("0"),
    ],
    ids=["a circle", "no writer", "no source"],
)
def test_what_can_never_be_decided_is_no_topology(subtopology):
    with pytest.raises(StreamsInvalidTopology):
        configured(subtopology, a=2)


def test_a_long_chain_of_repartition_topics_is_decided_soon():
    length = 1_000
    chain = [
        sub(str(number), repartitions=internal(f"r{number}"), sinks=(f"r{number + 1}",))
        for number in reversed(range(1, length))
    ]
    found = configured(*chain, sub("0", "a", sinks=("r1",)), a=3)
    assert len(found.task_counts) == length
    assert set(found.task_counts.values()) == {3}


def test_a_topology_is_stored_and_read_back():
    whole = topology(
        sub("0", "a", sinks=("r",)),
        sub("1", "b", repartitions=internal("r"), changelogs=("c",), copartitioned=({"b", "r"},)),
        epoch=3,
    )
    assert from_state(to_state(whole)) == whole
