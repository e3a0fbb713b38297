"""HTTP/1.1 on one connection, within our limits of heads: httptools parses, exchanges are served one by one.

Invariants:
- What comes is parsed a little at a time, and requests that come together are served one after the other, so
  that others have their turn.
- Nothing more is parsed, nor read, while a request waits for the one before it, or what came of a body was
  not asked for. What came and was neither parsed nor asked for counts in the budget.
- After an upgrade somebody else speaks on the connection (upgrading.py).
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import gmtime, perf_counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools

from kbroker.http import at_once
from kbroker.http.exchange import STATUS_LINES, UNREAD_BYTES, Exchange
from kbroker.http.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kbroker.http.connection import HttpConnection
    from kbroker.network.budget import Budget

_PARSED_AT_ONCE: Final = 8 * 1024  # bytes
_WRITTEN_AT_ONCE: Final = 64 * 1024
_TURN_SECONDS: Final = 0.002
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_OF_UPGRADES: Final = (b"upgrade", b"http2-settings")
_MOST_FIELDS: Final = 200  # of a head


_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Speaking:
    """What all connections share."""

    def __init__(
        self,
        serve: Callable[[Exchange], Coroutine[Any, Any, None]],
        upgrade: Callable[[HttpConnection, bytes], None],
        budget: Budget,
        max_header_bytes: int,
    ) -> None:
        """``upgrade``: hands a connection over, with what has come on it."""
        self.serve = serve
        self.upgrade = upgrade
        self.budget = budget
        self.max_header_bytes = max_header_bytes
        self.common_headers = b""
        """Of every answer."""
        self._second = 0

    def tell_date(self, now_ms: int) -> None:
        second = now_ms // 1000
        if second != self._second:
            self._second = second
            self.common_headers = f"server: kbroker\r\ndate: {_date(second)}\r\n".encode()


class HttpSpeaker:
    """One connection, from its accept or from an upgrade to WebSocket on not."""

    def __init__(self, shared: Speaking, connection: HttpConnection) -> None:
        self._shared = shared
        self._connection = connection
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._received = b""
        self._parsed = 0  # bytes of it
        self._kept = 0  # bytes of it that count in the budget
        self._in_head = False
        self._head_bytes = 0
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._too_many = False
        self._coming: Exchange | None = None
        self._waiting: deque[Exchange] = deque()
        self._served: Exchange | None = None
        self._over = False  # nothing is served any more
        self._going_on = False
        self._reading = True
        self._unwritten = bytearray()
        self._writable: asyncio.Event | None = None  # None: it is
        self._scope: dict[str, Any] = {}  # what is the same for all requests

    # the connection's side

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._scope = {
            "type": "http",
            "asgi": _ASGI,
            "server": _address(transport, "sockname"),
            "client": _address(transport, "peername"),
            "scheme": "https" if self._connection.secure else "http",
            "root_path": "",
            "state": {"connection": self._connection},
        }

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._shared.tell_date(self._connection.last_active)
        self._received = self._received[self._parsed :] + data if self._received else data
        self._parsed = 0
        self._go_on()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end()
        if self._served is not None:
            self._served.lost()
        self.resume_writing()

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def shutdown(self) -> None:
        """End what is under way, then close."""
        if self._served is None:
            self._connection.close()
        else:
            self._served.keep_alive = False

    @property
    def awaits_more(self) -> bool:
        return self._coming is not None

    def refuse(self, problem: Problem) -> None:
        """Before there is a request that could be answered."""
        self._end()
        if self._connection.busy or self._connection.is_closing():  # in the middle of another answer
            self._connection.close()
            return
        self._connection.answered_early = True
        body = problem.encoded()
        headers = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.write(STATUS_LINES[problem.status] + self.common_headers + headers.encode() + body)
        self._connection.close()

    # the exchange's side

    @property
    def common_headers(self) -> bytes:
        return self._shared.common_headers

    def write(self, data: bytes) -> None:
        self.flush()
        self._connection.write(data)

    def write_soon(self, data: bytes) -> None:
        """With what else is written in this turn."""
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self.flush)
        self._unwritten += data
        if len(self._unwritten) > _WRITTEN_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if self._unwritten:
            self._connection.write(bytes(self._unwritten))
            self._unwritten.clear()

    async def writable(self) -> None:
        """Return once the peer has taken what it was sent, but for a little."""
        while self._writable is not None:
            await self._writable.wait()

    def read_on(self) -> None:
        """What had come of the body was asked for."""
        if not self._reading:
            self._go_on_later()
        elif self._kept:
            self._keep()

    def answered(self, exchange: Exchange) -> None:
        self._served = None
        self.flush()
        if not exchange.keep_alive:
            self._end()
            self._connection.close()
        elif self._received or self._waiting:
            self._go_on_later()
        else:
            self._settle()

    # one thing after the other

    def _go_on_later(self) -> None:
        if not self._going_on:
            self._going_on = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Parse and serve what is there, as far as a turn goes."""
        self._going_on = True
        turn_ends = perf_counter() + _TURN_SECONDS
        while (step := self._next_step()) is not None and perf_counter() < turn_ends:
            step()
        self._going_on = False
        self._settle()

    def _next_step(self) -> Callable[[], None] | None:
        """A request is served once it has come whole, or as much of it as there is."""
        if self._over:
            return None
        parses = self._wants_more and len(self._received) > 0
        if self._waiting and self._served is None and (self._waiting[0].came_whole or not parses):
            return self._serve
        return self._parse_some if parses else None

    @property
    def _wants_more(self) -> bool:
        if self._coming is None:
            return not self._waiting
        return self._coming.unread_bytes <= (_PARSED_AT_ONCE if self._shared.budget.tight else UNREAD_BYTES)

    def _settle(self) -> None:
        """Tell the connection how things stand."""
        connection = self._connection
        if self._over:
            return
        if self._next_step() is not None:
            self._go_on_later()
        self._keep()
        if self._reading != (self._wants_more and not self._received):
            self._reading = not self._reading
            if self._reading:
                connection.resume_reading()
            else:
                connection.pause_reading()
        connection.busy = self._served is not None or self._coming is not None or bool(self._waiting)
        if connection.sends_no_more and not connection.busy:
            connection.close()
        if self._in_head and connection.head_since is None:
            connection.head_since = connection.last_active

    def _keep(self) -> None:
        """What was received and stays for later counts."""
        size = 0
        if not self._over:
            size = len(self._received) - self._parsed
            if self._served is not None:
                size += self._served.unread_bytes
            for exchange in self._waiting:
                size += exchange.unread_bytes
        if size != self._kept:
            more, self._kept = size - self._kept, size
            self._connection.set_aside(more)

    def _end(self) -> None:
        self._over = True
        self._received = b""
        self._headers = []
        self._waiting.clear()
        self._keep()

    def _serve(self) -> None:
        exchange = self._served = self._waiting.popleft()
        begin = at_once.begin if exchange.came_whole else at_once.begin_in_a_task
        begin(self._shared.serve(exchange))

    # parsing

    def _parse_some(self) -> None:
        part = memoryview(self._received)[self._parsed : self._parsed + _PARSED_AT_ONCE]
        self._parsed += len(part)
        was_in_head = self._in_head
        try:
            self._parser.feed_data(part)
        except httptools.HttpParserUpgrade as upgrade:
            self._parsed += upgrade.args[0] - len(part)
            self._upgrade()
            return
        except httptools.HttpParserError as error:
            reason = str(error) or "it cannot be understood"
            self.refuse(Problem(400, f"This is no HTTP/1.1 request: {reason}."))
            return
        if self._parsed == len(self._received):
            self._received, self._parsed = b"", 0
        if self._in_head and was_in_head:
            self._head_bytes += len(part)
        most = self._shared.max_header_bytes
        if self._in_head and self._head_bytes > most:
            named = "(kbroker.http.max.header.bytes)"
            self.refuse(Problem(431, f"The head of a request may have {most} bytes at most {named}."))
        elif self._too_many:
            self.refuse(Problem(431, f"The head of a request may have {_MOST_FIELDS} fields at most."))

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        self._url = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # not a trailer of a chunked body
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        connection, parser = self._connection, self._parser
        connection.head_since = None
        self._too_many = len(self._headers) > _MOST_FIELDS
        if parser.should_upgrade() or self._too_many:
            return
        url = httptools.parse_url(self._url)
        raw_path: bytes = url.path
        path = raw_path.decode("ascii")
        version = parser.get_http_version()
        scope = {
            **self._scope,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": url.query or b"",
            "headers": self._headers,
        }
        self._coming = Exchange(
            self,
            scope,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            expects_continue=(b"expect", b"100-continue") in self._headers,
        )
        self._waiting.append(self._coming)

    def on_body(self, body: bytes) -> None:
        if self._coming is not None:
            self._coming.received(body)

    def on_message_complete(self) -> None:
        if self._coming is not None:
            self._coming.ended()
            self._coming = None

    # upgrades

    def _upgrade(self) -> None:
        """The parser stands behind a head that asks for an upgrade: to WebSocket, or to what is not spoken
        here, which is ignored (RFC 9110, 7.8).
        """
        headers = self._headers
        method = self._parser.get_method()
        if not any(name in _OF_UPGRADES for name, _ in headers):
            self.refuse(Problem(405, f"{method.decode()} is not answered here."))
            return
        to_websocket = method == b"GET" and _is_handshake(dict(headers))
        if not to_websocket:
            headers = [header for header in headers if header[0] not in _OF_UPGRADES]
        head = b"".join([b"%b: %b\r\n" % header for header in headers])
        head = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self._url, head)
        rest = self._received[self._parsed :]
        if to_websocket:
            self._end()
            self._connection.busy = True
            self._connection.pause_reading()
            self._shared.upgrade(self._connection, head + rest)
        else:
            self._parser = httptools.HttpRequestParser(self)
            self._received, self._parsed = head + rest, 0


def _date(second: int) -> str:
    """As HTTP writes it: email.utils takes long to load, and strftime knows languages."""
    time = gmtime(second)
    day, month = _DAYS[time.tm_wday], _MONTHS[time.tm_mon - 1]
    clock = f"{time.tm_hour:02}:{time.tm_min:02}:{time.tm_sec:02}"
    return f"{day}, {time.tm_mday:02} {month} {time.tm_year:04} {clock} GMT"


def _is_handshake(headers: dict[bytes, bytes]) -> bool:
    """Of WebSocket (RFC 6455), and nothing with a body."""
    return (
        headers.get(b"upgrade", b"").lower() == b"websocket"
        and b"sec-websocket-key" in headers
        and not headers.keys() & {b"content-length", b"transfer-encoding"}
    )


def _address(transport: asyncio.Transport, name: str) -> tuple[str, int] | None:
    address = transport.get_extra_info(name)
    return (str(address[0]), int(address[1])) if address else None
