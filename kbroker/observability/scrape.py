"""The text itself: what it left out. Written last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import GAUGE, Family, labels_text

if TYPE_CHECKING:
    from kbroker.observability.exposition import Exposition


def _left_out(exposition: Exposition, family: Family) -> Iterator[str]:
    for name, count in exposition.left_out.items():
        yield f"{family.name}{labels_text(family.labels, (name,))} {count}\n"


FAMILIES = (
    Family(
        "kbroker_metrics_left_out",
        GAUGE,
        "Series beyond kbroker.metrics.max.series that this text left out, by metric.",
        ("metric",),
        _left_out,
    ),
)
