"""Client metrics (KIP-714): which client is asked for which metrics, and whether what it pushes is taken.

Subscriptions are the CLIENT_METRICS config resources. Every client gets the metrics of all
subscriptions it matches, at the shortest of their intervals, under a subscription id that changes with
them. A client that asks or pushes before its interval is over is throttled, except that the first push
after an answer, the last one of a client and a question after a refused push may come at any time.

Clients are asked for cumulative values (Kafka asks for deltas): the last push of each client then says all.
What becomes of a push is the receiver's matter. What is known of a client goes with its connection, as in
Kafka.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import CorruptRecord, InvalidRecord
from kbroker.protocol.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, decompress
from kbroker.protocol.types import RESERVED_UUIDS
from kbroker.telemetry.instance_ids import instance_id_text

if TYPE_CHECKING:
    from kbroker.requests.context import Peer
    from kbroker.requests.long_requests import Steps
    from kbroker.storage.worker import Worker

ACCEPTED_COMPRESSION_TYPES = (ZSTD, LZ4, GZIP, SNAPPY)
ALL_METRICS = "*"

_DEFAULT_INTERVAL_MS = 300_000
_MAX_CLIENTS = 16_384
_MAX_EXPANSION = 16  # how much larger than pushed a payload may be once decompressed
_MAY_ASK_AGAIN = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class Push(NamedTuple):
    client_instance_id: bytes
    attributes: Mapping[str, str]
    """What subscriptions match clients by."""
    metrics: bytes
    """OpenTelemetry's MetricsData."""
    interval_ms: int
    terminating: bool
    """It is the client's last."""
    now_ms: int


class Receiver(Protocol):
    def receive(self, push: Push) -> Steps[None]:
        """Raises ApiError."""
        ...

    def forget(self, client_instance_id: bytes) -> None:
        """It is not asked for anything now."""
        ...


class Subscription(NamedTuple):
    metrics: tuple[str, ...]
    interval_ms: int
    match: dict[str, re.Pattern[str]]


class ClientInstance:
    """What one client is asked for, and when it was last heard of."""

    __slots__ = (
        "client_instance_id",
        "interval_ms",
        "last_asked_ms",
        "last_error",
        "last_pushed_ms",
        "metrics",
        "subscription_id",
        "terminating",
        "version",
    )

    def __init__(self, client_instance_id: bytes, metrics: list[str], interval_ms: int, version: int) -> None:
        self.client_instance_id = client_instance_id
        self.metrics = metrics
        self.interval_ms = interval_ms
        self.version = version
        digest = zlib.crc32(f"{metrics}{interval_ms}".encode(), zlib.crc32(client_instance_id))
        self.subscription_id = digest - (1 << 31)
        self.last_asked_ms = self.last_pushed_ms = 0
        self.terminating = False
        self.last_error = ErrorCode.NONE

    def may_ask(self, now_ms: int) -> bool:
        if now_ms - max(self.last_asked_ms, self.last_pushed_ms) >= self.interval_ms:
            self.last_asked_ms = now_ms
            return True
        return self.last_error in _MAY_ASK_AGAIN

    def may_push(self, now_ms: int) -> bool:
        allowed = self.last_asked_ms > self.last_pushed_ms or now_ms - self.last_pushed_ms >= self.interval_ms
        if allowed:
            self.last_pushed_ms = now_ms
        return allowed


