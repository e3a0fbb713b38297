"""From a call to its end: method, deadline, who calls, quotas, handler, status. All calls pass here.

Of a call the log tells its path, at level debug: never its metadata or its messages.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from itertools import count
from typing import TYPE_CHECKING

from kbroker.authentication.credentials import LoginRefused, RequestLogins
from kbroker.grpc.call import Call
from kbroker.grpc.framing import ENCODINGS, IDENTITY
from kbroker.grpc.statuses import GrpcError, Status, grpc_error
from kbroker.grpc.table import methods
from kbroker.http.exchange import ClientGone
from kbroker.http.quotas import HttpQuotas, Timed
from kbroker.http.request import HttpCaller
from kbroker.network.awaiting import settled

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins
    from kbroker.broker import Broker
    from kbroker.grpc.speaking import GrpcSpeaker
    from kbroker.security.principal import Principal

logger = logging.getLogger("kbroker.grpc")

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_MOST_PATH = 200  # of the log


class Application:
    """What is called in one broker."""

    def __init__(self, broker: Broker, logins: ListenerLogins | None) -> None:
        """``logins``: of a listener that asks who comes."""
        self.broker = broker
        self.logins = None if logins is None else RequestLogins(logins)
        self._quotas = HttpQuotas()
        self._methods = methods()
        self._prefix = os.urandom(4).hex()
        self._numbers = count(1)
        self._max_bytes: int = broker.settings["kbroker.grpc.max.message.bytes"]

    def call(self, speaker: GrpcSpeaker, stream_id: int, headers: dict[str, str]) -> Call:
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else f"{self._prefix}-{next(self._numbers)}"
        return Call(speaker, stream_id, headers, request_id, self._quotas, self._max_bytes)

    async def serve(self, call: Call) -> None:
        error: GrpcError | None = None
        forget_session = None
        try:
            call.begin_deadline()
            self._route(call)
            principal = await self._identify(call)
            if call.method.stream is not None and call.identity is not None and self.logins is not None:
                forget_session = self.logins.watch(call.identity, lambda why: _session_ended(call, why))
            call.quota = call.method.quota
            call.caller = HttpCaller(
                principal,
                call.connection.peer_host,
                call.method.name,
                call.headers.get("x-client-id", ""),
            )
            usage = call.usage
            if usage is not None and not call.method.public:
                await usage.admit()
            if usage is not None and usage.times:
                await Timed(self._handle(call), usage)
            else:
                await self._handle(call)
        except (asyncio.CancelledError, ClientGone):
            error = call.failure
            if error is None:  # nobody is there to be told
                call.over = True
        except Exception as failure:
            error = call.failure or grpc_error(failure)
        finally:
            if forget_session is not None:
                forget_session()
        if logger.isEnabledFor(logging.DEBUG):
            _log(call, error)
        call.end(error)

    def _route(self, call: Call) -> None:
        method = self._methods.get(call.path)
        if method is None:
            raise GrpcError(
                Status.UNIMPLEMENTED, "There is no such method: reflection lists those there are."
            )
        call.method = method
        encoding = call.headers.get("grpc-encoding", IDENTITY)
        if encoding not in ENCODINGS:
            raise GrpcError(
                Status.UNIMPLEMENTED, f"Messages may be compressed with gzip, not with {encoding[:20]}."
            )

    async def _identify(self, call: Call) -> Principal:
        connection = call.connection
        if self.logins is None or call.method.public:
            return connection.principal
        authorization = call.headers.get("authorization")
        if authorization is None:
            raise GrpcError(Status.UNAUTHENTICATED, self._how_to_log_in())
        try:
            call.identity = await settled(self.logins.identify(authorization, connection.peer_host))
        except LoginRefused as refusal:
            status = Status.RESOURCE_EXHAUSTED if refusal.busy else Status.UNAUTHENTICATED
            raise GrpcError(status, str(refusal)) from None
        connection.authenticated = True
        return call.identity.principal

    def _how_to_log_in(self) -> str:
        schemes = [] if self.logins is None else self.logins.schemes
        if not schemes:
            return (
                "Nobody can log in by gRPC here: without TLS a password is taken where PLAIN is enabled, and "
                "a token where OAUTHBEARER is (listener.name.grpc.sasl.enabled.mechanisms)."
            )
        return f"Say who you are, by authorization metadata with {' or '.join(schemes)}."

    async def _handle(self, call: Call) -> None:
        method = call.method
        if method.one is not None:
            await call.send(await method.one(call, await call.only()))
        elif method.stream is not None:
            await method.stream(call)


def _session_ended(call: Call, reason: str) -> None:
    call.fail(GrpcError(Status.UNAUTHENTICATED, f"Say again who you are: {reason}."))


def _log(call: Call, error: GrpcError | None) -> None:
    status = Status.OK if error is None else error.status
    logger.debug(
        "%s %s %s %s %s",
        call.request_id,
        call.connection.peer_host,
        "-" if call.caller is None else call.caller.principal,
        call.path[:_MOST_PATH].encode("ascii", "backslashreplace").decode(),
        "CANCELLED" if call.over else status.name,
    )
