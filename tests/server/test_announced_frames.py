"""A connection and the budget, without sockets."""

from __future__ import annotations

import struct
from unittest.mock import Mock

from kbroker.network.budget import Budget
from kbroker.network.connection import SCRATCH_BYTES, Connection
from kbroker.network.frame_buffers import FrameBuffers

LIMIT = 1000_000


def connected(budget: Budget) -> Connection:
    host = Mock(
        budget=budget,
        frame_buffers=FrameBuffers(),
        scratch=memoryview(bytearray(SCRATCH_BYTES)),
        paused=False,
    )
    host.requests.session.return_value.max_request_bytes = 100_000_000
    host.now_ms.return_value = 0
    host.connections.admit.return_value = None
    host.requests.broker.connection_rates = None
    connection = Connection(host, "PLAINTEXT")
    transport = Mock()
    transport.get_extra_info.return_value = ("127.0.0.1", 1)
    connection.connection_made(transport)
    return connection


def send(connection: Connection, data: bytes) -> None:
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


def test_a_peer_that_only_announced_a_frame_leaves_nothing_behind() -> None:
    budget = Budget(LIMIT)
    budget.take(LIMIT)
    others = [connected(budget) for _ in range(3)]
    for connection in others:
        send(connection, struct.pack(">i", 50_000_000))
    assert budget.contended  # the oldest is granted, the others wait
    for connection in reversed(others):
        connection.connection_lost(None)
    assert not budget.contended
    assert budget.used == LIMIT
    assert not budget._frames
    again = connected(budget)
    send(again, struct.pack(">i", 50_000_000))
    assert not budget.contended  # it is the oldest now
    again.connection_lost(None)
    assert budget.used == LIMIT
