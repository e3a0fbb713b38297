"""WebSockets: a stream and commands on one connection, or commands alone.

What comes of a stream is a record, or has one of these members: ``records`` (several, if asked for so),
``position``, ``gap``, ``end``. What has an ``id`` answers a command (commands.py). Commands are executed in
the order in which they come, but those that wait do not keep others waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.websockets import WebSocketDisconnect

from kbroker.http.answers import encoded
from kbroker.http.bodies import document_of
from kbroker.http.endpoint import BOOLEAN, FLAG, WEBSOCKET, Endpoint, Parameter
from kbroker.http.exchange import ClientGone
from kbroker.http.problems import Problem, problem_of
from kbroker.http.streams.asked import PARAMETERS, open_stream
from kbroker.http.streams.commands import Command, Session, Stream, command_of, id_of, result_of, waits
from kbroker.http.streams.feed import Feed, Message
from kbroker.http.streams.outlet import Outlet, Validity
from kbroker.http.websocket_speaking import short_reason, text_frame
from kbroker.quotas.entities import CONSUMER_BYTE_RATE

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.http.websocket_speaking import WebSocketSpeaker

_NORMAL_CLOSURE = 1000
_OWN_CODES = 4000  # and the status of the problem
_MOST_WAITING = 8  # commands


async def stream(websocket: WebSocket, request: HttpRequest) -> None:
    batch = request.query("batch", bool, default=False)
    commits = request.query("autoCommit", bool, default=True)
    validity = Validity(request)
    asked = await open_stream(request, commits=commits)
    try:
        await _accept(websocket, request)
        conversation = _Conversation(websocket, request, validity)
        feed = Feed(request, *asked, _Messages(batch=batch), conversation.outlet, validity)
    except BaseException:
        await asked.source.close()
        raise
    await conversation.hold(Stream(feed, asked))


async def commands(websocket: WebSocket, request: HttpRequest) -> None:
    validity = Validity(request)
    await _accept(websocket, request)
    await _Conversation(websocket, request, validity).hold(None)


class _Messages:
    """The form of a stream (feed.Form)."""

    def __init__(self, *, batch: bool) -> None:
        self._batch = batch

    def begin(self, position: str) -> bytes:
        return self.position(position)

    def records(self, messages: Sequence[Message]) -> bytes:
        if not self._batch:
            return b"".join([text_frame(message.record) for message in messages])
        records = b",".join([message.record for message in messages])
        position = messages[-1].position
        told = b',"position":%s' % encoded(position) if position else b""
        return text_frame(b'{"records":[%s]%s}' % (records, told))

    def gap(self, gap: bytes, position: str) -> bytes:
        return text_frame(b'{"gap":%s}' % gap)

    def position(self, position: str) -> bytes:
        return text_frame(encoded({"position": position})) if position else b""

    def still_there(self) -> bytes:
        return b""  # pings say that


class _Conversation:
    """What is spoken on one WebSocket."""

    def __init__(self, websocket: WebSocket, request: HttpRequest, validity: Validity) -> None:
        self._websocket = websocket
        self._validity = validity
        self._request = request
        self._speaker: WebSocketSpeaker = websocket.scope["state"]["speaker"]
        self._gone = asyncio.Event()
        self._waiting: set[asyncio.Task[None]] = set()
        request.connection.on_close(self._gone.set)
        self.outlet = Outlet(request, self._write)

    async def hold(self, stream: Stream | None) -> None:
        """Until the client goes, the stream ends or the server stops."""
        feeding = None if stream is None else asyncio.ensure_future(self._feed(stream.feed))
        session = Session(self._request, stream, self._gone)
        self._validity.on_end = self.outlet.change if stream is not None else self._expire
        if self._validity.problem is not None:
            self._validity.on_end()
        try:
            while (message := await self._speaker.receive())["type"] == "websocket.receive":
                await self._take(message.get("text"), session)
        except ClientGone:
            pass
        finally:
            tasks = [*self._waiting, *([] if feeding is None else [feeding])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._validity.stop()
            self.outlet.close()

    async def _write(self, frames: bytes) -> None:
        await self._speaker.write(frames)
        usage = self._request.usage
        if usage is not None:
            usage.consumed(len(frames))
            await usage.pace(CONSUMER_BYTE_RATE)

    def _expire(self) -> None:
        """There is no stream that would end by itself."""
        task = asyncio.ensure_future(self._end(self._validity.problem))
        self._waiting.add(task)
        task.add_done_callback(self._ended)

    # the stream

    async def _feed(self, feed: Feed) -> None:
        try:
            await feed.run()
        except ClientGone:
            self._request.connection.abort()
        except Exception as error:
            await self._end(problem_of(error))
        else:
            await self._close(_NORMAL_CLOSURE, "These were all the records.")

    async def _end(self, problem: Problem | None) -> None:
        if problem is not None:
            await self._close(_OWN_CODES + problem.status, problem.detail, {"end": problem.document()})

    async def _close(self, code: int, reason: str, last: Any = None) -> None:
        try:
            if last is not None:
                await self._send(encoded(last))
            await self.outlet.drained()
            await self._websocket.close(code, short_reason(reason))
        except (ClientGone, WebSocketDisconnect):
            pass

    # commands

    async def _take(self, text: str | None, session: Session) -> None:
        """One message; None: it is binary."""
        document, held = None, 0
        try:
            document, held = await self._document(text)
            command = command_of(document)
        except Problem as problem:
            self._request.hold(-held)
            await self._tell_problem(id_of(document), problem)
            return
        execution = self._execute(session, command, 0 if text is None else len(text), held)
        if not waits(command):
            await execution
            return
        if len(self._waiting) >= _MOST_WAITING:
            await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.ensure_future(execution)
        self._waiting.add(task)
        task.add_done_callback(self._ended)
        await asyncio.sleep(0)  # it has begun when the next command does

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._waiting.discard(task)
        if not task.cancelled() and task.exception() is not None:  # the client is gone
            self._request.connection.abort()

    async def _document(self, text: str | None) -> tuple[Any, int]:
        if text is None:
            raise Problem(415, "A command is JSON in a text message; this message is binary.")
        try:
            return await document_of(self._request, text.encode())
        except (ValueError, RecursionError) as error:
            raise Problem(400, f"The message is not JSON: {error}.") from None

    async def _execute(self, session: Session, command: Command, size: int, document_bytes: int) -> None:
        """``size``: of its message, which is held until the client has its answer. ``document_bytes``: what
        the request holds for it besides.
        """
        held = [size]
        connection = self._request.connection
        connection.hold(size)
        try:
            result = await result_of(session, command, size)
            held.append(len(result))
            connection.hold(len(result))
            await self._send(b'{"id":%s,"result":%s}' % (encoded(command.id), result))
            await self.outlet.drained()
        except ClientGone:
            raise
        except Exception as error:
            await self._tell_problem(command.id, problem_of(error))
        finally:
            connection.hold(-sum(held))
            self._request.hold(-document_bytes)
            if session.stream is not None:
                session.stream.feed.go_on()

    async def _tell_problem(self, command_id: Any, problem: Problem) -> None:
        await self._send(encoded({"id": command_id, "problem": problem.document()}))

    async def _send(self, text: bytes) -> None:
        await self.outlet.send(text_frame(text))


async def _accept(websocket: WebSocket, request: HttpRequest) -> None:
    try:
        await websocket.accept()
    except OSError:
        raise ClientGone from None


async def _no_answer(request: HttpRequest) -> Response:
    raise NotImplementedError


_COMMANDS = """\
A command is a JSON object in a text message: `{"id": 1, "command": "produce", "topic": "t", "value": 1}`. Its
answer is `{"id": 1, "result": …}`, or `{"id": 1, "problem": …}` with a problem document. Commands are
create_topic, produce, fetch, commit, heartbeat, pause, resume and seek. The first four take and answer what
the endpoints do, with what their paths and queries say among the members. They are executed in their order,
but a fetch that waits (maxWaitMs) keeps none waiting. A binary message is a problem, and no command.\
"""
_STREAM = f"""\
Each text message is a record as JSON, or has one of these members instead: records (several of them, with
batch), position (for lastEventId), gap (what was deleted before it was read), end (why the stream ends), id
(the answer to a command). {_COMMANDS} It is closed with 1000 behind the last record that was wanted, with
1001 when the broker stops, and with 4000 and the status of the problem that ends the stream.\
"""

ENDPOINTS = (
    Endpoint(
        WEBSOCKET,
        "/topics/{topic}/stream",
        _no_answer,
        "Records as they come; commands go the other way.",
        (
            *PARAMETERS,
            Parameter("batch", "Several records in one message, if there are several.", FLAG),
            Parameter(
                "autoCommit",
                "true if not given: the group is told what was sent. false: what is committed by command.",
                BOOLEAN,
            ),
        ),
        tag="streams",
        quota=CONSUMER_BYTE_RATE,
        description=_STREAM,
        socket=stream,
    ),
    Endpoint(
        WEBSOCKET,
        "/socket",
        _no_answer,
        "Commands alone, without a stream.",
        tag="streams",
        quota=CONSUMER_BYTE_RATE,
        description=_COMMANDS,
        socket=commands,
    ),
)
