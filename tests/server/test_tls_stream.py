"""TLS between a socket and a connection, without either: who is told what, and in which order."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kbroker.config.settings import Settings
from kbroker.network.budget import Budget
from kbroker.network.tls import Handshakes, TlsStream, new_scratch
from kbroker.security.principal import Principal
from kbroker.security.tls.context import SETTINGS, make_tls
from tests.support.certificates import Certificates


class Transport:
    """The socket's side: keeps what is written, and takes no more than `room` bytes of it."""

    def __init__(self) -> None:
        self.stream: TlsStream
        self.written = bytearray()
        self.untaken = bytearray()
        self.room = 1 << 30
        self.reading = True
        self.closed = self.aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0

    def get_write_buffer_size(self) -> int:
        return len(self.untaken)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else object()

    def write(self, data: bytes) -> None:
        taken = data[: max(0, self.room - len(self.written))]
        self.written += taken
        if len(taken) < len(data):
            self.untaken += data[len(taken) :]
            self.stream.pause_writing()

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def take_all(self) -> None:
        self.room = 1 << 30
        self.written += self.untaken
        self.untaken.clear()
        self.stream.resume_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


class Connection:
    peer_host, peer_port = "127.0.0.1", 1

    def __init__(self) -> None:
        self.buffer = bytearray(64 * 1024)
        self.received = bytearray()
        self.principal: Principal | None = None
        self.refused_for: str | None = None
        self.paused = self.ended = self.lost = False
        self.pause_after = 1 << 30
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=0)

    def not_secured(self, reason: str) -> None:
        self.refused_for = reason

    def secured(self, principal: Principal) -> None:
        assert not self.received
        self.principal = principal

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        if len(self.received) >= self.pause_after:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        assert not self.ended
        self.ended = True
        return True

    def pause_writing(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost = True

    def close(self) -> None:
        self.transport.close()

    def abort(self) -> None:
        self.transport.abort()


class Peer:
    """A client in memory, and the stream that it talks to."""

    def __init__(
        self, certificates: Certificates, *, with_certificate: bool = False, rules: str = ""
    ) -> None:
        flags = certificates.broker_settings(client_auth="requested")
        if rules:
            flags["ssl.principal.mapping.rules"] = rules
        settings = Settings.load(flags=flags)
        self.budget = Budget(1 << 30)
        self.source = SimpleNamespace(
            tls=make_tls({name: settings[name] for name in SETTINGS}),
            handshakes=Handshakes(60),
            scratch=new_scratch(),
            budget=self.budget,
        )
        self.connection, self.transport = Connection(), Transport()
        self.stream = self.transport.stream = TlsStream(self.connection, self.source)
        self.stream.connection_made(self.transport)  # type: ignore[arg-type]
        self._inbound, self._outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = certificates.client_context(certificates.client if with_certificate else None)
        self.object = context.wrap_bio(self._inbound, self._outbound, server_hostname="localhost")

    def shake_hands(self) -> None:
        while True:
            try:
                self.object.do_handshake()
            except ssl.SSLWantReadError:
                self.exchange()
            else:
                self.exchange()
                return

    def exchange(self) -> None:
        self.deliver(self._outbound.read())
        self._inbound.write(bytes(self.transport.written))
        self.transport.written.clear()

    def deliver(self, data: bytes, size: int = 128 * 1024) -> None:
        for position in range(0, len(data), size):
            part = data[position : position + size]
            self.stream.get_buffer(-1)[: len(part)] = part
            self.stream.buffer_updated(len(part))

    def encrypted(self, data: bytes) -> bytes:
        view = memoryview(data)
        while view:
            view = view[self.object.write(view) :]
        return self._outbound.read()

    def decrypted(self) -> bytes:
        self._inbound.write(bytes(self.transport.written))
        self.transport.written.clear()
        found = bytearray()
        while True:
            try:
                part = self.object.read(65536)
            except ssl.SSLWantReadError:
                return bytes(found)
            if not part:
                return bytes(found)
            found += part


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory: Path = tmp_path_factory.mktemp("certificates")
    return Certificates(directory)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A running one, as far as timers and `call_soon` go."""
    loop = asyncio.new_event_loop()
    asyncio._set_running_loop(loop)
    yield loop
    asyncio._set_running_loop(None)
    loop.close()


def turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio._set_running_loop(None)
    loop.run_until_complete(asyncio.sleep(0))
    asyncio._set_running_loop(loop)


@pytest.mark.parametrize(
    ("with_certificate", "rules", "name"),
    [
        (True, "", "CN=alice"),
        (True, "RULE:^CN=(.*)$/$1/U", "ALICE"),
        (False, "", "ANONYMOUS"),
    ],
)
def test_the_certificate_says_who_it_is(loop, certificates, with_certificate, rules, name):
    peer = Peer(certificates, with_certificate=with_certificate, rules=rules)
    assert peer.connection.principal is None
    peer.shake_hands()
    assert peer.connection.principal == Principal("User", name)


def test_nothing_is_written_before_the_end_of_the_handshake(loop, certificates):
    peer = Peer(certificates)
    peer.connection.transport.writelines([b"in plain text"])
    peer.shake_hands()
    assert peer.connection.principal is not None
    assert peer.decrypted() == b""


def test_there_is_no_socket_to_send_files_to(loop, certificates):
    peer = Peer(certificates)
    assert peer.connection.transport.get_extra_info("socket") is None
    assert peer.connection.transport.get_extra_info("peername") == ("127.0.0.1", 1)


def test_what_a_connection_does_not_want_is_kept_counted_and_given_later(loop, certificates):
    peer = Peer(certificates)
    peer.shake_hands()
    data = os.urandom(130_000)
    peer.connection.pause_after = 1
    peer.deliver(peer.encrypted(data))
    assert 0 < len(peer.connection.received) < len(data)
    assert not peer.transport.reading
    assert peer.budget.used > 0
    peer.connection.pause_after = 1 << 30
    peer.connection.transport.resume_reading()
    turn(loop)
    assert peer.connection.received == data
    assert peer.budget.used == 0
    assert peer.transport.reading


def test_the_end_is_told_after_what_was_kept(loop, certificates):
    peer = Peer(certificates)
    peer.shake_hands()
    data = os.urandom(130_000)
    peer.connection.pause_after = 1
    peer.deliver(peer.encrypted(data))
    peer.stream.eof_received()
    assert not peer.connection.ended
    peer.connection.pause_after = 1 << 30
    peer.connection.transport.resume_reading()
    turn(loop)
    assert peer.connection.received == data
    assert peer.connection.ended


def test_what_is_kept_of_a_lost_connection_is_given_back(loop, certificates):
    peer = Peer(certificates)
    peer.shake_hands()
    peer.connection.pause_after = 1
    peer.deliver(peer.encrypted(os.urandom(130_000)))
    peer.stream.connection_lost(None)
    assert peer.connection.lost
    assert peer.budget.used == 0


def test_no_more_is_encrypted_than_the_socket_takes(loop, certificates):
    peer = Peer(certificates)
    peer.shake_hands()
    parts = [os.urandom(size) for size in (10, 3, 5_000_000, 100, 16_384)]
    peer.transport.room = 1000
    peer.connection.transport.writelines(parts)
    assert peer.connection.paused
    assert len(peer.transport.written) + len(peer.transport.untaken) < 300_000
    assert peer.connection.transport.get_write_buffer_size() > 5_000_000
    peer.transport.take_all()
    assert not peer.connection.paused
    assert peer.connection.transport.get_write_buffer_size() == 0
    assert peer.decrypted() == b"".join(parts)


def test_a_connection_that_is_closed_sends_the_rest_and_says_goodbye(loop, certificates):
    peer = Peer(certificates)
    peer.shake_hands()
    data = os.urandom(2_000_000)
    peer.transport.room = 1000
    peer.connection.transport.writelines([data])
    peer.connection.transport.close()
    assert not peer.transport.closed
    peer.transport.take_all()
    assert peer.transport.closed
    assert peer.decrypted() == data
    assert peer.object.read(1) == b""


def test_of_too_many_unfinished_handshakes_the_oldest_is_closed(loop, certificates):
    peers = [Peer(certificates) for _ in range(4)]
    handshakes = Handshakes(60, most=2)
    for peer in peers[:3]:
        handshakes.begin(peer.stream)
    assert [peer.transport.aborted for peer in peers] == [True, False, False, False]
    handshakes.end(peers[1].stream)
    handshakes.begin(peers[3].stream)
    assert [peer.transport.aborted for peer in peers] == [True, False, False, False]
