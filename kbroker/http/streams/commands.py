"""Commands over a WebSocket: JSON objects in text messages, each answered by its id.

    {"id": 7, "command": "produce", "topic": "orders", "key": "ada", "value": {"amount": 12}}
    {"id": 7, "result": {"topic": "orders", "partition": 0, "offset": 3, "timestamp": 1700000000000}}
    {"id": 8, "problem": {"title": "Not Found", "status": 404, "detail": "There is no such topic.", …}}

Most commands are requests of the HTTP API: what they take and answer is what the endpoint does, with what its
path and its query say among the members. The others are about the stream of this WebSocket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from kbroker.http import fetching, groups, publishing, topics
from kbroker.http.answers import encoded
from kbroker.http.groups import given_offsets, refused, shown_partitions
from kbroker.http.members import Members
from kbroker.http.moments import timestamp_of
from kbroker.http.problems import Problem
from kbroker.http.request import HttpCaller, HttpRequest
from kbroker.http.streams.sources import MemberSource
from kbroker.network.awaiting import settled
from kbroker.operations.offsets import EARLIEST, LATEST
from kbroker.operations.partitions import beginning_at
from kbroker.quotas.entities import PRODUCER_BYTE_RATE

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.streams.asked import Asked
    from kbroker.http.streams.feed import Feed

_LONGEST_ID: Final = 200
_ALWAYS: Final = ("id", "command")
_NAMED: Final[Mapping[Any, int]] = {"earliest": EARLIEST, "latest": LATEST}


class Stream(NamedTuple):
    """The one of a WebSocket."""

    feed: Feed
    asked: Asked


class Session(NamedTuple):
    """What is spoken on one WebSocket."""

    opened: HttpRequest
    """The request that opened it."""
    stream: Stream | None
    gone: asyncio.Event
    """Set when the client is."""

    @property
    def needed_stream(self) -> Stream:
        if self.stream is None:
            raise Problem(409, "This WebSocket has no stream: open one at /topics/{topic}/stream.")
        return self.stream

    @property
    def member(self) -> MemberSource | None:
        """Of a group."""
        source = None if self.stream is None else self.stream.asked.source
        return source if isinstance(source, MemberSource) else None


class Command(NamedTuple):
    id: str | int | float | None
    name: str
    members: Mapping[str, Any]
    """Besides these two."""


def command_of(document: Any) -> Command:
    """Raises Problem."""
    members = Members(document, "a command")
    name = members.text("command")
    return Command(id_of(document), name, {each: document[each] for each in document if each not in _ALWAYS})


def id_of(document: Any) -> Any:
    """What the answer is known by; None: it has none that may be repeated."""
    found = document.get("id") if isinstance(document, dict) else None
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return None
    return found if len(str(found)) <= _LONGEST_ID else None


async def result_of(session: Session, command: Command, size: int) -> bytes:
    """As JSON; ``size``: of its message."""
    execute = _ABOUT_STREAMS.get(command.name)
    if execute is not None and not (command.name == "commit" and "group" in command.members):
        return encoded(await execute(session, command))
    endpoint = _ENDPOINTS.get(command.name)
    if endpoint is None:
        known = ", ".join(sorted(_ENDPOINTS.keys() | _ABOUT_STREAMS.keys()))
        raise Problem(400, f"There is no command {command.name[:50]!r}, but {known}.")
    request = _CommandRequest(session, command, endpoint)
    try:
        usage = request.usage
        if usage is not None:
            await usage.admit()
            if request.quota == PRODUCER_BYTE_RATE:
                usage.produced(size)
        return await (await endpoint.handle(request)).whole()
    finally:
        request.release()


def waits(command: Command) -> bool:
    """Whether it may wait for something to come: others are not to wait for it."""
    return command.name == "fetch" and bool(command.members.get("maxWaitMs"))


# requests of the HTTP API


class _Endpoint(NamedTuple):
    handle: Callable[[HttpRequest], Awaitable[Response]]
    path: str
    """With the members that stand in it."""
    query: tuple[str, ...] = ()
    """Those that stand in the query."""
    body: bool = True
    """Whether the others are the body; else there may be no others."""
    quota: str | None = None


_ENDPOINTS: Final[Mapping[str, _Endpoint]] = {
    "create_topic": _Endpoint(topics.create, "/topics", ("validateOnly",)),
    "produce": _Endpoint(
        publishing.publish_to_topic, "/topics/{topic}/messages", ("acks",), quota=PRODUCER_BYTE_RATE
    ),
    "fetch": _Endpoint(
        fetching.fetch,
        "/topics/{topic}/partitions/{partition}/fetch",
        (
            *("offset", "timestamp", "maxBytes", "maxRecords", "maxWaitMs"),
            *("isolation", "key", "value", "minOffset"),
        ),
        body=False,
    ),
    "commit": _Endpoint(groups.commit, "/groups/{group}/offsets"),
}


class _CommandRequest(HttpRequest):
    """A command as its endpoint sees it."""

    def __init__(self, session: Session, command: Command, endpoint: _Endpoint) -> None:
        opened = session.opened
        members = dict(command.members)
        if session.stream is not None and "{topic}" in endpoint.path:
            members.setdefault("topic", opened.path["topic"])
        path = {name: _text(members, name) for name in _names(endpoint.path)}
        query = {name: _text(members, name) for name in endpoint.query if name in members}
        headers = [(b"x-client-id", opened.caller.client_id.encode("latin-1"))]
        if "idempotencyKey" in members and command.name == "produce":
            key = _text(members, "idempotencyKey").encode(errors="replace")
            headers.append((b"idempotency-key", key))
        if members and not endpoint.body:
            known = ", ".join((*_ALWAYS, *_names(endpoint.path), *endpoint.query))
            raise Problem(
                400, f"{command.name} has no member {next(iter(members))[:100]!r}; known are {known}."
            )
        self._document = members
        self._gone = session.gone
        whole_path = endpoint.path.format_map({name: quote(text, safe="") for name, text in path.items()})
        scope = {
            **opened.scope,
            "type": "http",
            "method": "POST" if endpoint.body else "GET",
            "path": whole_path,
            "raw_path": whole_path.encode(),
            "query_string": urlencode(query).encode(),
            "headers": headers,
        }
        super().__init__(
            scope,
            self._nothing_more,
            opened.broker,
            opened.connection,
            path,
            opened.request_id,
            opened.logins,
            opened.quotas,
        )
        self.quota = endpoint.quota
        self.finished = True
        caller = opened.caller
        self.caller = HttpCaller(
            caller.principal, caller.peer_host, f"WebSocket {command.name}", caller.client_id
        )

    async def _nothing_more(self) -> Any:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def json(self) -> Any:
        return self._document

    async def body(self, limit: int | None = None) -> bytes:
        return encoded(self._document)


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _text(members: dict[str, Any], name: str) -> str:
    """As it would stand in a path or a query; it is none of the body's members."""
    value = members.pop(name, None)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    raise Problem(400, f"The command needs the member {name!r}, a string or a whole number.")


