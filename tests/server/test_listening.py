"""The sockets that a server listens on, and those that it accepts."""

from __future__ import annotations

import asyncio
import socket

import pytest

from kbroker.config.listeners import KAFKA
from kbroker.config.settings import Settings
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.server import Server
from kbroker.testing.control_client import ControlClient
from tests.support.raw_client import Closed, RawClient

ASKED_BYTES = 16_384


def accepted_buffers(**flags: str) -> tuple[int, int]:
    """The receive and send buffer of a client's socket at the server's end."""
    settings = {name.replace("_", "."): value for name, value in flags.items()}

    async def connect() -> tuple[int, int]:
        server = await Server.open(Settings.load(flags={"kbroker.in.memory": "true", **settings}, port=0))
        await server.start()
        try:
            _, host, port = server.addresses[0]
            with RawClient((host, port)) as client:
                await asyncio.to_thread(client.ask, ApiVersionsRequest(), 0)
                (connection,) = server.connections.of(KAFKA)
                accepted = connection._transport.get_extra_info("socket")
                return (
                    accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
                    accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
                )
        finally:
            await server.stop()

    return asyncio.run(connect())


@pytest.mark.parametrize(
    ("name", "place"), [("socket_receive_buffer_bytes", 0), ("socket_send_buffer_bytes", 1)]
)
def test_a_buffer_has_the_size_that_was_set_and_the_other_is_left_to_the_system(
    name: str, place: int
) -> None:
    by_itself = accepted_buffers()
    sized = accepted_buffers(**{name: str(ASKED_BYTES)})
    # Linux keeps as much again for its own use.
    assert sized[place] in (ASKED_BYTES, 2 * ASKED_BYTES)
    assert sized[1 - place] == by_itself[1 - place]


def test_the_default_and_minus_one_leave_the_buffers_to_the_system() -> None:
    left = accepted_buffers(socket_receive_buffer_bytes="-1", socket_send_buffer_bytes="-1")
    assert accepted_buffers() == left
    assert min(left) > 2 * ASKED_BYTES


def test_as_many_connections_may_wait_as_the_backlog_says(monkeypatch: pytest.MonkeyPatch) -> None:
    backlogs = []
    listen = socket.socket.listen
    monkeypatch.setattr(
        socket.socket, "listen", lambda self, backlog: (backlogs.append(backlog), listen(self, backlog))[1]
    )
    accepted_buffers(socket_listen_backlog_size="7")
    assert backlogs == [7]


def test_the_control_port_answers_when_no_more_clients_may_connect() -> None:
    async def connect() -> int:
        flags = {"kbroker.in.memory": "true", "max.connections": "1"}
        server = await Server.open(Settings.load(flags=flags, port=0))
        await server.start()
        try:
            control_port = await server.open_control_port(0)
            _, host, port = server.addresses[0]
            with RawClient((host, port)) as first:
                await asyncio.to_thread(first.ask, ApiVersionsRequest(), 0)
                with RawClient((host, port)) as second, pytest.raises((Closed, OSError)):
                    await asyncio.to_thread(second.ask, ApiVersionsRequest(), 0)
                control = await asyncio.to_thread(ControlClient, control_port)
                clients: int = await asyncio.to_thread(control.do, "connections")
                control.close()
                return clients
        finally:
            await server.stop()

    assert asyncio.run(connect()) >= 1
