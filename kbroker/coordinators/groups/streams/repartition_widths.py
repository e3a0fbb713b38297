"""How wide repartition topics are whose topology leaves that open: as the widest that their writers read.

A writer may read another such topic. So it goes in rounds, topic after topic, as Kafka does it: one takes the
widest of what is known when its turn comes first after anything is. Who has nothing to go by yet is looked at
again when that has changed, and not in every round: a chain of topics may be long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heappop, heappush

from kbroker.coordinators.groups.streams.topology import Subtopology


def widths_by_writers(
    undecided: Sequence[str], subtopologies: Collection[Subtopology], width_of: Callable[[str], int | None]
) -> Mapping[str, int]:
    """Of those among the undecided topics for which there is any. `width_of`: of any topic, as far as known
    before: what is found counts instead.
    """
    inside = list(subtopologies)
    places = {name: place for place, name in enumerate(undecided)}
    found: dict[str, int] = {}
    readers: dict[str, list[int]] = {name: [] for name in undecided}
    writers: dict[str, list[int]] = {name: [] for name in undecided}
    written: list[list[str]] = []
    widest: list[int | None] = []
    """Of the topics that a subtopology reads, as far as it is known."""

    def widest_input(each: Subtopology) -> int | None:
        known = (found.get(name) or width_of(name) for name in each.inputs)
        return max((width for width in known if width is not None), default=None)

    for number, each in enumerate(inside):
        widest.append(widest_input(each))
        written.append([name for name in each.repartition_sink_topics if name in places])
        for name in each.inputs:
            if name in places:
                readers[name].append(number)
        for name in written[number]:
            writers[name].append(number)

    looks = [(0, place) for place in range(len(undecided))]
    while looks:
        round_, place = heappop(looks)
        name = undecided[place]
        read = [width for number in writers[name] if (width := widest[number]) is not None]
        if name in found or not read:
            continue
        width = found[name] = max(read)
        is_narrower = (width_of(name) or 0) > width  # than it was thought
        for number in readers[name]:
            before = widest[number]
            if is_narrower:
                widest[number] = widest_input(inside[number])
            else:
                widest[number] = width if before is None else max(width, before)
            if before is None:
                for other in written[number]:
                    if other not in found:
                        heappush(looks, (round_ + (places[other] <= place), places[other]))
    return found
