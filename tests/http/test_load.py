"""What clients can make a real broker process hold by HTTP is bounded by queued.max.request.bytes."""

from __future__ import annotations

import socket
import struct
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kbroker.protocol.errors import ErrorCode
from tests.support.http_client import HttpClient
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess, eventually

MIB = 2**20
BUDGET = 32 * MIB
SLACK = 32 * MIB  # the interpreter's own growth, allocator, sockets, what speaks HTTP
STORED = 12 * MIB
LARGE = "/topics/t/partitions/0/fetch?offset=0&maxRecords=10000&maxBytes=12582912"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    arguments = ("--data", str(tmp_path), "--http-port", "0", "--set", f"queued.max.request.bytes={BUDGET}")
    with ServerProcess(*arguments) as server:
        with HttpClient(server.url) as http:
            assert http.post("/topics", {"name": "t", "partitions": 1}).status == 201
            value = b64encode(bytes(64 * 1024)).decode()
            for _ in range(STORED // MIB):
                body = {"records": [{"valueBase64": value}] * 16}
                assert http.post("/topics/t/messages", body).status == 200
        yield server


def connect(server: ServerProcess) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def serves_others(server: ServerProcess) -> bool:
    with HttpClient(server.url) as http:
        return http.ask("POST", "/topics/t/partitions/0", b"small").status == 200


def take_answer(connection: socket.socket) -> int:
    """Its status; the body is dropped."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    (length,) = (line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    left = int(length.split()[1]) - len(body)
    while left > 0:
        left -= len(_received(connection))
    assert not left, "answers came together"
    return int(head[9:12])


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(MIB)
    assert data, "the broker hung up"
    return data


def test_two_hundred_readers_that_take_nothing_of_large_answers(server: ServerProcess) -> None:
    before = server.memory_bytes()
    with ExitStack() as stack:
        readers = [stack.enter_context(connect(server)) for _ in range(200)]
        for reader in readers:
            reader.sendall(get(LARGE))
        for _ in range(20):
            assert serves_others(server)
            assert server.memory_bytes() - before < BUDGET + SLACK
        for reader in readers[:5]:  # whoever reads is served
            assert take_answer(reader) == 200
        assert server.memory_bytes() - before < BUDGET + SLACK


def post(announced: int) -> bytes:
    head = "POST /topics/t/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n"
    return head.format(announced).encode()


def send_what_is_taken(stream: socket.socket, data: bytes) -> None:
    stream.setblocking(False)
    with suppress(BlockingIOError):
        stream.send(data)
    stream.settimeout(60)


def test_bodies_that_never_end_hold_half_at_most_and_keep_kafka_clients_out_of_nothing(
    server: ServerProcess,
) -> None:
    before = server.memory_bytes()
    with ExitStack() as stack:
        endless = [stack.enter_context(connect(server)) for _ in range(100)]
        for stream in endless:
            send_what_is_taken(stream, post(16 * MIB) + b"[" * (2 * MIB))
        with server.client() as kafka:
            assert create(kafka, "large", 1) is ErrorCode.NONE
            for _ in range(50):
                for stream in endless[::10]:
                    send_what_is_taken(stream, b"[" * 1000)
                assert produce(kafka, "large", 0, bytes(900_000)) is ErrorCode.NONE
        assert serves_others(server)
        assert server.memory_bytes() - before < BUDGET + SLACK
    eventually(lambda: serves_others(server))


def test_who_waits_too_long_for_room_is_told_to_come_again() -> None:
    limits = ("queued.max.request.bytes=1048576", "kbroker.http.max.throttle.ms=500")
    arguments = ("--in-memory", "--http-port", "0", *(f"--set={each}" for each in limits))
    with ServerProcess(*arguments) as server, ExitStack() as stack:
        with HttpClient(server.url) as http:
            assert http.post("/topics", {"name": "t"}).status == 201
        oldest, *others = [stack.enter_context(connect(server)) for _ in range(3)]
        for stream in (oldest, *others):
            stream.sendall(post(900_000) + b"[" * 450_000)
        for stream in others:
            answer = stream.recv(65536)
            assert answer[9:12] == b"503"
            assert b"\r\nretry-after: 1\r\n" in answer
        assert serves_others(server), "what is small needs no room"
        oldest.sendall(b"[" * 450_000)
        assert oldest.recv(65536)[9:12] == b"413", "it has come whole"
        eventually(lambda: serves_others(server))


def test_documents_that_unfold_are_parsed_one_after_the_other(server: ServerProcess) -> None:
    """Each takes a quarter of the budget in memory, and all of them twenty times what there is."""
    document = b'{"value":[' + b"[]," * 70_000 + b"0]}"

    def publish(_: int) -> int:
        with HttpClient(server.url) as http:
            answer = http.ask("POST", "/topics/t/messages", document)
            assert answer.status == 200 or (answer.status == 503 and answer.headers["Retry-After"] == "1")
            return answer.status

    before = server.memory_bytes()
    with ThreadPoolExecutor(40) as threads:
        published = threads.map(publish, range(80))
        for _ in range(50):
            assert serves_others(server)
            assert server.memory_bytes() - before < BUDGET + SLACK
        assert 200 in published
    assert server.memory_bytes() - before < BUDGET + SLACK


def test_a_document_that_would_take_more_than_half_of_the_budget_is_refused(server: ServerProcess) -> None:
    with HttpClient(server.url) as http:
        answer = http.ask("POST", "/topics/t/messages", b'{"value":[' + b"[]," * 200_000 + b"0]}")
        assert answer.status == 413
        assert "queued.max.request.bytes" in answer.json["detail"]
        assert http.post("/topics/t/messages", {"value": 1}).status == 200


def test_nothing_is_held_for_who_vanishes_while_waiting_for_room() -> None:
    limits = ("queued.max.request.bytes=1048576", "kbroker.http.max.throttle.ms=60000")
    arguments = ("--in-memory", "--http-port", "0", *(f"--set={each}" for each in limits))
    with ServerProcess(*arguments) as server:
        with HttpClient(server.url) as http:
            assert http.post("/topics", {"name": "t"}).status == 201
        for number in range(30):
            with ExitStack() as stack:
                waiting = [stack.enter_context(connect(server)) for _ in range(5)]
                for stream in waiting:
                    send_what_is_taken(stream, post(900_000) + b"[" * 600_000)
                assert serves_others(server)
                for stream in waiting:
                    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", number % 2, 0))
        with ExitStack() as stack:  # there is room for two that are not the oldest, as at the beginning
            oldest, *others = [stack.enter_context(connect(server)) for _ in range(3)]
            for stream in (oldest, *others):
                stream.sendall(post(100_000) + b"[" * 90_000)
            for stream in others:
                stream.sendall(b"[" * 10_000)
                assert stream.recv(65536)[9:12] == b"413", "what it would become is too much, but it came"
