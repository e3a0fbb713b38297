"""The control port: lines of JSON, one request and one answer each, for tests in any language.

    {"do": "fail", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2}
    {"ok": true}

It obeys whoever connects, so it listens on loopback only, and only where it was asked for.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from kbroker.config.listeners import CONTROL
from kbroker.control.faults import FaultError
from kbroker.network.awaiting import settled
from kbroker.operations.reading import ReadFrom, read
from kbroker.operations.topics import create_topic
from kbroker.protocol.errors import ApiError
from kbroker.protocol.records import iter_batches, iter_records
from kbroker.security.acls import AclOperation
from kbroker.topics.creation import NewTopic

if TYPE_CHECKING:
    from kbroker.control.faults import Faults
    from kbroker.network.connections import Connections
    from kbroker.server import Server

_LINE_LIMIT = 1 << 20
_READ_BYTES = 1 << 20


class Control:
    def __init__(self, server: Server, faults: Faults) -> None:
        self._server = server
        self._faults = faults
        self._actions: dict[str, Callable[..., Any]] = {
            "fail": self._faults.fail,
            "delay": self._faults.delay,
            "clear": self._faults.clear,
            "requests": self._requests,
            "forget_requests": self._faults.requests.clear,
            "records": self._records,
            "create_topic": self._create_topic,
            "drop_connections": server.drop_connections,
            "pause": server.pause,
            "resume": server.resume,
            "advance_time": server.advance_time,
            "connections": server.connection_count,
        }

    async def do(self, action: str, **arguments: Any) -> Any:
        """Carry out one of the actions."""
        function = self._actions.get(action)
        if function is None:
            raise FaultError(f"say what to do: one of {', '.join(self._actions)}")
        result = function(**arguments)
        return await result if asyncio.iscoroutine(result) else result

    async def _create_topic(
        self,
        name: str,
        partitions: int = 1,
        configs: dict[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        resources = self._server.broker.own_resources
        if if_not_exists and resources.find_topic(name, AclOperation.DESCRIBE) is not None:
            return
        await settled(create_topic(resources, NewTopic(name, partitions, configs=configs or {})))

    def _requests(self) -> list[dict[str, Any]]:
        return [seen._asdict() for seen in self._faults.requests]

    async def _records(self, topic: str) -> list[dict[str, Any]]:
        """Every record of a topic, partition by partition."""
        resources = self._server.broker.own_resources
        found = resources.find_topic(topic, AclOperation.READ)
        if found is None:
            raise FaultError(f"there is no topic {topic}")
        records: list[dict[str, Any]] = []
        for partition in range(found.partitions):
            log = resources.log_of(found, partition)
            await settled(log.refresh())
            offset = log.log_start_offset
            while True:
                part = await settled(read(resources, ReadFrom(topic, partition, offset, _READ_BYTES)))
                if not part.size_bytes:
                    break
                records += _decoded(part.data, partition, offset)
                offset = part.next_offset
        return records


class ControlConnection(asyncio.Protocol):
    """One test at the control port: its lines are obeyed one after the other."""

    protocol = CONTROL
    listener = "CONTROL"
    limited = False  # a test must reach a broker that is full
    progress = None
    authenticated = True

    def __init__(self, control: Control, connections: Connections) -> None:
        self._control = control
        self._connections = connections
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # set by connection_made
        self._received = b""
        self._obeying: asyncio.Task[None] | None = None
        self._on_drained: Callable[[], None] | None = None
        self.peer_host = ""
        self.last_active = 0
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.peer_host = transport.get_extra_info("peername")[0]
        self._connections.admit(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _LINE_LIMIT:
            self.abort()
        elif self._obeying is None:
            self._next()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._obeying is not None:
            self._obeying.cancel()
        self._connections.forget(self)
        if self._on_drained is not None:
            self._on_drained()

    def _next(self) -> None:
        line, newline, rest = self._received.partition(b"\n")
        if newline and not self._transport.is_closing():
            self._received = rest
            self._obeying = asyncio.get_running_loop().create_task(self._obey(line))

    async def _obey(self, line: bytes) -> None:
        answer = await self._answer(line)
        self._obeying = None
        self._transport.write(json.dumps(answer).encode() + b"\n")
        if self._on_drained is not None:
            self._transport.close()
        else:
            self._next()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            arguments = json.loads(line)
            result = await self._control.do(arguments.pop("do", ""), **arguments)
        except (FaultError, ApiError, TypeError, AttributeError, ValueError) as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True, "result": result}

    # the server's side

    def idle_since(self, now_ms: int) -> int | None:
        """None: a test may think for as long as it likes."""
        return None

    def give_up(self, reason: str) -> None:
        self.abort()

    def abort(self) -> None:
        self._transport.abort()

    def drain(self, on_drained: Callable[[], None]) -> None:
        self._on_drained = on_drained
        if self._obeying is None:
            self._transport.close()

    def resume(self) -> None:
        """It is never paused."""


def _decoded(data: bytes, partition: int, first_offset: int) -> list[dict[str, Any]]:
    view = memoryview(data)
    return [
        {
            "partition": partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
        }
        for position, header in iter_batches(view)
        if not header.is_control
        for record in iter_records(view[position : position + header.size_bytes])
        if record.offset >= first_offset
    ]


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
