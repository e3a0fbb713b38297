"""How kbroker's cost grows: with partitions, connections, batch size and the size of the log.

`python -m benchmarks.growth [--scale S] [--save DIR]`. Each point is the broker's own CPU time per request,
which the noise of the machine touches least, and requests per second. Flat or linear is what is expected.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.compare import python_loads
from benchmarks.compare.brokers import BenchKbroker, Meter, Process
from benchmarks.compare.limits import bare_copy
from benchmarks.raw import produce_frame, pump

Point = dict[str, float]
_BATCH_BYTES = (200, 1024, 4096, 16_384, 65_536, 262_144, 900_000)


def _measured(broker: BenchKbroker, frames: list[bytes], count: int) -> Point:
    return _pumped(broker, (broker.host, broker.port), frames, count)


def _pumped(process: Process, address: tuple[str, int], frames: list[bytes], count: int) -> Point:
    pump(address, frames, max(10, min(count, len(frames))))  # logs are opened, codecs made
    meter = Meter(process)
    seconds = pump(address, frames, count)
    size = sum(map(len, frames)) / len(frames)
    return {
        "cpu_us_per_request": meter.cpu_seconds / count * 1e6,
        "requests_per_s": count / seconds,
        "cpu_s_per_gib": meter.cpu_seconds / (count * size / 2**30),
    }


def by_partitions(scale: float) -> Iterator[tuple[str, Point]]:
    for partitions in (1, 10, 100, 1000, 10_000):
        if partitions * scale < 1:
            continue
        with BenchKbroker() as broker:
            topics = [f"t{n}" for n in range(max(1, partitions // 1000))]
            each = partitions // len(topics)
            for topic in topics:
                python_loads.create_topic(broker, topic, each)
            frames = [produce_frame(topic, p, 4096) for topic in topics for p in range(each)]
            yield str(partitions), _measured(broker, frames, max(500, int(20_000 * scale)))


def by_connections(scale: float) -> Iterator[tuple[str, Point]]:
    for count in (1, 10, 100, 1000):
        with BenchKbroker() as broker:
            python_loads.create_topic(broker, "t")
            connections = python_loads.open_connections(broker, count)
            yield str(count), _measured(broker, [produce_frame("t", 0, 4096)], max(500, int(20_000 * scale)))
            for connection in connections:
                connection.close()


def by_batch_size(scale: float) -> Iterator[tuple[str, Point]]:
    for size in _BATCH_BYTES:
        with BenchKbroker() as broker:
            python_loads.create_topic(broker, "t")
            count = max(100, int(min(20_000, 400_000_000 / size) * scale))
            yield str(size), _measured(broker, [produce_frame("t", 0, size)], count)


def by_bare_copy(scale: float) -> Iterator[tuple[str, Point]]:
    """The same bytes through a bare socket-to-file copy: the limit."""
    for size in _BATCH_BYTES:
        count = max(100, int(min(20_000, 400_000_000 / size) * scale))
        with bare_copy() as copy:
            yield str(size), _pumped(copy, copy.address, [produce_frame("t", 0, size)], count)


def by_log_size(scale: float) -> Iterator[tuple[str, Point]]:
    """Fetches of random old offsets, the log growing between the points."""
    from benchmarks.fetch_old import fetch_old_offsets

    with BenchKbroker() as broker:
        python_loads.create_topic(broker, "t")
        frame = produce_frame("t", 0, 900_000)
        written = 0
        for megabytes in (10, 100, 1000, 10_000):
            target = int(megabytes * scale * 1_000_000)
            count = max(1, (target - written) // len(frame))
            pump((broker.host, broker.port), [frame], count)
            written += count * len(frame)
            yield str(megabytes), fetch_old_offsets(broker, "t", max(50, int(1000 * scale)))


SERIES: dict[str, Callable[[float], Iterator[tuple[str, Point]]]] = {
    "partitions": by_partitions,
    "connections": by_connections,
    "batch bytes": by_batch_size,
    "batch bytes, bare copy": by_bare_copy,
    "log megabytes": by_log_size,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", choices=SERIES, action="append")
    parser.add_argument("--save", type=Path, metavar="DIR")
    given = parser.parse_args()
    measured: dict[str, dict[str, Point]] = {}
    for name, series in SERIES.items():
        if given.only and name not in given.only:
            continue
        measured[name] = {}
        for x, point in series(given.scale):
            measured[name][x] = point
            print(f"{name} = {x}: " + ", ".join(f"{k} {v:.4g}" for k, v in point.items()), flush=True)
    if given.save is not None:
        given.save.mkdir(parents=True, exist_ok=True)
        (given.save / "growth.json").write_text(json.dumps(measured, indent=1) + "\n")
        for name, points in measured.items():
            (given.save / f"growth-{slug(name)}.svg").write_text(chart(name, points))
    return 0


def slug(name: str) -> str:
    return name.replace(" ", "-").replace(",", "")


def chart(name: str, points: dict[str, Point]) -> str:
    """Bars of the broker's CPU time per request."""
    key = "cpu_us_per_request"
    width, height, left = 90, 160, 60
    most = max(point[key] for point in points.values()) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width * len(points)}" '
        f'height="{height + 60}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="16">broker CPU µs per request, by {name}</text>',
    ]
    for index, (x, point) in enumerate(points.items()):
        tall = point[key] / most * (height - 30)
        at = left + index * width
        parts.append(
            f'<rect x="{at}" y="{height - tall + 20:.0f}" width="50" height="{tall:.0f}" fill="#27a"/>'
        )
        parts.append(f'<text x="{at}" y="{height - tall + 16:.0f}">{point[key]:.0f}</text>')
        parts.append(f'<text x="{at}" y="{height + 36}">{x}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
