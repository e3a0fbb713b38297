"""Peers that do not speak as they should, or too much, or not at all: bounded, and nobody else notices."""

from __future__ import annotations

import fcntl
import random
import socket
import sys
import termios
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from h2 import events
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from kbroker.grpc.framing import PREFIX
from tests.support.grpc_client import GrpcClient, pb
from tests.support.http2_client import CONTENT_TYPE, Http2Client, framed
from tests.support.server_process import ServerProcess, eventually

MESSAGE_BYTES = 1024 * 1024
CALM = ErrorCodes.ENHANCE_YOUR_CALM


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    settings = (
        "kbroker.http.request.timeout.ms=1000",
        "kbroker.grpc.stream.timeout.ms=1000",
        f"kbroker.grpc.max.message.bytes={MESSAGE_BYTES}",
    )
    given = [part for each in settings for part in ("--set", each)]
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0", *given) as process:
        with GrpcClient(process.grpc) as client:
            client.create("t", **{"max.message.bytes": "10000000"})
            client.publish("t", bytes(900_000))
        yield process


@pytest.fixture(autouse=True)
def others(server: ServerProcess) -> Iterator[None]:
    """Whatever a test does: others are served, at once and afterwards."""
    with GrpcClient(server.grpc) as client:
        assert client.ListTopics(pb.ListTopicsRequest(), timeout=20).topics
        yield
        assert client.ListTopics(pb.ListTopicsRequest(), timeout=20).topics
    assert "Traceback" not in server.log()


def test_who_says_nothing_is_closed(server: ServerProcess) -> None:
    with Http2Client(server.grpc, preface=False) as raw:
        assert raw.socket.recv(1) == b""


def test_who_speaks_http_1_is_closed(server: ServerProcess) -> None:
    with Http2Client(server.grpc, preface=False) as raw:
        raw.socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while raw.socket.recv(1000):
            pass


@pytest.mark.parametrize("seed", range(20))
def test_noise_closes_its_connection_and_no_more(server: ServerProcess, seed: int) -> None:
    noise = random.Random(seed)
    with Http2Client(server.grpc) as raw:
        for _ in range(50):
            kind, flags, stream = noise.randrange(12), noise.randrange(256), noise.randrange(5)
            body = noise.randbytes(noise.randrange(40))
            head = len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
            try:
                raw.socket.sendall(head + body)
            except ConnectionError:
                break


