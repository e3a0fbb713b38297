"""Packets that a real kernel sent between a real client and kbroker, captured as tcpdump does it."""

from __future__ import annotations

import ctypes
import io
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kbroker.testing import KafkaBroker
from kbroker.wire.capture import Capture
from kbroker.wire.pcap import packets
from kbroker.wire.subjects import subjects
from tests.wire.test_proxy import use_confluent

_ALL_PROTOCOLS = 3
_ATTACH_FILTER = 26


def let_through(sniffer: socket.socket, port: int) -> None:
    """Nothing but TCP over IPv4 from or to a port: what others send is not this test's."""
    program = [
        (0x28, 0, 0, 12),  # the type of the Ethernet frame
        (0x15, 0, 8, 0x0800),
        (0x30, 0, 0, 23),  # the protocol of the IP packet
        (0x15, 0, 6, socket.IPPROTO_TCP),
        (0xB1, 0, 0, 14),  # the size of the IP header
        (0x48, 0, 0, 14),  # the source port
        (0x15, 2, 0, port),
        (0x48, 0, 0, 16),  # the target port
        (0x15, 0, 1, port),
        (0x06, 0, 0, 1 << 18),
        (0x06, 0, 0, 0),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    sniffer.setsockopt(
        socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code))
    )


@contextmanager
def captured(port: int) -> Iterator[list[tuple[float, bytes]]]:
    """Times and Ethernet frames of the loopback interface, each of which a packet socket sees twice."""
    try:
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        pytest.skip("only root may capture packets")
    found: list[tuple[float, bytes]] = []
    ended = threading.Event()

    def sniff() -> None:
        while not ended.is_set():
            try:
                found.append((time.time(), sniffer.recv(1 << 17)))
            except TimeoutError:
                continue

    with sniffer:
        sniffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        let_through(sniffer, port)
        sniffer.bind(("lo", _ALL_PROTOCOLS))
        sniffer.settimeout(0.2)
        thread = threading.Thread(target=sniff)
        thread.start()
        try:
            yield found
        finally:
            ended.set()
            thread.join()


def test_a_real_conversation_is_explained_from_its_packets() -> None:
    values = [bytes([65 + n % 26]) * 20_000 for n in range(60)]
    with KafkaBroker({"orders": 2}) as broker, captured(broker.port) as found:
        assert sorted(use_confluent(broker.bootstrap_servers, values)) == sorted(values)
    file = io.BytesIO()
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 17, 1))
    for at, data in found:
        file.write(struct.pack("<IIII", int(at), int(at % 1 * 1e6), len(data), len(data)) + data)
    file.seek(0)
    capture = Capture(frozenset({broker.port}))
    events = [event for event in capture.events(packets(file)) if event.explained is not None]
    explained = [event.explained for event in events if event.explained is not None]
    assert [each for each in explained if each.problem is not None] == []
    produced = [each for each in explained if (each.api, each.kind) == ("Produce", "request")]
    assert sum(subjects(each, {}).records or 0 for each in produced) >= len(produced) > 0
    apis = {each.api for each in explained}
    assert {
        "ApiVersions",
        "Metadata",
        "Produce",
        "FindCoordinator",
        "JoinGroup",
        "SyncGroup",
        "Fetch",
    } <= apis
    answers = [event for event in events if event.explained and event.explained.kind == "response"]
    assert all(event.latency_ms is not None for event in answers)
