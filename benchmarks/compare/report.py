"""What was measured, as a table and as a chart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.compare.measures import UNITS, Numbers

Samples = dict[str, dict[str, list[Numbers]]]  # row → broker (or LIMIT) → one per round
LIMIT = "limit"
_TITLES = {"apache-kafka": "Apache Kafka"}
# Noted of the shared broker after every load, beside the load's own numbers.
CPU, ANON, FILE = "process_cpu_s", "process_rss_anon_mb", "process_rss_file_mb"


KBROKER = "kbroker"


class Line(NamedTuple):
    row: str
    number: str
    kbroker: float
    kafka: float
    limit: float | None
    kbroker_spread: float  # (max - min) / median over the rounds
    kafka_spread: float

    @property
    def ratio(self) -> float:
        return self.kbroker / self.kafka if self.kafka else float("nan")

    @property
    def unit(self) -> str:
        return UNITS[self.number][0]

    @property
    def better(self) -> bool:
        """Or as good, to the percent that is shown."""
        return self.ratio > 0.995 if UNITS[self.number][1] else self.ratio < 1.005


def lines(samples: Samples) -> list[Line]:
    made: list[Line] = []
    for row, by_broker in samples.items():
        ours, theirs = by_broker.get(KBROKER, []), by_broker.get(_peer(by_broker), [])
        if not ours or not theirs:
            continue
        made += [
            Line(
                row,
                number,
                _median(ours, number),
                _median(theirs, number),
                _median(by_broker[LIMIT], number) if by_broker.get(LIMIT) else None,
                _spread(ours, number),
                _spread(theirs, number),
            )
            for number in UNITS
            if number in ours[0] and number in theirs[0]
        ]
    return made


def _peer(by_broker: Mapping[str, object]) -> str:
    """What kbroker is compared with."""
    return next((name for name in by_broker if name not in (KBROKER, LIMIT)), "apache-kafka")


def _median(rounds: list[Numbers], number: str) -> float:
    return statistics.median(each[number] for each in rounds)


def _spread(rounds: list[Numbers], number: str) -> float:
    values = [each[number] for each in rounds]
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def table(samples: Samples) -> str:
    """Markdown; what the whole process had used at the end of a load stands on the load's first line."""
    peer = _peer(next(iter(samples.values()), {}))
    titles = ["load", "measured", KBROKER, _TITLES.get(peer, peer), "ratio", "limit", "spread"]
    titles += ["CPU s", "RssAnon MB", "RssFile MB"]
    out = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    before = None
    for line in lines(samples):
        first, before = line.row != before, line.row
        limit = "" if line.limit is None else short(line.limit)
        ratio = f"{line.ratio:.2f}×{'' if line.better else ' ✗'}"
        spread = f"±{line.kbroker_spread * 50:.0f} % / ±{line.kafka_spread * 50:.0f} %"
        process = [_both(samples[line.row], number) if first else "" for number in (CPU, ANON, FILE)]
        cells = [
            *(line.row if first else "", line.unit, short(line.kbroker), short(line.kafka)),
            *(ratio, limit, spread, *process),
        ]
        out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


def _both(by_broker: dict[str, list[Numbers]], number: str) -> str:
    both = (KBROKER, _peer(by_broker))
    if any(number not in by_broker[name][0] for name in both):
        return ""
    return " / ".join(short(_median(by_broker[name], number)) for name in both)


def short(value: float) -> str:
    if value >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def chart(samples: Samples) -> str:
    """How many times better kbroker is, one bar a line, on a logarithmic scale; an SVG."""
    shown = [
        (line, line.ratio if UNITS[line.number][1] else 1 / line.ratio)
        for line in lines(samples)
        if line.ratio > 0
    ]
    height, left, width = 18, 430, 420
    most = max([10.0, *(better for _, better in shown)])
    per_decade = width / math.log10(most * 10)
    zero = left + per_decade  # a tenth is the left edge, 1 is here
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 80}" '
        f'height="{height * len(shown) + 40}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="14">better than Apache Kafka by this factor →</text>',
        f'<line x1="{zero}" y1="20" x2="{zero}" y2="{height * len(shown) + 30}" stroke="#888"/>',
    ]
    for index, (line, better) in enumerate(shown):
        top = 24 + index * height
        end = zero + per_decade * math.log10(max(better, 0.1))
        colour = "#2a7" if better >= 1 else "#c44"
        parts.append(f'<text x="{left - 6}" y="{top + 12}" text-anchor="end">{line.row}: {line.unit}</text>')
        parts.append(
            f'<rect x="{min(zero, end):.1f}" y="{top + 2}" '
            f'width="{abs(end - zero):.1f}" height="{height - 5}" '
            f'fill="{colour}"/>'
        )
        parts.append(f'<text x="{max(zero, end) + 4:.1f}" y="{top + 12}">{better:.1f}×</text>')
    return "\n".join([*parts, "</svg>", ""])
