"""The audit log: who logged in or failed to, who was refused what, who changed what. JSON lines in a file.

Off unless kbroker.audit.log.file names a file; `broker.audit` is None then. Nothing of what records hold and
no secret is ever handed to it.

Invariants:
- An event costs its caller an append to a list. A worker writes, one batch at a time, in the order of events.
- What waits is bounded. Events that do not fit, while the disk is slow or full, are counted, and the count is
  written when there is room. The broker goes on.
- A refusal that repeats is written once a minute, with the number of times: a flood does not fill the file.
- The level of the logger `kbroker.audit` holds: WARN leaves refusals and failed logins, ERROR nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbroker.pending import Pending
from kbroker.security.audit_file import AuditFile, Written

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
    from kbroker.scheduler import Scheduler
    from kbroker.security.acls import AclOperation, AclResourceType
    from kbroker.security.principal import Principal
    from kbroker.storage.worker import Worker

events = logging.getLogger("kbroker.audit")
logger = logging.getLogger("kbroker.security.audit")

_MOST_WAITING = 10_000  # events
_MOST_IN_A_BATCH = 500
_MOST_CHARACTERS = 1000  # of one value: a client chooses names
_REPEATED_MS = 60_000  # within which the same refusal is only counted
_MOST_REFUSALS = 10_000  # different ones, remembered to count them
_RETRY_MS = 1000
_TELL_AGAIN_MS = 60_000

SUCCESS, FAILURE = "success", "failure"

Event = dict[str, Any]


class AuditLog:
    def __init__(
        self,
        file: AuditFile,
        worker: Worker,
        scheduler: Scheduler,
        clock: Callable[[], int],
    ) -> None:
        self._file = file
        self._worker = worker
        self._scheduler = scheduler
        self._clock = clock
        self._waiting: list[tuple[int, int, Event]] = []  # level, time and event, oldest first
        self._writing = False
        self._resting = False  # after a failed write
        self._told_ms: int | None = None
        self._closed: Pending[None] | None = None
        self._refusals: dict[tuple[str, ...], _Refusal] = {}  # oldest first
        self.dropped = 0  # since they were last told of

    # what happens

    def login(
        self,
        *,
        principal: Principal | str,
        address: str,
        listener: str,
        mechanism: str,
        outcome: str,
        reason: str | None = None,
    ) -> None:
        """Somebody logged in (outcome SUCCESS), or could not (FAILURE).

        ``principal``: who they are, or as far as is known whom they claim to be. ``mechanism``: of SASL, or
        TLS. ``reason``: why it failed, in words without a secret in them.
        """
        event: Event = {
            "event": "login",
            "principal": str(principal),
            "address": address,
            "listener": listener,
            "mechanism": mechanism,
            "outcome": outcome,
        }
        if reason is not None:
            event["reason"] = reason
        if outcome == SUCCESS:
            self._add(logging.INFO, event)
        else:
            self._add_unless_repeated(event)

    def refusal(
        self,
        *,
        principal: Principal,
        address: str,
        api: str,
        operation: AclOperation,
        resource_type: AclResourceType,
        resource: str,
    ) -> None:
        """An authorizer said no, and the client is told so."""
        self._add_unless_repeated(
            {
                "event": "refusal",
                "principal": str(principal),
                "address": address,
                "api": api,
                "operation": operation.name,
                "resource_type": resource_type.name,
                "resource": resource,
            }
        )

    def change(
        self,
        *,
        principal: Principal,
        address: str,
        api: str,
        resource_type: str,
        resource: str,
        outcome: str,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """An administrator's request for one resource; ``outcome``: SUCCESS or the name of an error code."""
        event: Event = {
            "event": "change",
            "principal": str(principal),
            "address": address,
            "api": api,
            "resource_type": resource_type,
            "resource": resource,
            "outcome": outcome,
        }
        if details:
            event["details"] = dict(details)
        self._add(logging.INFO, event)

    def close(self) -> Pending[None]:
        """Nothing more happens. The result comes when what waits is written, or cannot be."""
        for refusal in self._refusals.values():
            self._tell_repeats(refusal)
        self._refusals.clear()
        self._closed = Pending()
        if not self._writing:
            self._writing = True
            self._write()
        return self._closed

    # refusals that repeat

    def _add_unless_repeated(self, event: Event) -> None:
        if not events.isEnabledFor(logging.WARNING):
            return
        now_ms = self._clock()
        self._forget_refusals(now_ms)
        key = tuple(event.values())
        known = self._refusals.get(key)
        if known is not None:
            known.repeats += 1
            return
        self._refusals[key] = _Refusal(now_ms, event)
        self._add(logging.WARNING, event)

    def _forget_refusals(self, now_ms: int) -> None:
        """Those of more than a minute ago, and the oldest of too many; what was only counted is told."""
        while self._refusals:
            key, oldest = next(iter(self._refusals.items()))
            if 0 <= now_ms - oldest.since_ms < _REPEATED_MS and len(self._refusals) < _MOST_REFUSALS:
                return
            del self._refusals[key]
            self._tell_repeats(oldest)

    def _tell_repeats(self, refusal: _Refusal) -> None:
        if refusal.repeats:
            self._add(logging.WARNING, refusal.event | {"repeated": refusal.repeats})

    # writing

    def _add(self, level: int, event: Event) -> None:
        if not events.isEnabledFor(level):
            return
        if len(self._waiting) >= _MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append((level, self._clock(), event))
        if not self._writing and not self._resting:
            self._writing = True
            self._scheduler.soon(self._write)  # with what else this turn brings

    def _write(self) -> None:
        batch = self._waiting[:_MOST_IN_A_BATCH]
        if self.dropped and len(batch) < _MOST_IN_A_BATCH:
            batch.append((logging.WARNING, self._clock(), self._dropped_event()))
        if not batch:
            self._writing = False
            if self._closed is not None:
                self._closed.resolve(None)
            return
        del self._waiting[:_MOST_IN_A_BATCH]

        def written(result: Pending[Written]) -> None:
            lines, error = result.result()
            if error is None:
                self._write()
            else:
                self._failed(batch[lines:], error)

        self._worker.run(lambda: self._file.write([_line(*entry) for entry in batch])).then(written)

    def _failed(self, batch: list[tuple[int, int, Event]], error: OSError) -> None:
        """The disk may be full: keep what there is room for, and try again later."""
        self._writing = False
        room = max(_MOST_WAITING - len(self._waiting), 0)
        self.dropped += max(len(batch) - room, 0)
        self._waiting[:0] = batch[:room]
        now_ms = self._clock()
        if self._told_ms is None or not 0 <= now_ms - self._told_ms < _TELL_AGAIN_MS:
            self._told_ms = now_ms
            logger.error("the audit log cannot be written, events wait or are dropped: %s", error)
        if self._closed is not None:
            logger.error("%d events of the audit log are lost", len(self._waiting) + self.dropped)
            self._closed.resolve(None)
            return
        self._resting = True
        self._scheduler.after(_RETRY_MS, self._rested)

    def _rested(self) -> None:
        self._resting = False
        if not self._writing and self._closed is None:
            self._writing = True
            self._write()

    def _dropped_event(self) -> Event:
        dropped, self.dropped = self.dropped, 0
        return {"event": "dropped", "events": dropped}


