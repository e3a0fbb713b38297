"""The assignor `sticky` of streams groups."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kbroker.coordinators.groups.assignors.streams_sticky import StreamsMemberSpec, assign_sticky
from kbroker.coordinators.groups.streams.tasks import TaskId, Tasks

Assignment = dict[str, Tasks]


def tasks_of(**widths: int) -> list[TaskId]:
    return [TaskId(name, partition) for name, width in widths.items() for partition in range(width)]


def members(*names: str, previous: Assignment | None = None, process: str | None = None):
    """Each in a process of its own, unless one is named."""
    before = previous or {}
    return {name: StreamsMemberSpec(process or name, before.get(name, Tasks())) for name in names}


def actives(assignment: Assignment) -> list[int]:
    return sorted(len(each.active) for each in assignment.values())


def moved(before: Assignment, after: Assignment) -> int:
    """How many active tasks members that stay have lost."""
    return sum(len(each.active - after[name].active) for name, each in before.items() if name in after)


def test_all_tasks_go_to_a_single_member():
    tasks = tasks_of(a=3, b=2)
    assert assign_sticky(members("m"), tasks, (), 0) == {"m": Tasks(frozenset(tasks))}


def test_members_get_even_shares():
    assert actives(assign_sticky(members("m", "n", "o"), tasks_of(a=4, b=3), (), 0)) == [2, 2, 3]


def test_a_newcomer_takes_no_more_than_its_share():
    tasks = tasks_of(a=4)
    before = assign_sticky(members("m"), tasks, (), 0)
    after = assign_sticky(members("m", "n", previous=before), tasks, (), 0)
    assert (actives(after), moved(before, after)) == ([2, 2], 2)


def test_nobody_loses_a_task_when_a_member_leaves():
    tasks = tasks_of(a=5, b=4)
    before = assign_sticky(members("m", "n", "o"), tasks, (), 0)
    after = assign_sticky(members("m", "o", previous=before), tasks, (), 0)
    assert (actives(after), moved(before, after)) == ([4, 5], 0)


def test_a_lost_task_goes_to_where_its_state_is():
    tasks = tasks_of(a=3)
    before = assign_sticky(members("m", "n", "o"), tasks, {"a"}, 1)
    (lost,) = before["n"].active
    heir = next(name for name in ("m", "o") if lost in before[name].standby)
    after = assign_sticky(members("m", "o", previous=before), tasks, {"a"}, 1)
    assert lost in after[heir].active


def test_only_tasks_with_state_have_standbys():
    found = assign_sticky(members("m", "n"), tasks_of(a=2, b=2), {"b"}, 1)
    assert frozenset().union(*(each.standby for each in found.values())) == set(tasks_of(b=2))


def test_no_process_has_a_task_twice():
    found = assign_sticky(members("m", "n", process="one"), tasks_of(a=2), {"a"}, 2)
    assert [each.standby for each in found.values()] == [frozenset(), frozenset()]


def test_a_task_that_is_gone_is_nobodys():
    before = assign_sticky(members("m"), tasks_of(a=3), (), 0)
    assert assign_sticky(members("m", previous=before), tasks_of(a=2), (), 0)["m"].active == set(
        tasks_of(a=2)
    )


def test_nobody_there_means_nothing_assigned():
    assert assign_sticky({}, tasks_of(a=2), (), 1) == {}


NAMES = ["m0", "m1", "m2", "m3", "m4", "m5"]
GROUPS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["p", "q", "r"]), min_size=1)
WIDTHS = st.fixed_dictionaries({"a": st.integers(1, 6), "b": st.integers(0, 6)})


@given(rounds=st.lists(st.tuples(GROUPS, WIDTHS, st.integers(0, 2)), min_size=1, max_size=4))
def test_whoever_comes_and_goes_shares_stay_even_and_every_task_runs_once(rounds):
    before: Assignment = {}
    for group, widths, replicas in rounds:
        tasks = tasks_of(**widths)
        specs = {
            name: StreamsMemberSpec(process, before.get(name, Tasks())) for name, process in group.items()
        }
        after = assign_sticky(specs, tasks, {"a"}, replicas)
        assert after.keys() == group.keys()
        assert sorted(task for each in after.values() for task in each.active) == sorted(tasks)
        loads = actives(after)
        assert loads[-1] - loads[0] <= 1
        places = Counter(
            (group[name], task) for name, each in after.items() for task in (*each.active, *each.standby)
        )
        assert set(places.values()) <= {1}, "a task twice in one process"
        copies = Counter(task for each in after.values() for task in each.standby)
        wanted = min(replicas, len(set(group.values())) - 1)
        assert copies == Counter({task: wanted for task in tasks_of(a=widths["a"]) if wanted})
        again = {name: StreamsMemberSpec(process, after[name]) for name, process in group.items()}
        assert moved(after, assign_sticky(again, tasks, {"a"}, replicas)) == 0, "nothing has changed"
        before = after
