"""Committed offsets as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbroker.catalog.sqlite.offset_entries import decode, encode
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition

Groups = dict[str, dict[TopicPartition, CommittedOffset]]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LONGS = st.integers(-(2**63) + 1, 2**63 - 1)
GROUPS = st.dictionaries(
    TEXTS,
    st.dictionaries(
        st.builds(TopicPartition, TEXTS, st.integers(0, 2**31 - 1)),
        st.builds(
            CommittedOffset,
            LONGS,
            st.integers(-(2**31), 2**31 - 1),
            TEXTS,
            LONGS,
            st.none() | LONGS,
            st.binary(min_size=16, max_size=16),
            LONGS,
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=3,
)


@given(GROUPS)
def test_whatever_is_committed_is_read_again(groups: Groups) -> None:
    assert decode(encode(groups)) == {group: offsets for group, offsets in groups.items() if offsets}