@pytest.mark.parametrize(
    "frame",
    [
        PingFrame(0, opaque_data=b"12345678"),
        SettingsFrame(0, settings={4: 65535}),
        PriorityFrame(1, depends_on=3),
        WindowUpdateFrame(0, window_increment=1),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_frames_that_bring_nothing_are_rationed(server: ServerProcess, frame: Frame) -> None:
    with Http2Client(server.grpc) as raw:
        raw.send_until_closed(frame.serialize() * 1000)
    assert "floods us" in server.log()


def test_empty_data_is_rationed(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        stream_id = raw.call("Produce", end=False)
        raw.send_until_closed(DataFrame(stream_id).serialize() * 1000)


def test_calls_that_are_begun_and_taken_back_are_rationed(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        head = raw.h2.encoder.encode(
            [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", "x"),
                (":path", "/kbroker.v1.Kbroker/Consume"),
                CONTENT_TYPE,
            ]
        )
        stream_id = 1
        began = time.monotonic()
        try:
            while time.monotonic() - began < 30:
                for _ in range(100):
                    begun = HeadersFrame(stream_id, data=head, flags=["END_HEADERS"]).serialize()
                    raw.socket.sendall(begun + RstStreamFrame(stream_id, error_code=8).serialize())
                    stream_id += 2
        except ConnectionError:
            pass
        else:
            raise AssertionError("the server takes all of it")


def test_a_head_without_end_is_refused(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        raw.socket.sendall(HeadersFrame(1, data=b"\x00" * 10).serialize())
        raw.send_until_closed(ContinuationFrame(1, data=b"\x00" * 1000).serialize() * 20)


def test_a_head_that_does_not_end_is_not_waited_for(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        raw.call("Consume", end=False)
        raw.socket.sendall(HeadersFrame(3, data=b"\x00" * 10).serialize())
        raw.closed_with()


def test_a_small_head_that_makes_a_large_one_is_refused(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        large = [(f"x-{number}", "v" * 3000) for number in range(50)]
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/")]
        raw.h2.send_headers(1, [*head, *large])
        raw.flush()
        assert raw.closed_with() is CALM


def test_more_calls_than_allowed_end_the_connection(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        for _ in range(101):
            raw.call("Consume", end=False)
        assert raw.closed_with() is not None


def test_what_is_no_call_is_told_so(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        stream_id = raw.call("Publish", content_type="application/json")
        assert dict(raw.wait_for(events.ResponseReceived).headers)[b":status"] == b"415"
        assert raw.status(raw.call("/x/y"))[0] == 12
        assert raw.status(raw.call("/\xe4"))[0] == 12
        assert raw.status(raw.call("Publish", grpc_encoding="br"))[0] == 12
        assert raw.status(raw.call("Publish"))[0] == 13
        assert stream_id == 1


def test_a_message_that_does_not_end_is_not_waited_for(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        for method in ("Publish", "Produce"):
            stream_id = raw.call(method, end=False)
            raw.h2.send_data(stream_id, PREFIX.pack(0, 1000) + b"x")
            raw.flush()
            assert raw.status(stream_id)[0] == 4


def test_a_message_that_is_announced_too_large_is_refused_at_once(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        stream_id = raw.call("Publish", end=False)
        raw.h2.send_data(stream_id, PREFIX.pack(0, 0xFFFFFFFF))
        raw.flush()
        assert raw.status(stream_id)[0] == 8


@pytest.mark.parametrize(
    "data",
    [
        PREFIX.pack(1, 4) + b"oops",
        PREFIX.pack(2, 0),
        PREFIX.pack(1, 30) + zlib.compress(b"x" * 100, wbits=31)[:20] + bytes(10),
    ],
)
def test_what_is_not_compressed_as_it_says_is_refused(server: ServerProcess, data: bytes) -> None:
    with Http2Client(server.grpc) as raw:
        stream_id = raw.call("Publish", end=False, grpc_encoding="gzip")
        raw.h2.send_data(stream_id, data, end_stream=True)
        raw.flush()
        assert raw.status(stream_id)[0] == 13


def test_a_small_message_that_makes_a_huge_one_is_refused(server: ServerProcess) -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packing.compress(bytes(1 << 20)) for _ in range(300)) + packing.flush()
    before = server.memory_bytes()
    with Http2Client(server.grpc) as raw:
        for _ in range(5):
            stream_id = raw.call("Publish", end=False, grpc_encoding="gzip")
            data = PREFIX.pack(1, len(bomb)) + bomb
            for at in range(0, len(data), 16_000):
                while raw.h2.local_flow_control_window(stream_id) < 16_000:
                    next(raw.events())
                raw.h2.send_data(stream_id, data[at : at + 16_000])
                raw.flush()
            assert raw.status(stream_id)[0] == 8
    assert server.memory_bytes() - before < 40_000_000


def test_who_opens_no_window_holds_little_and_not_for_long() -> None:
    """Of 90 MB that are asked for, the budget lets few be read at a time."""
    settings = ("queued.max.request.bytes=33554432", "kbroker.grpc.stream.timeout.ms=300")
    given = [part for each in settings for part in ("--set", each)]
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0", *given) as server:
        with GrpcClient(server.grpc) as client:
            client.create("t")
            client.publish("t", bytes(900_000))
        before = server.memory_bytes()
        raws = []
        for _ in range(5):
            raw = Http2Client(server.grpc)
            raw.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
            raws.append((raw, [raw.call("Fetch", pb.FetchRequest(topic="t")) for _ in range(20)]))
        for raw, calls in raws:
            assert {raw.status(stream_id)[0] for stream_id in calls} == {14}
            assert server.memory_bytes() - before < 100_000_000
            raw.socket.close()


def test_a_window_that_opens_byte_by_byte_is_rationed(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        raw.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1})
        stream_id = raw.call("Fetch", pb.FetchRequest(topic="t"))
        raw.send_until_closed(WindowUpdateFrame(stream_id, window_increment=1).serialize() * 100)


def _unread_bytes(peer: socket.socket) -> int:
    found = bytearray(4)
    fcntl.ioctl(peer, termios.FIONREAD, found)
    return int.from_bytes(found, sys.byteorder)


def test_who_reads_nothing_is_not_answered_without_end(server: ServerProcess) -> None:
    """What the server has to say to it stays within bounds: it is not heard any more."""
    before = server.memory_bytes()
    with Http2Client(server.grpc) as raw:
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2**31 - 1})
        raw.h2.increment_flow_control_window(2**31 - 1 - 65535)
        for _ in range(50):
            raw.call("Fetch", pb.FetchRequest(topic="t"))
        eventually(lambda: _unread_bytes(raw.socket) > 0)  # it begins to answer
        assert server.memory_bytes() - before < 100_000_000
    eventually(lambda: server.memory_bytes() - before < 60_000_000)


def test_who_is_gone_with_a_message_half_sent_leaves_nothing(server: ServerProcess) -> None:
    def half(_: int) -> Any:
        raw = Http2Client(server.grpc)
        stream_id = raw.call("Produce", end=False)
        raw.h2.send_data(stream_id, PREFIX.pack(0, 500_000) + bytes(10_000))
        raw.flush()
        return raw

    before = server.memory_bytes()
    for _ in range(5):
        for raw in [half(number) for number in range(100)]:
            raw.socket.close()
    eventually(lambda: server.memory_bytes() - before < 20_000_000)


def test_what_is_sent_behind_the_end_of_a_call_is_dropped(server: ServerProcess) -> None:
    with Http2Client(server.grpc) as raw:
        stream_id = raw.call("Consume", pb.ConsumeRequest(), end=False)
        assert raw.status(stream_id)[0] == 3
        raw.socket.sendall(DataFrame(stream_id, data=framed(b"late")).serialize())
        assert raw.status(raw.call("ListTopics", pb.ListTopicsRequest()))[0] == 0


def test_messages_that_never_end_stay_within_the_budget() -> None:
    """200 MB are on their way, and the broker takes no more than it may hold."""
    settings = ("queued.max.request.bytes=33554432", "kbroker.http.request.timeout.ms=4000")
    given = [part for each in settings for part in ("--set", each)]
    with _alone(*given) as server, GrpcClient(server.grpc) as client:
        client.create("t")
        before = server.memory_bytes()
        raws = [Http2Client(server.grpc) for _ in range(4)]
        largest = 0
        for raw in raws:
            raw.wait_for(events.SettingsAcknowledged)
            raw.socket.setblocking(False)
            for _ in range(50):
                stream_id = raw.call("Produce", end=False)
                raw.h2.send_data(stream_id, PREFIX.pack(0, 4_000_000))
        began = time.monotonic()
        while time.monotonic() - began < 6:
            for raw in raws:
                _send_what_is_taken(raw)
            largest = max(largest, server.memory_bytes() - before)
        assert largest < 80_000_000
        for raw in raws:
            raw.socket.close()
        assert client.publish("t", b"v")[0].offset == 0


def _alone(*arguments: str) -> ServerProcess:
    return ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0", *arguments)


def _send_what_is_taken(raw: Http2Client) -> None:
    """As much as the windows of its calls allow, without waiting."""
    with suppress(BlockingIOError):
        raw.happened += raw.h2.receive_data(raw.socket.recv(1 << 20))
    for stream_id in range(1, 101, 2):
        try:
            while (window := raw.h2.local_flow_control_window(stream_id)) > 0:
                raw.h2.send_data(stream_id, bytes(min(window, 16_384)))
        except ProtocolError:  # this call has ended
            continue
    data = raw.h2.data_to_send()
    sent = 0
    while sent < len(data):
        try:
            sent += raw.socket.send(data[sent:])
        except BlockingIOError:
            time.sleep(0.01)


def test_many_readers_that_take_nothing_hold_a_batch_each() -> None:
    with _alone() as server, GrpcClient(server.grpc) as client:
        client.create("t")
        for _ in range(20):
            client.publish("t", *[bytes(1000)] * 1000)
        before = server.memory_bytes()
        raws = []
        start = pb.Start(position=pb.POSITION_EARLIEST)
        subscribe = pb.ConsumeRequest(subscribe=pb.Subscribe(topics=["t"], start=start))
        for _ in range(2):
            raw = Http2Client(server.grpc)
            calls = [raw.call("Consume", subscribe, end=False) for _ in range(100)]
            raws.append(raw)
            raw.wait_for(events.ResponseReceived, lambda event, last=calls[-1]: event.stream_id == last)
        assert server.memory_bytes() - before < 100_000_000
        assert client.publish("t", b"v")[0].offset == 20_000
        for raw in raws:
            raw.socket.close()
