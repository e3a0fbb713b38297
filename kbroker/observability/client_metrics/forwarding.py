"""What clients push, handed on to an OTLP receiver as it is, with what the broker knows of the client.

Each push becomes a request of its own. The labels have the names of KIP-714. A client that gives itself no
service name gets its client id: receivers tell series apart by the service and its instance.

Invariant: what waits is bounded; what finds no room is dropped and counted.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from kbroker.observability.client_metrics.metrics_data import attributes_of
from kbroker.observability.otlp import METRICS, OtlpSender
from kbroker.observability.protobuf import attributes, encoded, fields, message
from kbroker.telemetry.instance_ids import instance_id_text

if TYPE_CHECKING:
    from kbroker.telemetry.clients import Push

_MOST_WAITING_BYTES = 16 << 20


class Forwarder:
    def __init__(self, sender: OtlpSender, broker_id: str) -> None:
        self._sender = sender
        self._broker_id = broker_id
        self._waiting_bytes = 0
        self._changing = threading.Lock()  # the sender has a thread of its own
        self._refused = 0

    @property
    def forwarded(self) -> int:
        """Pushes that the receiver took."""
        return self._sender.sent[METRICS]

    @property
    def dropped(self) -> int:
        return self._sender.dropped[METRICS] + self._refused

    def forward(self, push: Push) -> None:
        size = len(push.metrics)
        with self._changing:
            if self._waiting_bytes + size > _MOST_WAITING_BYTES:
                self._refused += 1
                return
            self._waiting_bytes += size
        if not self._sender.send(METRICS, 1, partial(self._body, push)):
            self._no_longer_waits(size)

    def _body(self, push: Push) -> bytes:
        """In the sender's thread."""
        self._no_longer_waits(len(push.metrics))
        return with_resource(push.metrics, self._labels(push))

    def _no_longer_waits(self, size: int) -> None:
        with self._changing:
            self._waiting_bytes -= size

    def _labels(self, push: Push) -> dict[str, str]:
        instance = instance_id_text(push.client_instance_id)
        return {
            "service.name": push.attributes.get("client_id") or "kafka-client",
            "service.instance.id": instance,
            "client_instance_id": instance,
            **push.attributes,
            "broker_id": self._broker_id,
        }


def with_resource(metrics_data: bytes, labels: Mapping[str, str]) -> bytes:
    """The same metrics, with these attributes added to what they come from. What is there stays."""
    return b"".join(
        message(1, _labelled(value, labels)) if number == 1 and isinstance(value, bytes) else b""
        for number, _, value in fields(metrics_data)
    )


def _labelled(resource_metrics: bytes, labels: Mapping[str, str]) -> bytes:
    resource, rest = b"", []
    for number, wire_type, value in fields(resource_metrics):
        if number == 1 and isinstance(value, bytes):
            resource += value
        else:
            rest.append(encoded(number, wire_type, value))
    known = attributes_of(resource, 1)
    added = {name: value for name, value in labels.items() if name not in known}
    return message(1, resource + attributes(1, added)) + b"".join(rest)
