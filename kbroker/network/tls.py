"""TLS between a socket and a connection: to the transport it is a protocol, to the connection a transport.

Invariants:
- The connection is there, counted and limited, from the accept on. It gets its first byte after the
  handshake.
- A handshake takes no longer than it may, and only so many are unfinished at a time: of more, the oldest is
  closed.
- Nothing leaves that TLS has not encrypted: a write before the end of the handshake is dropped, and the
  connection gets no socket to send files to.
- Ciphertext is read into one area that all connections share, and decrypted into the connection's own buffer.
  While the connection wants no more, what is left is kept, counts in the budget, and nothing more is read.
- No more is encrypted than the socket takes: the rest waits as it was given.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

from kbroker.authentication.failed_logins import FailedLogins
from kbroker.security.principal import ANONYMOUS, Principal
from kbroker.security.tls.certificate import identity
from kbroker.security.tls.der import Malformed
from kbroker.security.tls.principal_mapping import NoMatchingRule

if TYPE_CHECKING:
    from kbroker.network.budget import Budget
    from kbroker.security.tls.context import Tls

logger = logging.getLogger("kbroker.tls")

_READ_BYTES = 128 * 1024
_RECORD_BYTES = 16 * 1024  # the most that one TLS record holds
_FED_BYTES = 2 * _RECORD_BYTES  # ciphertext is given to OpenSSL in such pieces: its buffers never shrink
_ENCRYPTED_BYTES = 16 * _RECORD_BYTES  # is written at a time
_MOST_HANDSHAKES = 1000
_MOST_UNTAKEN_BYTES = 4 * _ENCRYPTED_BYTES  # more than is ever written at a time

# What OpenSSL says, and what it means to whoever reads the log.
_REASONS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS; its listener has security.protocol=SSL",
    "HTTP_REQUEST": "this is an HTTP request without TLS",
    "HTTPS_PROXY_REQUEST": "this is an HTTP request without TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS version of ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "it has no cipher suite in common with this listener",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, and ssl.client.auth=required",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust this broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not trust this broker's certificate",
}


class Handshakes:
    """Those that are unfinished, the oldest first."""

    def __init__(self, timeout_seconds: float, most: int = _MOST_HANDSHAKES) -> None:
        self.timeout_seconds = timeout_seconds
        self._most = most
        self._unfinished: dict[TlsStream, None] = {}
        self._failed = FailedLogins()

    def begin(self, stream: TlsStream) -> None:
        self._unfinished[stream] = None
        if len(self._unfinished) > self._most:
            next(iter(self._unfinished)).give_up("too many others have not finished their handshake, either")

    def end(self, stream: TlsStream) -> None:
        self._unfinished.pop(stream, None)

    def is_told(self, host: str, reason: str) -> bool:
        """One more has failed: whether the log is to tell of it, as of failed logins."""
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        return self._failed.add(f"{host} {reason}", now_ms, 0, 0)[1]


class TlsSource(Protocol):
    """What a listener's new connections need; `tls` may be another one tomorrow."""

    tls: Tls
    handshakes: Handshakes
    scratch: memoryview
    budget: Budget


class SecuredConnection(Protocol):
    """What is behind the handshake: a connection."""

    peer_host: str
    peer_port: int

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, exc: BaseException | None) -> None: ...
    def secured(self, principal: Principal) -> None: ...
    def not_secured(self, reason: str) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, nbytes: int) -> None: ...
    def eof_received(self) -> bool: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


def new_scratch() -> memoryview:
    return memoryview(bytearray(_READ_BYTES))


