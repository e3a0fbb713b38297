"""What a family of metrics is: declared once, with what writes its series.

A family writes whole lines of text, in pieces between which others may have their turn. The text of a series
up to its value is made once, wherever there may be many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.exposition import Exposition

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

Number = int | float
Series = Iterable[tuple[tuple[str, ...], Number]]
"""Values of labels, and what was read of them."""
Piece = str | Pending[Any]
"""Whole lines, maybe none; or what is to be waited for before the next piece."""
Write = Callable[["Exposition", "Family"], Iterator[Piece]]

_PIECE = 256  # series that are written in one go


class Family(NamedTuple):
    name: str
    """As its series have it: that of a counter ends in _total."""
    kind: str
    doc: str
    labels: tuple[str, ...]
    write: Write
    members: Callable[[Exposition], Iterable[Family]] | None = None
    """Families that are known only while they are written; its name has a * for what differs."""


def value(name: str, kind: str, doc: str, read: Callable[[Broker], Number | None]) -> Family:
    """One series. None: there is none now."""

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        number = read(exposition.broker)
        if number is not None:
            yield f"{name} {text_of(number)}\n"

    return Family(name, kind, doc, (), write)


def values(name: str, kind: str, doc: str, labels: Sequence[str], read: Callable[[Broker], Series]) -> Family:
    """Series by labels; of more than the setting allows, the first."""

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        prefixes = exposition.prefixes(family)
        yield from pieces(
            exposition.within_bounds(
                family, (f"{prefixes[of]} {text_of(number)}\n" for of, number in read(exposition.broker))
            )
        )

    return Family(name, kind, doc, tuple(labels), write)


def pieces(lines: Iterable[str]) -> Iterator[str]:
    iterator = iter(lines)
    while piece := "".join(islice(iterator, _PIECE)):
        yield piece


class Prefixes(dict[tuple[str, ...], str]):
    """The text of series up to their values, by the values of their labels."""

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        super().__init__()
        self._name = name
        self._labels = labels

    def __missing__(self, of: tuple[str, ...]) -> str:
        text = self[of] = self._name + labels_text(self._labels, of)
        return text


def labels_text(labels: Sequence[str], of: Sequence[str]) -> str:
    inner = ",".join(f'{label}="{escaped(text)}"' for label, text in zip(labels, of, strict=True))
    return f"{{{inner}}}" if inner else ""


def escaped(text: str) -> str:
    """A label's value. What is no UTF-8 is shown as such."""
    if "\\" in text or '"' in text or "\n" in text:
        text = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return text if text.isascii() else text.encode(errors="replace").decode()


def text_of(number: Number) -> str:
    if isinstance(number, int):
        return str(int(number))
    if isfinite(number):
        return repr(number)
    return "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"
