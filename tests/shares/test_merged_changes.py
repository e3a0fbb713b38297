"""The stored state of a share partition after changes, beside a dict with every record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange, merged

STORED = [RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED]


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """In order, and apart."""
    borders = sorted(draw(st.sets(st.integers(0, 40), max_size=8)))
    return [
        Run(first, last, draw(st.sampled_from(STORED)), draw(st.integers(1, 3)))
        for first, last in zip(borders[::2], borders[1::2], strict=False)
    ]


CHANGES = st.lists(st.builds(ShareStateChange, st.integers(0, 30), runs()), max_size=8)


@given(CHANGES)
def test_the_state_after_changes_is_that_of_every_record(changes: list[ShareStateChange]) -> None:
    changes.sort(key=lambda change: change.start_offset)  # it does not go back
    records: dict[int, tuple[RecordState, int]] = {}
    for change in changes:
        for first, last, state, count in change.runs:
            records.update(dict.fromkeys(range(first, last + 1), (state, count)))
    start = changes[-1].start_offset if changes else 0
    after = merged(ShareState(0), changes)
    assert after.start_offset == start
    assert {
        offset: run[2:] for run in after.runs for offset in range(run.first_offset, run.last_offset + 1)
    } == {offset: record for offset, record in records.items() if offset >= start}
    for run, following in zip(after.runs, after.runs[1:], strict=False):
        assert run.last_offset < following.first_offset
        assert run.last_offset + 1 < following.first_offset or run[2:] != following[2:]


@given(CHANGES, st.integers(0, 8))
def test_changes_may_be_made_in_two_steps(changes: list[ShareStateChange], first: int) -> None:
    changes.sort(key=lambda change: change.start_offset)
    halfway = merged(ShareState(0), changes[:first])
    assert merged(halfway, changes[first:]) == merged(ShareState(0), changes)
