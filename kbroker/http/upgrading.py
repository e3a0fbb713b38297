"""From HTTP to WebSocket; loaded with the first upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import starlette.websockets  # noqa: F401  # here nobody waits for it
from uvicorn.config import Config
from uvicorn.server import ServerState

from kbroker.http.websocket_speaking import PING_SECONDS, WebSocketSpeaker

if TYPE_CHECKING:
    from kbroker.http.application import Application
    from kbroker.http.connection import HttpConnection


class WebSockets:
    def __init__(self, application: Application, max_message_bytes: int) -> None:
        self._state = ServerState()
        self._state.default_headers = [(b"server", b"kbroker")]
        self._config = Config(
            application,
            interface="asgi3",
            loop="none",
            ws=WebSocketSpeaker,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            ws_max_size=max_message_bytes,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
            ws_per_message_deflate=False,  # tens of kilobytes for each connection
        )
        self._config.load()

    def take_over(self, connection: HttpConnection, received: bytes) -> None:
        """``received``: the head of the request, and what came behind it."""
        if connection.is_closing():
            return
        protocol: Any = WebSocketSpeaker(self._config, self._state, {"connection": connection})
        connection.set_protocol(protocol)
        protocol.connection_made(connection)
        protocol.data_received(received)
        connection.resume_reading()
