"""What somebody without a password can do: wait, guess and send nonsense, and hold nothing for long."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.produce import ProduceRequest
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess

from .sasl_client import Scram, is_in, plain

SECONDS = 10


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(
        "--in-memory",
        *("--user", "admin:secret"),
        *("--set", "kbroker.login.failure.delay.max.ms=0"),
        *("--set", "kbroker.login.timeout.ms=1500"),
        *("--set", "kbroker.max.unauthenticated.connections=200"),
    ) as running:
        yield running


def ends(client: RawClient) -> bool:
    """Whether the broker closes without a word."""
    client.socket.settimeout(SECONDS)
    try:
        return client.socket.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (MetadataRequest(None), 12),
        (ProduceRequest(None, -1, 1000, []), 9),
        (SaslAuthenticateRequest(b"\0admin\0secret"), 2),
    ],
    ids=["Metadata", "Produce", "SaslAuthenticate"],
)
def test_nothing_passes_before_the_handshake(server: ServerProcess, request_: object, version: int) -> None:
    with server.client() as client:
        client.send(request_, version)
        assert ends(client)


def test_nothing_but_a_login_passes_after_the_handshake(server: ServerProcess) -> None:
    with server.client() as client:
        client.ask(SaslHandshakeRequest("PLAIN"), 1)
        assert client.ask(MetadataRequest(None), 12).brokers == []
        assert ends(client)


def test_requests_that_come_with_a_failing_login_are_not_executed(server: ServerProcess) -> None:
    with server.client() as client:
        frames = client.frame(SaslHandshakeRequest("PLAIN"), 1)
        frames += client.frame(SaslAuthenticateRequest(b"\0admin\0wrong"), 2)
        frames += client.frame(MetadataRequest(None), 12)
        client.socket.sendall(frames)
        client.receive()
        assert client.receive().error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        with pytest.raises(Closed):
            client.receive()


def test_requests_that_come_with_a_login_are_answered_in_order(server: ServerProcess) -> None:
    with server.client() as client:
        frames = client.frame(ApiVersionsRequest("test", "1"), 3)
        frames += client.frame(SaslHandshakeRequest("PLAIN"), 1)
        frames += client.frame(SaslAuthenticateRequest(b"\0admin\0secret"), 2)
        frames += client.frame(MetadataRequest(None), 12)
        client.socket.sendall(frames)
        assert [client.receive().error_code for _ in range(3)] == [0, 0, 0]
        assert len(client.receive().brokers) == 1


def test_versions_are_told_once(server: ServerProcess) -> None:
    with server.client() as client:
        client.ask(ApiVersionsRequest("test", "1"), 3)
        client.send(ApiVersionsRequest("test", "1"), 3)
        assert ends(client)


def test_no_other_mechanism_can_be_slipped_in_after_the_handshake(server: ServerProcess) -> None:
    with server.client() as client:
        client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)
        answer = client.ask(SaslHandshakeRequest("PLAIN"), 1)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert ends(client)
    with server.client() as client:
        client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)
        answer = client.ask(SaslAuthenticateRequest(b"\0admin\0secret"), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert ends(client)


def test_scram_messages_that_were_overheard_are_worth_nothing(server: ServerProcess) -> None:
    login = Scram("SCRAM-SHA-256", "admin", "secret")
    with server.client() as client:
        client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)
        overheard = login.final(client.ask(SaslAuthenticateRequest(login.first), 2).auth_bytes)
        assert client.ask(SaslAuthenticateRequest(overheard), 2).error_code == 0
    with server.client() as client:
        client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)
        client.ask(SaslAuthenticateRequest(login.first), 2)
        answer = client.ask(SaslAuthenticateRequest(overheard), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("binding", [b"y,,", b"p=tls-unique,,"])
def test_channel_binding_cannot_be_pretended(server: ServerProcess, binding: bytes) -> None:
    login = Scram("SCRAM-SHA-256", "admin", "secret")
    with server.client() as client:
        client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)
        answer = client.ask(SaslAuthenticateRequest(binding + login.bare.encode()), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_large_frame_of_a_stranger_ends_the_connection(server: ServerProcess) -> None:
    with server.client() as client:
        client.socket.sendall(struct.pack(">i", 600_000))
        assert ends(client)
    with server.client() as client:
        plain(client, "admin", "secret")
        client.socket.sendall(struct.pack(">i", 600_000))
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)


def test_bare_messages_of_old_clients_log_in_or_end_the_connection(server: ServerProcess) -> None:
    for password, answer in ((b"secret", b"\0\0\0\0"), (b"wrong", b"")):
        with server.client() as client:
            client.ask(SaslHandshakeRequest("PLAIN"), 0)
            token = b"\0admin\0" + password
            client.socket.sendall(struct.pack(">i", len(token)) + token)
            assert client.socket.recv(4) == answer
            if answer:
                assert is_in(client)
    with server.client() as client:  # the first message of a client of Kafka 0.9 with Kerberos
        client.socket.sendall(struct.pack(">i", 5) + b"\x60abcd")
        assert ends(client)


def test_who_says_nothing_or_little_is_sent_away(server: ServerProcess) -> None:
    with server.client() as silent, server.client() as slow, server.client() as honest:
        plain(honest, "admin", "secret")
        frame = slow.frame(SaslHandshakeRequest("PLAIN"), 1)
        ended = threading.Event()

        def trickle() -> None:
            try:
                for byte in frame:
                    slow.socket.sendall(bytes([byte]))
                    if ended.wait(0.2):
                        return
            except OSError:
                pass

        sending = threading.Thread(target=trickle)
        sending.start()
        began = time.monotonic()
        assert ends(silent)
        assert ends(slow)
        assert time.monotonic() - began < 2 * SECONDS
        ended.set()
        sending.join()
        assert is_in(honest)


def test_two_thousand_who_say_nothing_shut_nobody_out(server: ServerProcess) -> None:
    before = server.memory_bytes()
    with server.client() as honest:
        plain(honest, "admin", "secret")
        silent = [socket.create_connection(server.address) for _ in range(2000)]
        try:
            with server.client() as late:
                assert plain(late, "admin", "secret").error_code == 0
                assert is_in(late)
            assert is_in(honest)
            assert server.memory_bytes() - before < 64 << 20
        finally:
            for each in silent:
                each.close()
