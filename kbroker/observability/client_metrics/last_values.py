"""The last values that each client pushed, by the names they have in /metrics.

Invariants: a push replaces all that its client pushed before, at once. The series are no more than the
setting allows, and those of one client no more than a share of it; others are left out and counted. A client
that has not pushed for three of its intervals is forgotten, one that took its leave at once, but not within
the minute in which a scrape shall see its last values. Nothing runs for that: who looks, or finds no room,
forgets what is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.client_metrics.metrics_data import Attributes, Point, Resource, Unread, read
from kbroker.observability.families import COUNTER, GAUGE, Number, labels_text
from kbroker.telemetry.instance_ids import instance_id_text

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps
    from kbroker.telemetry.clients import Push

PREFIX = "kbroker_client_"
_OWN = "info"  # what is told of clients has this name
OWN_LABELS = ("client_instance_id", "client_id")
INFO_LABELS = (
    *OWN_LABELS,
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_rack",
    "group_id",
    "group_instance_id",
    "group_member_id",
    "transactional_id",
)

_SHARE = 4
_INTERVALS = 3
_LEAST_MS = 60_000
_LONGEST_NAME, _LONGEST_LABELS, _LONGEST_LABEL = 200, 1000, 200
_PAUSE_EVERY = 16  # steps
_KAFKA = "org.apache.kafka."
_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
_KIND_SUFFIX = re.compile(r"(_total|_created)+$")  # what OpenMetrics adds to counters

Labels = str
"""The text of a series behind its name."""


class PushedFamily:
    """The series of one metric."""

    __slots__ = ("by_client", "kind", "name", "pushed_name")

    def __init__(self, name: str, kind: str, pushed_name: str) -> None:
        self.name = name
        self.kind = kind
        self.pushed_name = pushed_name
        self.by_client: dict[bytes, dict[Labels, Number]] = {}


class _Client:
    __slots__ = ("forgotten_ms", "info", "names", "series")

    def __init__(self) -> None:
        self.info: tuple[str, ...] = ()
        self.names: list[str] = []
        self.series = 0
        self.forgotten_ms = 0


class LastValues:
    def __init__(self, most: Callable[[], int]) -> None:
        """``most``: how many series there may be."""
        self._most = most
        self._clients: dict[bytes, _Client] = {}
        self._families: dict[str, PushedFamily] = {}  # by their names without what their kind adds
        self.series = 0
        self.left_out = 0
        """Series of pushes since the start."""

    # what clients push

    def take(self, push: Push) -> Steps[None]:
        """Raises InvalidProtobuf: nothing is taken."""
        share = max(self._most() // _SHARE, 1)
        reading = _Reading(self, push, share)
        for steps, step in enumerate(read(push.metrics)):
            if steps > 1000 + 8 * share:  # far more than there may be: it is not even counted
                reading.left_out += 1
                break
            reading.take(step)
            if steps % _PAUSE_EVERY == 0:
                yield None
        self._replace(push, reading)

    def prolong(self, push: Push) -> None:
        """It said nothing new."""
        client = self._clients.get(push.client_instance_id)
        if client is not None:
            client.forgotten_ms = _forgotten_ms(push)

    def forget(self, client_instance_id: bytes) -> None:
        self._remove_series(client_instance_id)
        self._clients.pop(client_instance_id, None)

    def _replace(self, push: Push, reading: _Reading) -> None:
        self._remove_series(push.client_instance_id)
        if self.series + reading.series > self._most():
            self.expire(push.now_ms)
        room = max(self._most() - self.series, 0)
        client = self._clients.setdefault(push.client_instance_id, _Client())
        client.info = _info(push, reading.resource)
        client.forgotten_ms = _forgotten_ms(push)
        for base, made in reading.families.items():
            (values,) = made.by_client.values()
            known = self._families.setdefault(base, PushedFamily(made.name, made.kind, made.pushed_name))
            if len(values) > room or known.kind != made.kind:  # of another client, that was faster
                self.left_out += len(values)
                if not known.by_client:
                    del self._families[base]
                continue
            room -= len(values)
            known.by_client[push.client_instance_id] = values
            client.names.append(base)
            client.series += len(values)
        self.series += client.series
        if not client.series:  # so that clients are bounded, too
            del self._clients[push.client_instance_id]
        self.left_out += reading.left_out

    def _remove_series(self, client_instance_id: bytes) -> None:
        client = self._clients.get(client_instance_id)
        if client is None:
            return
        for base in client.names:
            family = self._families[base]
            del family.by_client[client_instance_id]
            if not family.by_client:
                del self._families[base]
        self.series -= client.series
        client.names, client.series = [], 0

    # what is told

    def expire(self, now_ms: int) -> None:
        gone = [key for key, client in self._clients.items() if now_ms >= client.forgotten_ms]
        for client_instance_id in gone:
            self.forget(client_instance_id)

    def families(self) -> list[PushedFamily]:
        return list(self._families.values())

    def infos(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """By INFO_LABELS."""
        for client in list(self._clients.values()):
            yield client.info, 1

    def __len__(self) -> int:
        """Clients."""
        return len(self._clients)

    def family(self, base: str) -> PushedFamily | None:
        return self._families.get(base)


class _Reading:
    """One push, as far as it is read."""

    def __init__(self, values: LastValues, push: Push, most: int) -> None:
        self._values = values
        self._most = most
        self._client_instance_id = push.client_instance_id
        self._own = dict(zip(OWN_LABELS, _names(push), strict=True))
        self._bases: dict[str, str] = {}
        self.families: dict[str, PushedFamily] = {}
        self.resource: Attributes = {}
        self.series = 0
        self.left_out = 0

    def take(self, step: Point | Resource | Unread | None) -> None:
        if isinstance(step, Point):
            if self.series >= self._most or not self._take(step):
                self.left_out += 1
        elif isinstance(step, Resource):
            self.resource.update(step.attributes)
        elif isinstance(step, Unread):
            self.left_out += 1

    def _take(self, point: Point) -> bool:
        base = self._bases.get(point.name)
        if base is None:
            base = self._bases[point.name] = _base(point.name)
        labels = self._labels(point.attributes)
        if not base or base == _OWN or len(base) > _LONGEST_NAME or len(labels) > _LONGEST_LABELS:
            return False
        kind = COUNTER if point.is_counter else GAUGE
        known = self._values.family(base)
        made = self.families.get(base)
        if any(each is not None and each.kind != kind for each in (known, made)):
            return False
        value = point.value
        if point.is_delta and known is not None:
            value += known.by_client.get(self._client_instance_id, {}).get(labels, 0)
        if point.is_counter and not value >= 0:
            return False  # strict readers would refuse the whole text
        if made is None:
            name = f"{PREFIX}{base}_total" if point.is_counter else PREFIX + base
            made = self.families[base] = PushedFamily(name, kind, point.name)
            made.by_client[self._client_instance_id] = {}
        series = made.by_client[self._client_instance_id]
        if labels not in series:
            self.series += 1
        series[labels] = value
        return True

    def _labels(self, attributes: Attributes) -> Labels:
        named = {_label(name): value for name, value in sorted(attributes.items())}
        named.update(self._own)
        names = (*OWN_LABELS, *(name for name in named if name not in OWN_LABELS))
        return labels_text(names, [named[name] for name in names])


def _base(pushed_name: str) -> str:
    """Without a prefix, and without what the kind of a metric adds. Empty: it is no name."""
    name = _NO_NAME.sub("_", pushed_name.removeprefix(_KAFKA))
    return _KIND_SUFFIX.sub("", name)


def _label(name: str) -> str:
    label = _NO_NAME.sub("_", name).lstrip("_")
    return label if label and not label[0].isdigit() else f"_{label}"


def _names(push: Push) -> tuple[str, str]:
    return instance_id_text(push.client_instance_id), push.attributes.get("client_id", "")[:_LONGEST_LABEL]


def _info(push: Push, resource: Attributes) -> tuple[str, ...]:
    told = {**resource, **push.attributes}
    rest = (told.get(name, "")[:_LONGEST_LABEL] for name in INFO_LABELS[len(OWN_LABELS) :])
    return (*_names(push), *rest)


def _forgotten_ms(push: Push) -> int:
    return push.now_ms + (_LEAST_MS if push.terminating else max(_INTERVALS * push.interval_ms, _LEAST_MS))