class TlsStream(asyncio.BufferedProtocol):
    encrypts = True

    __slots__ = (
        "_closing",
        "_connection",
        "_ended",
        "_established",
        "_feed",
        "_inbound",
        "_kept",
        "_lost",
        "_object",
        "_outbound",
        "_pending",
        "_plain",
        "_plain_bytes",
        "_reading",
        "_resuming",
        "_source",
        "_timeout",
        "_told_end",
        "_transport",
        "_write_paused",
    )

    def __init__(self, connection: SecuredConnection, source: TlsSource) -> None:
        self._connection = connection
        self._source = source
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # set by connection_made
        self._object: ssl.SSLObject | None = None  # made with the first byte
        self._inbound: ssl.MemoryBIO = None  # type: ignore[assignment]  # as well
        self._outbound: ssl.MemoryBIO = None  # type: ignore[assignment]  # as well
        self._timeout: asyncio.TimerHandle | None = None
        self._established = False
        self._feed = memoryview(b"")  # ciphertext that OpenSSL was not given yet
        self._kept = 0  # bytes of it that count in the budget
        self._pending = False  # there may be something to decrypt that the connection did not want
        self._plain: deque[memoryview] = deque()  # to be encrypted
        self._plain_bytes = 0
        self._reading = True  # the connection wants more
        self._resuming = False
        self._write_paused = False
        self._ended = False  # nothing more comes from the peer
        self._told_end = False  # and the connection knows
        self._closing = False
        self._lost = False

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        handshakes = self._source.handshakes
        self._timeout = asyncio.get_running_loop().call_later(handshakes.timeout_seconds, self._too_slow)
        self._connection.connection_made(cast("asyncio.Transport", self))
        handshakes.begin(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._source.scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._closing or self._ended:
            return
        if self._object is None:
            self._begin()
        self._feed = self._source.scratch[:nbytes]
        self._receive()
        if len(self._feed):
            self._keep()

    def eof_received(self) -> bool:
        self._ended = True
        if not self._established:
            self._over()
            self._connection.close()
            return False
        if not self._pending:
            self._tell_end()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        self._lost = True
        self._over()
        self._release()
        self._plain.clear()
        self._plain_bytes = 0
        self._connection.connection_lost(exc)
        self._object = None

    def pause_writing(self) -> None:
        if not self._write_paused:
            self._write_paused = True
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._write_paused = False
        self._encrypt()
        if not self._write_paused and not self._lost:
            self._connection.resume_writing()
            self._finish()

    # the connection's side

    @property
    def beneath(self) -> asyncio.Transport:
        """What sends the encrypted bytes: not to be written to."""
        return self._transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default) if name in ("sockname", "peername") else default

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._plain_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines((data,))

    def writelines(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        if not self._established or self._closing:
            return
        for part in parts:
            if len(part):
                self._plain.append(memoryview(part))
                self._plain_bytes += len(part)
        if not self._write_paused:
            self._encrypt()

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self._reading = False
        if not self._lost:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._reading = True
        if self._pending:
            if not self._resuming:  # not within the call that made room
                self._resuming = True
                asyncio.get_running_loop().call_soon(self._resume)
        elif not self._ended and not self._closing and not self._lost:
            self._transport.resume_reading()

    def close(self) -> None:
        """Once everything has gone out."""
        if not self._closing:
            self._closing = True
            self._over()
            self._release()
            self._transport.pause_reading()
            self._finish()

    def abort(self) -> None:
        self._closing = True
        self._over()
        self._release()
        self._transport.abort()

    def give_up(self, reason: str) -> None:
        """Before the end of the handshake. Of who never sent a byte there may be thousands."""
        if self._object is not None:
            self._say(reason)
        self._over()
        self._connection.abort()

    # receiving

    def _begin(self) -> None:
        self._inbound, self._outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = self._source.tls.context
        self._object = context.wrap_bio(self._inbound, self._outbound, server_side=True)

    def _receive(self) -> None:
        """Decrypt what came, and hand it over, as long as the connection wants it."""
        try:
            if not self._established and not self._shake_hands():
                return
            self._pending = True
            while self._reading and not self._closing:
                if not self._fill():
                    self._pending = False
                    break
        except ssl.SSLError as error:
            self._fail(error)
        except (NoMatchingRule, Malformed) as error:
            self._refuse(str(error))

    def _shake_hands(self) -> bool:
        assert self._object is not None
        while True:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                if self._feed_some():
                    continue
                self._send_outbound()
                return False
            break
        self._send_outbound()
        principal = self._principal()
        self._established = True
        self._over()
        self._connection.secured(principal)
        return True

    def _principal(self) -> Principal:
        assert self._object is not None
        certificate = self._object.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        return Principal("User", self._source.tls.mapping.name(identity(certificate).distinguished_name))

    def _fill(self) -> bool:
        """One turn of the connection; whether there may be more."""
        assert self._object is not None
        read = self._object.read
        buffer = self._connection.get_buffer(-1)
        filled, room = 0, len(buffer)
        more = True
        while filled < room:
            try:
                taken = cast("int", read(room - filled, buffer[filled:]))
            except ssl.SSLWantReadError:
                if self._feed_some():
                    continue
                more = False
                break
            except ssl.SSLZeroReturnError:
                taken = 0
            if not taken:  # close_notify
                self._ended = True
                self._feed = memoryview(b"")
                more = False
                break
            filled += taken
        if self._outbound.pending:  # what TLS itself answers, to a new key for example
            self._send_outbound()
        if filled:
            self._connection.buffer_updated(filled)
        if self._ended and not more and not self._closing:
            self._tell_end()
        return more

    def _tell_end(self) -> None:
        if not self._told_end:
            self._told_end = True
            self._connection.eof_received()

    def _feed_some(self) -> bool:
        part = self._feed[:_FED_BYTES]
        if not len(part):
            return False
        self._inbound.write(part)
        self._feed = self._feed[len(part) :]
        return True

    def _keep(self) -> None:
        """What the connection does not want now; others read into the same place meanwhile."""
        if self._closing or self._lost:
            self._feed = memoryview(b"")
            return
        self._feed = memoryview(bytes(self._feed))
        self._kept = len(self._feed)
        self._source.budget.set_aside(self._kept)

    def _release(self) -> None:
        self._feed = memoryview(b"")
        if self._kept:
            kept, self._kept = self._kept, 0
            self._source.budget.take_up(kept)

    def _resume(self) -> None:
        self._resuming = False
        if self._closing or self._lost or not self._reading:
            return
        kept, self._kept = self._kept, 0
        self._receive()
        if kept:
            self._source.budget.take_up(kept)
        if len(self._feed):
            self._keep()
        if self._reading and not self._ended and not self._closing and not self._lost:
            self._transport.resume_reading()

    # sending

    def _encrypt(self) -> None:
        """As much as the socket takes."""
        if self._object is None:
            return
        write, taken = self._object.write, self._outbound.read
        try:
            while self._plain and not self._write_paused and not self._lost:
                records: list[bytes] = []
                size = 0
                while self._plain and size < _ENCRYPTED_BYTES:
                    record = self._next_record()
                    write(record)
                    records.append(taken())
                    size += len(record)
                self._plain_bytes -= size
                self._transport.writelines(records)
        except ssl.SSLError as error:
            self._fail(error)

    def _next_record(self) -> memoryview | bytearray:
        """Full ones, as far as there is enough: small parts go together."""
        plain = self._plain
        first = plain[0]
        if len(first) > _RECORD_BYTES:
            plain[0] = first[_RECORD_BYTES:]
            return first[:_RECORD_BYTES]
        if len(first) == _RECORD_BYTES or len(plain) == 1:
            return plain.popleft()
        record = bytearray()
        while plain and len(record) < _RECORD_BYTES:
            part = plain[0]
            room = _RECORD_BYTES - len(record)
            record += part[:room]
            if len(part) > room:
                plain[0] = part[room:]
            else:
                plain.popleft()
        return record

    def _send_outbound(self) -> None:
        """What TLS itself has to say. Who asks it for more and more and takes none of it is closed."""
        if not self._outbound.pending or self._lost:
            return
        self._transport.write(self._outbound.read())
        if self._transport.get_write_buffer_size() > _MOST_UNTAKEN_BYTES and not self._closing:
            self._say("it does not take what TLS answers")
            self._connection.abort()

    # ending

    def _over(self) -> None:
        """The handshake is done, or nobody waits for it any more."""
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
            self._source.handshakes.end(self)

    def _too_slow(self) -> None:
        self.give_up(f"its TLS handshake took more than {self._source.handshakes.timeout_seconds:g} s")

    def _fail(self, error: ssl.SSLError) -> None:
        reason = _REASONS.get(error.reason or "", "")
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"its certificate is not accepted: {error.verify_message}"
        if not reason:
            reason = (error.reason or type(error).__name__).lower().replace("_", " ")
        self._refuse(reason)

    def _refuse(self, reason: str) -> None:
        self._say(reason)
        self._send_outbound()  # the alert
        self._plain.clear()
        self._plain_bytes = 0
        self._connection.close()

    def _say(self, reason: str) -> None:
        host, port = self._connection.peer_host, self._connection.peer_port
        if self._established:
            logger.warning("closing %s:%s: %s", host, port, reason, extra={"peer": host})
            return
        level = logging.WARNING if self._source.handshakes.is_told(host, reason) else logging.DEBUG
        text = "TLS handshake failed, closing %s:%s: %s"
        logger.log(level, text, host, port, reason, extra={"peer": host})
        self._connection.not_secured(reason)

    def _finish(self) -> None:
        if not self._closing or self._plain or self._lost:
            return
        if self._established and self._object is not None:
            with contextlib.suppress(ssl.SSLError):  # the peer has not said goodbye yet, and need not
                self._object.unwrap()
            self._send_outbound()
        self._transport.close()