# about the stream


async def _commit(session: Session, command: Command) -> Any:
    if session.member is None:
        raise Problem(
            409, 'This WebSocket is no member of a group: open its stream with group=…, or name the "group".'
        )
    members = Members(dict(command.members), "a commit").only("offsets")
    topic = session.opened.path["topic"]
    offsets = given_offsets(
        [
            {"topic": topic, **each} if isinstance(each, dict) else each
            for each in members.required_items("offsets")
        ]
    )
    committing = session.member.consumer.commit(session.opened.resources, offsets)
    return {"refused": refused(await settled(committing))}


async def _heartbeat(session: Session, command: Command) -> Any:
    Members(dict(command.members), "a heartbeat").only()
    if session.member is None:
        return {}
    consumer = session.member.consumer
    consumer.touch()
    return {
        "groupId": consumer.group_id,
        "memberId": consumer.member_id,
        "assignment": shown_partitions(consumer.assignment),
    }


async def _pause(session: Session, command: Command) -> Any:
    Members(dict(command.members), "a pause").only()
    session.needed_stream.feed.pause()
    return {}


async def _resume(session: Session, command: Command) -> Any:
    Members(dict(command.members), "a resume").only()
    session.needed_stream.feed.resume()
    return {}


async def _seek(session: Session, command: Command) -> Any:
    feed = session.needed_stream.feed
    members = Members(dict(command.members), "a seek").only("partition", "offset", "timestamp")
    partition, wanted, moment = members.natural("partition"), members.get("offset"), members.get("timestamp")
    if (wanted is None) == (moment is None):
        raise Problem(400, 'Seek to an "offset" or to a "timestamp": name one of the two.')
    if moment is not None or wanted in _NAMED:
        at = timestamp_of(str(moment), "timestamp") if wanted is None else _NAMED[wanted]
        topic = session.opened.path["topic"]
        offset = await settled(beginning_at(session.opened.resources, topic, partition, at))
    else:
        offset = members.long("offset")
        if offset < 0:
            raise Problem(400, "The offset must be 0 or more, earliest or latest.")
    await feed.seek(partition, offset)
    return {"partition": partition, "offset": offset}


_ABOUT_STREAMS: Final[Mapping[str, Callable[[Session, Command], Awaitable[Any]]]] = {
    "commit": _commit,
    "heartbeat": _heartbeat,
    "pause": _pause,
    "resume": _resume,
    "seek": _seek,
}
