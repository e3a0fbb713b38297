"""Families of times in buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from kbroker.observability.families import HISTOGRAM, Family, labels_text, text_of
from kbroker.times import BOUNDS

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.exposition import Exposition
    from kbroker.times import Times

_UPPER_BOUNDS = (*map(text_of, BOUNDS), "+Inf")


def histogram(
    name: str,
    doc: str,
    labels: tuple[str, ...],
    read: Callable[[Broker], Iterable[tuple[tuple[str, ...], Times]]],
) -> Family:
    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        for of, times in exposition.within_bounds(family, read(exposition.broker)):
            lines = [
                f"{name}_bucket{labels_text((*labels, 'le'), (*of, bound))} {count}\n"
                for bound, count in zip(_UPPER_BOUNDS, accumulate(times.buckets), strict=True)
            ]
            inner = labels_text(labels, of)
            lines.append(f"{name}_sum{inner} {text_of(times.seconds)}\n")
            lines.append(f"{name}_count{inner} {times.count}\n")
            yield "".join(lines)

    return Family(name, HISTOGRAM, doc, labels, write)
