"""The ledger of what was sent back, in the topic's words and back again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbroker.cli.dlq_ledger import Ledger

OFFSETS = st.sets(st.tuples(st.integers(0, 2), st.integers(0, 10_000)), max_size=200)


@given(OFFSETS)
def test_what_was_marked_is_known_after_reading_it_back(offsets: set[tuple[int, int]]) -> None:
    written = Ledger("id")
    blocks = {written.mark(*each) for each in offsets}
    read = Ledger("id")
    read.load(written.record(block) for block in blocks)
    for partition, offset in offsets:
        assert read.has(partition, offset)
        assert read.has(partition, offset + 1) == ((partition, offset + 1) in offsets)


def test_the_words_are_ranges() -> None:
    ledger = Ledger("id")
    for offset in (4096, 4097, 4098, 4100, 8191, 8192):
        block = ledger.mark(1, offset)
    assert ledger.record((1, 1)) == (b"id/1/1", b"4096-4098,4100,8191")
    assert ledger.record(block) == (b"id/1/2", b"8192")
    assert ledger.first_missing(1, 4096) == 4099
    assert ledger.first_missing(0, 7) == 7


def test_another_topic_of_the_same_name_has_nothing_to_do_with_it() -> None:
    ledger = Ledger("new")
    ledger.load([(b"old/0/0", b"0-9"), (None, b"1"), (b"nonsense", None), (b"new/0/0", b"3")])
    assert [offset for offset in range(10) if ledger.has(0, offset)] == [3]
