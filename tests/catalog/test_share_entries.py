"""States of share partitions as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.catalog.errors import CatalogTooNew
from kbroker.catalog.sqlite.share_entries import StoredRuns, decode_changes, encode_changes, encode_runs
from kbroker.coordinators.shares.state import RecordState, Run, ShareStateChange
from kbroker.coordinators.shares.store import ShareKey

OFFSETS = st.integers(0, 2**63 - 1)
RUNS = st.lists(
    st.builds(Run, OFFSETS, OFFSETS, st.sampled_from(RecordState), st.integers(0, 255)), max_size=5
).map(tuple)
KEYS = st.builds(
    ShareKey,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**31 - 1),
)
CHANGES = st.dictionaries(KEYS, st.builds(ShareStateChange, st.integers(-1, 2**63 - 1), RUNS), max_size=4)


@given(RUNS)
def test_runs_are_read_as_they_were_written(runs: tuple[Run, ...]) -> None:
    stored = StoredRuns(encode_runs(runs))
    assert stored == runs
    assert (len(stored), stored[1:], hash(stored)) == (len(runs), runs[1:], hash(runs))
    assert all(stored[index] == run for index, run in enumerate(runs))


@given(CHANGES)
def test_changes_are_read_as_they_were_written(changes: dict[ShareKey, ShareStateChange]) -> None:
    assert {
        ShareKey(group_id, *partition): made
        for group_id, partitions in decode_changes(encode_changes(changes)).items()
        for partition, made in partitions.items()
    } == {key: [change] for key, change in changes.items()}


def test_runs_of_another_format_are_refused() -> None:
    with pytest.raises(CatalogTooNew):
        StoredRuns(b"\x02" + encode_runs([Run(0, 1, RecordState.ARCHIVED, 1)])[1:])