class ClientTelemetry:
    def __init__(self, max_bytes: int, receiver: Receiver, worker: Worker) -> None:
        self.max_bytes = max_bytes
        self._worker = worker
        self._receiver = receiver
        self._subscriptions: dict[str, Subscription] = {}
        self._version = 0
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()
        self._by_peer: dict[Peer, bytes] = {}  # the newest of each connection

    def update_subscription(self, name: str, configs: Mapping[str, str]) -> None:
        """A CLIENT_METRICS resource has these configs now; none: it is gone."""
        self._version += 1
        if configs:
            self._subscriptions[name] = _subscription(configs)
        else:
            self._subscriptions.pop(name, None)

    def ask(
        self, client_instance_id: bytes, attributes: Mapping[str, str], peer: Peer, now_ms: int
    ) -> ClientInstance:
        """What this client is to push. ``attributes`` are what subscriptions match clients by."""
        if client_instance_id == bytes(16):
            client_instance_id = os.urandom(16)
        instance = self._instance(client_instance_id, attributes, peer)
        if not instance.may_ask(now_ms):
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        if not instance.metrics:
            self._receiver.forget(client_instance_id)
        return instance

    def push(
        self,
        client_instance_id: bytes,
        attributes: Mapping[str, str],
        peer: Peer,
        now_ms: int,
        *,
        subscription_id: int,
        terminating: bool,
        compression_type: int,
        metrics: bytes,
    ) -> Steps[None]:
        if client_instance_id in RESERVED_UUIDS:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        instance = self._instance(client_instance_id, attributes, peer)
        try:
            if instance.terminating:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            if not instance.may_push(now_ms) and not terminating:
                raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            if subscription_id != instance.subscription_id:
                raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
            if compression_type not in (NONE, *ACCEPTED_COMPRESSION_TYPES):
                raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            if len(metrics) > self.max_bytes:
                raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE)
            read = yield from self._decompressed(compression_type, metrics)
            push = Push(client_instance_id, attributes, read, instance.interval_ms, terminating, now_ms)
            yield from self._receiver.receive(push)
        except ApiError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.terminating = terminating
        instance.last_error = ErrorCode.NONE

    def _decompressed(self, compression_type: int, metrics: bytes) -> Steps[bytes]:
        if not metrics or compression_type == NONE:
            return bytes(metrics)
        limit = self.max_bytes * _MAX_EXPANSION
        # A few bytes may become so many that they would hold up everybody.
        decompressed = self._worker.run(lambda: decompress(compression_type, metrics, limit))
        yield decompressed
        try:
            return decompressed.result()
        except (CorruptRecord, InvalidRecord) as error:
            raise ApiError(ErrorCode.INVALID_RECORD) from error

    def _instance(
        self, client_instance_id: bytes, attributes: Mapping[str, str], peer: Peer
    ) -> ClientInstance:
        instance = self._instances.get(client_instance_id)
        if instance is None or instance.version != self._version:
            instance = self._new_instance(client_instance_id, attributes)
            self._instances[client_instance_id] = instance
            if peer not in self._by_peer:
                peer.on_close(lambda: self._closed(peer))
            self._by_peer[peer] = client_instance_id
            if len(self._instances) > _MAX_CLIENTS:
                self._instances.popitem(last=False)
        self._instances.move_to_end(client_instance_id)
        return instance

    def _closed(self, peer: Peer) -> None:
        self._instances.pop(self._by_peer.pop(peer), None)

    def _new_instance(self, client_instance_id: bytes, attributes: Mapping[str, str]) -> ClientInstance:
        attributes = {"client_instance_id": instance_id_text(client_instance_id), **attributes}
        matching = [
            subscription
            for subscription in self._subscriptions.values()
            if all(
                name in attributes and pattern.fullmatch(attributes[name])
                for name, pattern in subscription.match.items()
            )
        ]
        metrics = {metric for subscription in matching for metric in subscription.metrics}
        interval_ms = min([_DEFAULT_INTERVAL_MS, *(each.interval_ms for each in matching)])
        wanted = [ALL_METRICS] if ALL_METRICS in metrics else sorted(metrics)
        return ClientInstance(client_instance_id, wanted, interval_ms, self._version)


def _subscription(configs: Mapping[str, str]) -> Subscription:
    values = {
        name: definition.parse(configs[name]) if name in configs else definition.default
        for name, definition in CLIENT_METRICS_CONFIGS.items()
    }
    metrics, interval_ms, match = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple)
    assert isinstance(interval_ms, int)
    assert isinstance(match, tuple)
    pairs = (pair.partition("=") for pair in match)
    patterns = {name.strip(): re.compile(pattern.strip()) for name, _, pattern in pairs}
    return Subscription(metrics, interval_ms, patterns)
