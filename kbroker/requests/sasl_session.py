"""The session of a listener that asks who comes: nothing passes before the login (KIP-43, KIP-152, KIP-368).

| state        | what may come                                   | what follows                            |
|--------------|-------------------------------------------------|-----------------------------------------|
| GREETING     | ApiVersions of a version that is answered       | HANDSHAKE                               |
| GREETING, HANDSHAKE | SaslHandshake with a mechanism that is offered  | EXCHANGE                         |
| EXCHANGE     | SaslAuthenticate; bare SASL messages after a SaslHandshake of version 0 | OPEN at its end |
| OPEN         | everything                                      |                                         |
| OPEN         | SaslHandshake, where the session has an end     | EXCHANGE again, for the same principal  |

Anything else ends the connection. Failures are answered late, and the connection closed after the answer:
connection.failed.authentication.delay.ms after the message came, however long it took to check.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NoReturn

from kbroker.config.sasl_rules import OAUTHBEARER
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kbroker.requests.answers import BadRequest, Buffers, Deferred, framed, held
from kbroker.requests.apis import BY_KEY
from kbroker.requests.lanes import NO_RUN, Run
from kbroker.requests.request import parse
from kbroker.requests.session import Requests, Session
from kbroker.security.audit import FAILURE, SUCCESS
from kbroker.security.sasl.exchange import SaslFailure

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins
    from kbroker.security.principal import Principal
    from kbroker.security.sasl.exchange import Exchange, Login

_HANDSHAKE, _API_VERSIONS, _AUTHENTICATE = 17, 18, 36
_KEY_BYTES = 2
_SHORT_FRAME_BYTES = 4 * 1024  # what is decoded of a stranger to be refused by name
_REAUTHENTICATION_PAUSE_MS = 1000
_SIZE = struct.Struct(">i")


class _State(Enum):
    GREETING = auto()
    HANDSHAKE = auto()
    EXCHANGE = auto()
    OPEN = auto()


_GREETING, _HANDSHAKING, _EXCHANGE, _OPEN = _State  # every request looks at it


class SaslSession(Session):
    __slots__ = (
        "_again_ms",
        "_bare",
        "_ends_ms",
        "_exchange",
        "_logins",
        "_mechanism",
        "_state",
        "_was",
        "by_token",
        "security_protocol",
    )

    def __init__(
        self,
        requests: Requests,
        logins: ListenerLogins,
        local_address: tuple[str, int],
        peer_address: tuple[str, int],
    ) -> None:
        super().__init__(requests, logins.listener, local_address, peer_address)
        self.security_protocol = logins.security_protocol
        self.by_token = False
        self.max_request_bytes = min(self.max_request_bytes, logins.max_receive_bytes)
        self._logins = logins
        self._state = _GREETING
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._bare = False  # SASL messages come without a header
        self._was: Principal | None = None  # who authenticates again
        self._ends_ms: int | None = None
        self._again_ms: int | None = None  # when it last began to authenticate again

    @property
    def authenticated(self) -> bool:  # type: ignore[override]  # of others it is a constant
        return self._was is not None or self._state is _OPEN

    def execute(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        if self._state is not _OPEN:
            return self._before_login(frame, now_ms)
        if self._ends_ms is not None:
            if _key(frame) == _HANDSHAKE and self._may_begin_again(now_ms):
                return self._handshake(frame, now_ms)
            if now_ms > self._ends_ms:
                raise BadRequest("its session has expired; clients have to authenticate again before that")
        return Session.execute(self, frame, now_ms)

    def execute_run(self, view: memoryview, now_ms: int) -> Run:
        if self._state is not _OPEN or (self._ends_ms is not None and now_ms > self._ends_ms):
            return NO_RUN
        return Session.execute_run(self, view, now_ms)

    # before the login

    def _before_login(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        try:
            if self._state is _EXCHANGE:
                return self._bare_message(frame, now_ms) if self._bare else self._message(frame, now_ms)
            key = _key(frame)
            if key == _API_VERSIONS and self._state is _GREETING:
                return self._versions(frame, now_ms)
            if key == _HANDSHAKE:
                return self._handshake(frame, now_ms)
            name = BY_KEY[key].name if key in BY_KEY else f"of unknown API {key}"
            raise BadRequest(f"a request {name} before the SASL handshake")
        except BadRequest as refusal:
            return self._fail(refusal, now_ms)

    def _versions(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        request = parse(frame, self, now_ms)
        answer = request.run(self._requests.broker)
        if answer.error_code == ErrorCode.NONE:
            self._state = _HANDSHAKING
        return framed(request, answer, self._requests.broker)

    def _handshake(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        request = parse(frame, self, now_ms)
        body: SaslHandshakeRequest = request.body
        offered = self._logins.mechanisms
        again = self._state is _OPEN
        if body.mechanism not in offered:
            reason = f"it asks for a SASL mechanism that is not offered ({', '.join(offered)} are)"
            if again:
                raise BadRequest(reason)
            answer = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered)
            raise BadRequest(reason, last=request.frame(answer))
        self._exchange = None
        if again:
            self._was = self.principal
        if not again or body.mechanism == self._mechanism:
            self._mechanism = body.mechanism
            self._exchange = self._logins.begin(body.mechanism)
        self._bare = request.context.api_version == 0
        self._state = _EXCHANGE
        return request.frame(SaslHandshakeResponse(ErrorCode.NONE, offered))

    # the exchange

    def _message(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        if self._exchange is None:
            raise BadRequest("it authenticates again with another SASL mechanism")
        if _key(frame) != _AUTHENTICATE and len(frame) > _SHORT_FRAME_BYTES:
            raise BadRequest("another request in the middle of a SASL exchange")
        request = parse(frame, self, now_ms)
        if request.context.api_key != _AUTHENTICATE:
            reason = f"{request.endpoint.name} in the middle of a SASL exchange"
            answer = request.refused(ErrorCode.ILLEGAL_SASL_STATE)
            if hasattr(answer, "error_message"):
                answer.error_message = reason
            raise BadRequest(reason, last=request.frame(answer))
        body: SaslAuthenticateRequest = request.body

        def challenged(challenge: bytes) -> Buffers:
            lifetime_ms = self._end(self._requests.broker.clock())
            return request.frame(
                SaslAuthenticateResponse(auth_bytes=challenge, session_lifetime_ms=lifetime_ms)
            )

        def failed(failure: SaslFailure) -> NoReturn:
            told = failure.told or (
                f"Authentication failed during {'re-' if self._was else ''}authentication due to invalid "
                f"credentials with SASL mechanism {self._mechanism}"
            )
            answer = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, told)
            raise BadRequest(self._described(failure), last=request.frame(answer))

        return self._evaluate(bytes(body.auth_bytes), now_ms, challenged, failed)

    def _bare_message(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        if self._exchange is None:
            raise BadRequest("it authenticates again with another SASL mechanism")

        def challenged(challenge: bytes) -> Buffers:
            self._end(self._requests.broker.clock())
            return [_SIZE.pack(len(challenge)) + challenge]

        def failed(failure: SaslFailure) -> NoReturn:
            raise BadRequest(self._described(failure))

        return self._evaluate(bytes(frame), now_ms, challenged, failed)

    def _evaluate(
        self,
        message: bytes,
        now_ms: int,
        challenged: Callable[[bytes], Buffers],
        failed: Callable[[SaslFailure], NoReturn],
    ) -> Buffers | Deferred:
        assert self._exchange is not None

        def settled(answer: Pending[bytes]) -> None:
            try:
                later.resolve(challenged(answer.result()))
            except SaslFailure as failure:
                try:
                    failed(failure)
                except BadRequest as refusal:
                    self._fail_later(later, refusal, now_ms)
            except Exception as error:
                later.fail(error)

        try:
            answer = self._exchange.evaluate(message)
            if not isinstance(answer, Pending):
                return challenged(answer)
        except SaslFailure as failure:
            failed(failure)
        later: Pending[Any] = Pending(answer.abandon)
        answer.then(settled)
        return _waiting(later, self._requests)

    def _end(self, now_ms: int) -> int:
        """The exchange may be done: how long the session may last then, 0 for ever."""
        assert self._exchange is not None
        login = self._exchange.login
        if login is None:
            return 0
        if self._was is not None and self._was != login.principal:
            told = (
                "Cannot change principals during re-authentication from "
                f"{self._was.kind}.{self._was.name}: {login.principal.kind}.{login.principal.name}"
            )
            raise SaslFailure(told, told)
        self._forget()
        self.principal = login.principal
        self.by_token = login.by_token
        if not login.by_token and self._mechanism != OAUTHBEARER:
            self._logins.all.remember(login.principal.name, self)
        self._tell(SUCCESS, login.principal)
        self.max_request_bytes = self._requests.max_request_bytes
        self._exchange = None
        self._was = None
        self._state = _OPEN
        return self._limit(login, now_ms)

    def leave(self) -> None:
        if self.part is not None:
            self.part()

    def end(self) -> None:
        self._forget()
        super().end()

    def _forget(self) -> None:
        self._logins.all.forget(self.principal.name, self)

    def _tell(self, outcome: str, principal: Principal | str, reason: str | None = None) -> None:
        audit = self._requests.broker.audit
        if audit is not None:
            audit.login(
                principal=principal,
                address=self.peer_host,
                listener=self.listener,
                mechanism=self._mechanism or "SASL",
                outcome=outcome,
                reason=reason,
            )

    def _limit(self, login: Login, now_ms: int) -> int:
        most_ms = self._logins.max_session_ms(self._mechanism)
        if login.expires_ms is None and most_ms <= 0:
            self._ends_ms = None
            return 0
        left_ms = most_ms if login.expires_ms is None else login.expires_ms - now_ms
        lifetime_ms = max(min(left_ms, most_ms) if most_ms > 0 else left_ms, 0)
        self._ends_ms = now_ms + lifetime_ms
        return lifetime_ms

    def _may_begin_again(self, now_ms: int) -> bool:
        if self._again_ms is not None and now_ms - self._again_ms < _REAUTHENTICATION_PAUSE_MS:
            return False
        self._again_ms = now_ms
        return True

    # failures

    def _described(self, failure: SaslFailure) -> str:
        return f"its {self._mechanism} login failed: {failure}"

    def _fail(self, refusal: BadRequest, now_ms: int) -> Deferred:
        later: Pending[Any] = Pending()
        self._fail_later(later, refusal, now_ms)
        return _waiting(later, self._requests)

    def _fail_later(self, later: Pending[Any], refusal: BadRequest, came_ms: int) -> None:
        broker = self._requests.broker
        now_ms = broker.clock()
        self._tell(FAILURE, self._was or "unknown", str(refusal))
        delay_ms, told = self._logins.failure_delay_ms(self.peer_host, now_ms)
        refusal.quiet = not told
        broker.scheduler.after(max(came_ms + delay_ms - now_ms, 0), lambda: later.fail(refusal))


class _Waiting:
    """A request that is answered by a frame, late, or not at all; a stop does not wait for it."""

    waits_for_others = True


def _waiting(later: Pending[Any], requests: Requests) -> Deferred:
    return held(_Waiting(), later, requests.broker)  # type: ignore[arg-type]  # only that is asked of it


def _key(frame: memoryview) -> int:
    return int.from_bytes(frame[:_KEY_BYTES], "big", signed=True) if len(frame) >= 8 else -1
