"""What the open logs did, added up by topic, once in each scrape: many families tell a part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import COUNTER, GAUGE, Family, pieces
from kbroker.storage.counts import LogTotals

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.exposition import Exposition

_PAUSE_EVERY = 100  # logs


class TopicTotals:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._scrape = 0
        self.by_topic: list[tuple[str, LogTotals]] = []
        self.all = LogTotals()
        """Also of topics that are deleted."""

    def of_scrape(self, number: int) -> Iterator[str]:
        """Add up, if that was not done in this scrape; pauses."""
        if self._scrape == number:
            return
        by_topic: dict[str, LogTotals] = {}
        whole = LogTotals()
        for done, log in enumerate(list(self._broker.open_logs.values())):
            totals = by_topic.get(log.topic)
            if totals is None:
                totals = by_topic[log.topic] = LogTotals()
            totals.add(log)
            if done % _PAUSE_EVERY == 0:
                yield ""
        for done, totals in enumerate(by_topic.values()):
            whole.add_all(totals)
            if done % _PAUSE_EVERY == 0:
                yield ""
        whole.add_all(self._broker.deleted_logs)
        self.by_topic = list(by_topic.items())
        self.all = whole
        self._scrape = number


Read = Callable[[LogTotals], int]


def by_topic(name: str, doc: str, read: Read, *, kind: str = COUNTER) -> Family:
    """A series for each topic, and of a counter one without labels for all."""

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        found = exposition.kept(TopicTotals)
        yield from found.of_scrape(exposition.scrapes)
        if kind != GAUGE:
            yield f"{name} {read(found.all)}\n"
        prefixes = exposition.prefixes(family)
        lines = (f"{prefixes[topic,]} {read(totals)}\n" for topic, totals in found.by_topic)
        yield from pieces(exposition.within_bounds(family, lines))

    return Family(name, kind, doc, ("topic",), write)


def of_all(name: str, kind: str, doc: str, read: Read) -> Family:
    """One series."""

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        found = exposition.kept(TopicTotals)
        yield from found.of_scrape(exposition.scrapes)
        yield f"{name} {read(found.all)}\n"

    return Family(name, kind, doc, (), write)
