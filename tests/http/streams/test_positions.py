"""Positions as text: what is written is read again, and what is no position is told so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.http.problems import Problem
from kbroker.http.streams.positions import Positions, parsed, tag_of
from kbroker.operations.topic_reader import MOST_PARTITIONS
from kbroker.topics.registry import Topic

TOPIC = Topic("t", bytes(range(16)), 3, 0, {})
TAG = tag_of(TOPIC)


def test_all_partitions_are_told_by_their_offsets_alone() -> None:
    assert str(Positions(TOPIC, {0: 153, 2: 7, 1: 12})) == f"153,12,7~{TAG}"


def test_some_partitions_are_told_by_their_numbers() -> None:
    assert str(Positions(TOPIC, {3: 153, 7: 12})) == f"3:153,7:12~{TAG}"


def test_one_that_moves_and_one_that_is_new() -> None:
    positions = Positions(TOPIC, {0: 1, 1: 2})
    positions.move(0, 9)
    positions.move(2, 4)
    assert str(positions) == f"9,2,4~{TAG}"


@pytest.mark.parametrize("partition", [0, 1, 2])
def test_what_stands_around_an_offset_makes_the_whole(partition: int) -> None:
    positions = Positions(TOPIC, {0: 10, 1: 11, 2: 12})
    before, after = positions.around(partition)
    positions.move(partition, 99)
    assert f"{before}99{after}" == str(positions)


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 10**18 - 1), min_size=1, max_size=50))
def test_what_is_written_is_read(offsets: dict[int, int]) -> None:
    found = parsed(str(Positions(TOPIC, offsets)))
    assert (found.offsets, found.tag) == (offsets, TAG)


def test_a_client_may_write_it_by_itself() -> None:
    assert parsed("5") == ({0: 5}, "")
    assert parsed("2:5,6") == ({2: 5, 3: 6}, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "~",
        "~abc",
        ",",
        "1,",
        "a",
        "-1",
        "1:",
        ":1",
        "1:2:3",
        "0:1,0:2",
        "1 ",
        "١",
        "1" * 19,
        f"{'9' * 11}:1",
    ],
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(Problem, match="Last-Event-ID") as refused:
        parsed(text)
    assert refused.value.status == 400


def test_more_positions_than_a_stream_may_have_are_refused() -> None:
    assert len(parsed(",".join(["1"] * MOST_PARTITIONS)).offsets) == MOST_PARTITIONS
    with pytest.raises(Problem):
        parsed(",".join(["1"] * (MOST_PARTITIONS + 1)))
    with pytest.raises(Problem):
        parsed("1," * 1_000_000)
