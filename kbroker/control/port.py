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
from typing import TYPE_CHECKING, Any

from kbroker.control.faults import FaultError
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from kbroker.protocol.records import iter_batches, iter_records
from kbroker.topics.creation import check_new_topic

if TYPE_CHECKING:
    from kbroker.control.faults import Faults
    from kbroker.server import Server

_LINE_LIMIT = 1 << 20


class Control:
    def __init__(self, server: Server, faults: Faults) -> None:
        self._server = server
        self._faults = faults
        self._listener: asyncio.Server | None = None
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

    async def start(self, port: int) -> int:
        """Listen; returns the port."""
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_LINE_LIMIT)
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            pass  # the line was longer than the limit, or nobody is there any more
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            arguments = json.loads(line)
            result = await self.do(arguments.pop("do", ""), **arguments)
        except (FaultError, ApiError, TypeError, AttributeError, ValueError) as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True, "result": result}

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
        broker = self._server.broker
        if if_not_exists and broker.topics.get(name) is not None:
            return
        asked = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(*config) for config in (configs or {}).items()],
        )
        new = check_new_topic(broker, asked)
        await _awaited(broker.topics.create(new.name, new.partitions, new.configs, -broker.unclean_starts))

    def _requests(self) -> list[dict[str, Any]]:
        return [seen._asdict() for seen in self._faults.requests]

    async def _records(self, topic: str) -> list[dict[str, Any]]:
        """Every record of a topic, partition by partition."""
        found = self._server.broker.topics.get(topic)
        if found is None:
            raise FaultError(f"there is no topic {topic}")
        records: list[dict[str, Any]] = []
        for partition in range(found.partitions):
            log = self._server.broker.log(found, partition)
            refreshed = log.refresh()
            if refreshed is not None:
                await _awaited(refreshed)
            offset = log.log_start_offset
            while offset < log.high_watermark:
                read = log.read(offset, 1 << 20)
                part = await _awaited(read) if isinstance(read, Pending) else read
                if not part.size_bytes:
                    break
                records += _decoded(part.data, partition, offset)
                offset = part.next_offset
        return records


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


async def _awaited(pending: Pending[Any]) -> Any:
    settled = asyncio.Event()
    pending.then(lambda _: settled.set())
    await settled.wait()
    return pending.result()
