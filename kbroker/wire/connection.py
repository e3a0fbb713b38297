"""One connection as its bytes arrive from both sides: what goes on to the client, and what there is to tell.

Sans-IO: the caller moves the bytes. They leave as they came, but for responses that a `Rewrite` changes:
these are held until they are whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kbroker.protocol.message import schema_of
from kbroker.wire.conversation import HEAD_OF_REQUEST, HEAD_OF_RESPONSE, Asked, Conversation
from kbroker.wire.frames import REQUEST, RESPONSE, Explained, request_parts, response_parts
from kbroker.wire.framing import LENGTH_BYTES, Frame, Framer, Part
from kbroker.wire.skimming import Skim

KEPT_BYTES: Final = 128 << 10  # of a frame, for explaining it
HELD_DATA_BYTES: Final = 1 << 20  # a Produce or Fetch response above that is not held

_WITH_RECORDS: Final = {REQUEST: (0,), RESPONSE: (1, 78)}  # Produce; Fetch, ShareFetch
_UNUSED_TAG: Final = 0x7F  # of a tagged field that no client knows, and so passes over
_MOST_UNASKED: Final = 3  # responses to nothing, then it is not Kafka

# What a response becomes on its way to the client: API key, version, frame.
Rewrite = Callable[[int, int, bytes], bytes]


@dataclass(slots=True)
class Event:
    """Something to tell: a frame, or (`explained` is None) a remark."""

    connection: int
    time: float
    explained: Explained | None
    latency_ms: float | None = None
    remark: str | None = None
    routine: bool = False  # a remark for those who want to see everything


class Connection:
    def __init__(
        self,
        number: int,
        rewrite: Rewrite | None = None,
        held_apis: dict[int, int] | None = None,
        *,
        is_complete: bool = True,
    ) -> None:
        """`held_apis`: API keys of responses that `rewrite` may change, and up to which size.

        `is_complete`: every byte comes by here, so that a response has a request.
        """
        self.number = number
        self.conversation = Conversation()
        self.requests = Framer(HEAD_OF_REQUEST, KEPT_BYTES)
        self.responses = Framer(HEAD_OF_RESPONSE, KEPT_BYTES)
        self._rewrite = rewrite
        self._held_apis = held_apis or {}
        self._ended: deque[tuple[str, Frame, float]] = deque()
        self._remarks: deque[Event] = deque()
        self._is_complete = is_complete
        self._unasked = 0

    def from_client(self, data: bytes, now: float) -> None:
        for part in self.requests.feed(data):
            frame = part.frame
            if part.began and frame is not None:
                frame.tag = self.conversation.request_began(part.data[LENGTH_BYTES:], frame.size)
                if frame.tag is None:
                    self.requests.opaque = True
            if self.requests.opaque:
                if not self.responses.opaque:
                    self.responses.opaque = True
                    self.remark(now, _not_kafka("the client", part.data))
                continue
            if frame is not None:
                if part.began and frame.size > KEPT_BYTES:
                    frame.skim = self._skim(REQUEST, frame.tag)
                _follow(frame, part)
                if part.ended:
                    self._ended.append((REQUEST, frame, now))

    def from_broker(self, data: bytes, now: float) -> list[bytes]:
        """What the client gets."""
        outgoing: list[bytes] = []
        if self.responses.opaque:
            outgoing.append(self.rest_for_client())
        for part in self.responses.feed(data):
            frame = part.frame
            if frame is None:
                if not self.requests.opaque and self.responses.opaque:
                    self.requests.opaque = True
                    self.remark(now, _not_kafka("the broker", part.data))
                outgoing.append(part.data)
                continue
            if part.began:
                self._response_began(frame, part.data[LENGTH_BYTES:])
                if self._is_nonsense(frame):
                    self.responses.opaque = self.requests.opaque = True
                    self.remark(now, _not_kafka("the broker", part.data))
            if self.responses.opaque:
                outgoing.append(part.data)
                continue
            asked, held = frame.tag
            endpoints_at = _follow(frame, part)
            if not held:
                outgoing.append(
                    part.data if endpoints_at is None else self._hidden(part.data, endpoints_at, now)
                )
            elif part.ended:
                outgoing += self._rewritten(asked, frame)
            if part.ended:
                self._ended.append((RESPONSE, frame, now))
        return outgoing

    def lost(self, kind: str, count: int, now: float) -> bool:
        """Bytes of requests or responses were not seen; whether it is known where the next frame begins."""
        framer = self.requests if kind == REQUEST else self.responses
        known, ended = framer.skip(count)
        if ended is not None:
            self._ended.append((kind, ended, now))
        return known

    def _response_began(self, frame: Frame, head: bytes) -> None:
        asked = self.conversation.response_began(head)
        held = False
        if self._rewrite is not None and asked is not None and asked.api_key in self._held_apis:
            held = frame.size <= self._held_apis[asked.api_key]
        if held:
            frame.keep = frame.size
        frame.tag = asked, held
        if asked is not None and frame.size > KEPT_BYTES:
            frame.skim = self._skim(RESPONSE, asked)

    def _skim(self, kind: str, asked: Asked) -> Skim | None:
        if asked.api_key not in _WITH_RECORDS[kind]:
            return None
        parts = (request_parts if kind == REQUEST else response_parts)(asked.api_key, asked.version)
        if parts is None:
            return None
        hides = kind == RESPONSE and self._rewrite is not None
        return Skim(parts, KEPT_BYTES, _endpoints_tag(*parts[-1]) if hides else None)

    def _hidden(self, data: bytes, position: int, now: float) -> bytes:
        """The part of a response that was too large to be held, without the addresses that it tells.

        Its length has gone on. The client then asks for Metadata.
        """
        text = "the addresses in a large response are hidden: the client is to ask for Metadata"
        self.remark(now, text)
        return data[:position] + bytes([_UNUSED_TAG]) + data[position + 1 :]

    def _is_nonsense(self, frame: Frame) -> bool:
        """Whether what begins is no response: not even a header, or again one to nothing."""
        asked: Asked | None = frame.tag[0]
        self._unasked += asked is None and self._is_complete
        is_token = asked is not None and asked.api_key is None
        return (frame.size < HEAD_OF_RESPONSE and not is_token) or self._unasked > _MOST_UNASKED

    def _rewritten(self, asked: Asked, frame: Frame) -> list[bytes]:
        assert self._rewrite is not None
        assert asked.api_key is not None
        body = self._rewrite(asked.api_key, asked.version, bytes(frame.kept))
        return [len(body).to_bytes(LENGTH_BYTES, "big"), body]

    def rest_for_client(self) -> bytes:
        """At the end of the broker's bytes: what was held back of a frame that did not become whole."""
        rest = self.responses.rest()
        frame = self.responses.unfinished()
        if frame is not None and frame.tag is not None and frame.tag[1]:
            rest = frame.size.to_bytes(LENGTH_BYTES, "big") + bytes(frame.kept) + rest
        return rest

    def remark(self, now: float, text: str) -> None:
        self._remarks.append(Event(self.number, now, None, remark=text))

    def events(self) -> Iterator[Event]:
        """What there is to tell. Explaining is the costly part: for when the bytes have gone on."""
        while self._ended:
            kind, frame, now = self._ended.popleft()
            skim = frame.skim
            shortened = skim is not None and skim.position == frame.size and not skim.is_broken
            kept = bytes(skim.kept if skim is not None and shortened else frame.kept[:KEPT_BYTES])
            if kind == REQUEST:
                explained = self.conversation.request_ended(frame.tag, kept, frame.size, now)
                explained.is_shortened = shortened
                yield Event(self.number, now, explained)
                continue
            asked: Asked | None = frame.tag[0]
            explained = self.conversation.response_ended(asked, kept, frame.size)
            explained.is_shortened = shortened
            latency = None
            if asked is not None and asked.ended_at is not None:
                latency = max(now - asked.ended_at, 0.0) * 1000
            yield Event(self.number, now, explained, latency)
        while self._remarks:
            yield self._remarks.popleft()


def _endpoints_tag(cls: type[Any], version: int) -> int | None:
    """The tagged field in which a response tells addresses, if it has one."""
    return next((f.tag for f in schema_of(cls) if f.name == "node_endpoints" and f.present(version)), None)


def _follow(frame: Frame, part: Part) -> int | None:
    """Skim a part of a frame; where in its bytes the tag of node endpoints is, if it has just been found."""
    skim = frame.skim
    if skim is None or frame.missing:
        return None
    before = skim.position - (LENGTH_BYTES if part.began else 0)
    known = skim.endpoints_at
    skim.feed(part.data[LENGTH_BYTES:] if part.began else part.data)
    if skim.endpoints_at is None or known is not None or skim.is_broken:
        return None
    return skim.endpoints_at - before


def _not_kafka(who: str, data: bytes) -> str:
    guess = ""
    if data[:1] == b"\x16" and data[1:2] == b"\x03":
        guess = ", but TLS"
    elif data[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"HTTP"):
        guess = ", but HTTP"
    return f"what {who} sends is not Kafka's protocol{guess}: its bytes go on unexplained"
