"""What is stored of a share partition, and how changes alter it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange, merged

STATES = st.sampled_from([RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED])


@st.composite
def run_lists(draw: st.DrawFn) -> list[Run]:
    borders = sorted(draw(st.sets(st.integers(0, 40), max_size=12)))
    pairs = [(borders[at], borders[at + 1] - 1) for at in range(len(borders) - 1)]
    chosen = [pair for pair in pairs if draw(st.booleans())]
    return [Run(first, last, draw(STATES), draw(st.integers(1, 3))) for first, last in chosen]


changes = st.lists(st.builds(ShareStateChange, st.integers(0, 40), run_lists()), max_size=6)


@given(changes)
def test_changes_alter_the_state_offset_by_offset(changes: list[ShareStateChange]) -> None:
    model: dict[int, tuple[RecordState, int]] = {}
    start_offset = 0
    for change in changes:
        start_offset = max(start_offset, change.start_offset)
        for first, last, state, count in change.runs:
            model.update(dict.fromkeys(range(first, last + 1), (state, count)))
    state = merged(ShareState(0), changes)
    seen = {
        offset: (run.state, run.delivery_count)
        for run in state.runs
        for offset in range(run.first_offset, run.last_offset + 1)
    }
    assert state.start_offset == start_offset
    assert seen == {offset: value for offset, value in model.items() if offset >= start_offset}
    assert state.terminal_count == sum(value[0].is_terminal for value in seen.values())


@given(changes)
def test_runs_are_in_order_and_do_not_touch_with_the_same_state(changes: list[ShareStateChange]) -> None:
    state = merged(ShareState(0), changes)
    assert all(run.first_offset <= run.last_offset for run in state.runs)
    for one, other in zip(state.runs, state.runs[1:], strict=False):
        assert one.last_offset < other.first_offset
        assert one.last_offset + 1 < other.first_offset or one[2:] != other[2:]


@given(changes, st.integers(0, 6))
def test_changes_may_be_merged_in_portions(changes: list[ShareStateChange], first: int) -> None:
    at_once = merged(ShareState(0), changes)
    assert merged(merged(ShareState(0), changes[:first]), changes[first:]) == at_once


def test_a_change_that_was_held_up_does_not_move_the_start_offset_back() -> None:
    late = ShareStateChange(0, [Run(7, 8, RecordState.ARCHIVED, 1)])
    state = merged(ShareState(0), [ShareStateChange(5), late])
    assert state == ShareState(5, (Run(7, 8, RecordState.ARCHIVED, 1),))


def test_an_undecided_state_is_decided_by_its_first_change() -> None:
    assert merged(ShareState(), [ShareStateChange(3)]) == ShareState(3)
