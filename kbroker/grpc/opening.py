"""What is loaded with the first gRPC connection of a process, given what it needs of the server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from kbroker.grpc.application import Application
from kbroker.grpc.speaking import GrpcSpeaker

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins
    from kbroker.broker import Broker
    from kbroker.grpc.connection import GrpcConnection
    from kbroker.http.connection import HttpConnection

_SWEEP_SECONDS = 1
_ANSWER_MS = 20_000  # to a ping


class Grpc:
    """All that speaks gRPC in a broker (http/connection.py: Speakers)."""

    def __init__(self, broker: Broker, logins: ListenerLogins | None) -> None:
        self._broker = broker
        self._application = Application(broker, logins)
        self._open: dict[HttpConnection, GrpcSpeaker] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def speaker(self, connection: HttpConnection) -> GrpcSpeaker:
        speaker = self._open[connection] = GrpcSpeaker(self._application, cast("GrpcConnection", connection))
        connection.head_since = self._broker.clock()  # while we were loaded it was not heard
        if self._sweeping is None:
            self._sweep_later()
        return speaker

    def ended(self, connection: HttpConnection) -> None:
        self._open.pop(connection, None)

    def _sweep(self) -> None:
        """Who does not begin to speak in time is closed, who is silent is asked for a sign, and who
        wants nothing for long is told to come again.
        """
        settings, now_ms = self._broker.settings, self._broker.clock()
        begin_ms: int = settings["kbroker.http.request.timeout.ms"]
        silence_ms: int = settings["kbroker.grpc.keep.alive.ms"]
        idle_ms: int = settings["connections.max.idle.ms"]
        for connection, speaker in list(self._open.items()):
            silent_ms = now_ms - connection.last_active
            since = connection.head_since
            if since is not None and now_ms - since > begin_ms:
                connection.give_up("what it began to say did not come in time")
            elif speaker.pinged_ms is not None:
                if now_ms - speaker.pinged_ms > _ANSWER_MS:
                    connection.give_up("it does not answer pings")
            elif speaker.calls:
                if silent_ms > silence_ms:
                    speaker.ping(now_ms)
            elif 0 <= idle_ms * 9 // 10 < silent_ms:
                speaker.shutdown()
        self._sweeping = None
        if self._open:
            self._sweep_later()

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)


def opened(broker: Broker, logins: ListenerLogins | None) -> Grpc:
    return Grpc(broker, logins)
