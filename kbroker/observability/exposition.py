"""All metrics of a broker as text, for Prometheus or as OpenMetrics has it.

Reading happens while the text is written, and only then. A scrape is written in parts; each is made in a turn
of its own that is far below a millisecond, so that nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypeVar
from zlib import compressobj

from kbroker.observability.families import COUNTER, Family, Piece, Prefixes
from kbroker.observability.table import families
from kbroker.pending import Pending
from kbroker.requests.long_requests import Steps

if TYPE_CHECKING:
    from kbroker.broker import Broker

T = TypeVar("T")

_PART_CHARACTERS = 64 * 1024
_TURN_SECONDS = 0.0005
_GZIP = 31  # as zlib names the format


class Exposition:
    """The metrics of one broker: what is kept from one scrape to the next."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.left_out: dict[str, int] = {}
        """Series that the last scrape left out, by the name of their family."""
        self.scrapes = 0
        self._prefixes: dict[str, Prefixes] = {}
        self._kept: dict[object, object] = {}

    @property
    def most(self) -> int:
        """How many series a family may have."""
        return int(self.broker.settings["kbroker.metrics.max.series"])

    def prefixes(self, family: Family) -> Prefixes:
        """Those of a family; forgotten when they are far more than it may have, as after many deletions."""
        found = self._prefixes.get(family.name)
        if found is None or len(found) > 2 * self.most:
            found = self._prefixes[family.name] = Prefixes(family.name, family.labels)
        return found

    def kept(self, kind: type[T]) -> T:
        """What a group of families keeps for itself: the one object of this kind, made with the broker."""
        found = self._kept.get(kind)
        if found is None:
            found = self._kept[kind] = kind(self.broker)  # type: ignore[call-arg]
        return found  # type: ignore[return-value]

    def within_bounds(self, family: Family, series: Iterable[T]) -> Iterator[T]:
        """The first of them; how many were left out is counted."""
        iterator = iter(series)
        yield from islice(iterator, self.most)
        self.leave_out(family, sum(1 for _ in iterator))

    def leave_out(self, family: Family, count: int) -> None:
        if count:
            self.left_out[family.name] = count

    def scrape(self, *, openmetrics: bool, compressed: bool = False) -> Scrape:
        """``compressed``: by gzip, which costs less than to send ten times as much."""
        return Scrape(self, openmetrics, compressobj(1, wbits=_GZIP) if compressed else None)


class Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class Scrape:
    """One text, part after part."""

    def __init__(self, exposition: Exposition, openmetrics: bool, compressor: Compressor | None) -> None:
        self._compressor = compressor
        self._pieces = _pieces(exposition, openmetrics)
        self.ended = False

    def part(self) -> Steps[bytes]:
        """The next part, made in one turn. It may be empty before the end."""
        parts: list[str] = []
        size = 0
        turn_ends = perf_counter() + _TURN_SECONDS
        for piece in self._pieces:
            if isinstance(piece, Pending):  # what the disk must be asked for
                yield piece
                turn_ends = perf_counter() + _TURN_SECONDS
                continue
            parts.append(piece)
            size += len(piece)
            if size >= _PART_CHARACTERS or perf_counter() > turn_ends:
                break
        else:
            self.ended = True
        text = "".join(parts).encode()
        if self._compressor is None:
            return text
        text = self._compressor.compress(text)
        return text + self._compressor.flush() if self.ended else text


def _pieces(exposition: Exposition, openmetrics: bool) -> Iterator[Piece]:
    exposition.left_out.clear()
    exposition.scrapes += 1
    for family in _all(exposition):
        head = _head(family, openmetrics)
        for piece in family.write(exposition, family):
            if piece and head:
                yield head
                head = ""
            yield piece
    if openmetrics:
        yield "# EOF\n"


def _all(exposition: Exposition) -> Iterator[Family]:
    for family in families():
        if family.members is None:
            yield family
        else:
            yield from family.members(exposition)


def _head(family: Family, openmetrics: bool) -> str:
    name = family.name
    if openmetrics and family.kind == COUNTER:
        name = name.removesuffix("_total")
    doc = family.doc.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {doc}\n# TYPE {name} {family.kind}\n"