class _Refusal:
    __slots__ = ("event", "repeats", "since_ms")

    def __init__(self, since_ms: int, event: Event) -> None:
        self.since_ms = since_ms
        self.event = event
        self.repeats = 0


def open_audit(
    settings: Settings, worker: Worker, scheduler: Scheduler, clock: Callable[[], int]
) -> AuditLog:
    """The audit log that is set up; kbroker.audit.log.file is set."""
    if events.level == logging.NOTSET:
        events.setLevel(logging.INFO)  # whatever the level of the broker's own log
    events.propagate = False
    file = AuditFile(
        Path(settings["kbroker.audit.log.file"]),
        settings["kbroker.audit.log.max.bytes"],
        settings["kbroker.audit.log.backups"],
    )
    return AuditLog(file, worker, scheduler, clock)


def _line(level: int, time_ms: int, event: Event) -> bytes:
    moment = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": moment, **{key: _cut(value) for key, value in event.items()}})
    if events.handlers:  # what an embedding program adds
        events.log(level, line)
    return line.encode() + b"\n"


def _cut(value: Any) -> Any:
    """The value, as much of it as one event may have."""
    if isinstance(value, str):
        return value if len(value) <= _MOST_CHARACTERS else value[:_MOST_CHARACTERS] + "…"
    if isinstance(value, Mapping):
        return {_cut(str(key)): _cut(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cut(each) for each in value]
    return value
