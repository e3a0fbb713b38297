"""How wide repartition topics become by what their writers read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams_support import internal, sub

from kbroker.coordinators.groups.streams.repartition_widths import widths_by_writers
from kbroker.coordinators.groups.streams.topology import Subtopology

REPARTITIONS = [f"r{number}" for number in range(5)]
SOURCES = ["a", "b"]


def in_rounds(
    undecided: Sequence[str], subtopologies: Sequence[Subtopology], width_of: Callable[[str], int | None]
) -> dict[str, int]:
    """As Kafka does it: all topics are looked at, again and again, while any gets a width."""
    found: dict[str, int] = {}
    while True:
        before = len(found)
        for name in undecided:
            if name in found:
                continue
            read = [
                width
                for each in subtopologies
                if name in each.repartition_sink_topics
                for topic in each.inputs
                if (width := found.get(topic) or width_of(topic)) is not None
            ]
            if read:
                found[name] = max(read)
        if len(found) == before:
            return found


names = st.lists(st.sampled_from(REPARTITIONS), max_size=3, unique=True)
subtopologies = st.lists(
    st.builds(
        lambda sources, reads, sinks: sub("x", *sources, repartitions=internal(*reads), sinks=sinks),
        st.lists(st.sampled_from(SOURCES), max_size=2, unique=True),
        names,
        names,
    ),
    max_size=7,
)
widths = st.dictionaries(st.sampled_from(SOURCES + REPARTITIONS), st.integers(1, 9))


@given(st.permutations(REPARTITIONS), subtopologies, widths)
def test_it_is_what_rounds_over_all_topics_find(undecided, subtopologies, widths):
    found = widths_by_writers(undecided, subtopologies, widths.get)
    assert found == in_rounds(undecided, subtopologies, widths.get)


def chain(length: int) -> list[Subtopology]:
    """Each topic waits for the one behind it."""
    links = [
        sub(str(number), repartitions=internal(f"r{number}"), sinks=[f"r{number - 1}"] if number else [])
        for number in range(length)
    ]
    return [*links, sub("last", "a", sinks=[f"r{length - 1}"])]


def fan(width: int) -> list[Subtopology]:
    """One reads very many topics, and writes as many."""
    written = [f"r{number}" for number in range(width)]
    return [
        sub("0", *(f"a{number}" for number in range(width)), sinks=written),
        sub("1", repartitions=internal(*written)),
    ]


@pytest.mark.parametrize("shape", [chain, fan])
def test_very_many_topics_take_no_longer_than_there_are_more_of_them(shape):
    subtopologies = shape(10_000)
    undecided = [name for each in subtopologies for name in each.repartition_source_topics]
    begun = time.process_time()
    found = widths_by_writers(undecided, subtopologies, lambda name: 3 if name[0] == "a" else None)
    assert time.process_time() - begun < 3  # a twentieth of it, mostly
    assert found == dict.fromkeys(undecided, 3)
