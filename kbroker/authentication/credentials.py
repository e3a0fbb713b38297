"""Who sends a request that carries its own credentials: a name with a password, or the bearer of a token.

For doors where every request says who sends it, in the form of an Authorization: `Basic` (RFC 7617) and
`Bearer` (RFC 6750). Users, tokens and their checks, the waits after failures and the audit log are those of
SASL on the same listener.

Invariants:
- Who fails hears it connection.failed.authentication.delay.ms after the request came, or later, whatever was
  wrong. Who is right never waits for more than the check.
- What was right is remembered by a keyed hash, for five minutes at most, not beyond the end of a token, and
  until any password or any setting of logins is altered. Nothing else of credentials is kept.
- Logins that are checked or wait for their refusal are bounded. Of more, the oldest of the address that has
  most of them are refused at once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.authentication.session_watch import SessionWatch
from kbroker.config.sasl_rules import OAUTHBEARER, PLAIN
from kbroker.pending import Pending, mapped
from kbroker.security.audit import FAILURE, SUCCESS
from kbroker.security.principal import Principal
from kbroker.security.sasl.exchange import Login, SaslFailure
from kbroker.security.sasl.oauthbearer import BearerToken, InvalidToken

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins

logger = logging.getLogger("kbroker.logins")

BASIC, BEARER = "Basic", "Bearer"
_MECHANISMS = {BASIC: PLAIN, BEARER: OAUTHBEARER}
_REMEMBERED_MS = 300_000
_MOST_REMEMBERED = 10_000
_MOST_ADDRESSES = 1000  # of one who is remembered


class Identity(NamedTuple):
    """Who it is, and for how long."""

    principal: Principal
    scheme: str
    expires_ms: int | None = None
    """When the credential ends."""
    by_token: bool = False
    """With a delegation token."""


class LoginRefused(Exception):
    """Nobody is logged in. The text is for the client: it helps nobody to guess."""

    def __init__(self, told: str, *, scheme: str | None = None, busy: bool = False) -> None:
        """``scheme``: by which it was tried, of those that are offered. ``busy``: it was not even tried."""
        super().__init__(told)
        self.scheme = scheme
        self.busy = busy


class _Known:
    """Credentials that were right."""

    __slots__ = ("addresses", "identity", "until_ms")

    def __init__(self, identity: Identity, until_ms: int) -> None:
        self.identity = identity
        self.until_ms = until_ms
        self.addresses: set[str] = set()  # from where they came, as far as it was told


class RequestLogins:
    """Those of one listener."""

    def __init__(self, logins: ListenerLogins) -> None:
        self._logins = logins
        self._broker = logins.all.broker
        self._secret = logins.all.secret
        self._known: dict[bytes, _Known] = {}  # by a keyed hash; the oldest first
        self._waiting: dict[_Attempt, None] = {}  # the oldest first
        self._broker.users.on_change(lambda name, new: self._known.clear())
        self._broker.dynamic_configs.reconfigurables.append(self)

    @property
    def schemes(self) -> list[str]:
        """What is offered to clients."""
        offered = [BASIC] if self._logins.takes_passwords else []
        return [*offered, BEARER] if OAUTHBEARER in self._logins.mechanisms else offered

    def identify(self, authorization: str, peer_host: str) -> Identity | Pending[Identity]:
        """Who sends this from there. Fails with LoginRefused, later."""
        digest = hashlib.blake2b(
            authorization.encode(errors="surrogatepass"), key=self._secret, digest_size=32
        ).digest()
        now_ms = self._broker.clock()
        known = self._known.get(digest)
        if known is not None:
            if now_ms < known.until_ms:
                if peer_host not in known.addresses:
                    self._tell_success(known, peer_host)
                return known.identity
            del self._known[digest]
        return self._check(authorization, digest, peer_host, now_ms)

    def watch(self, identity: Identity, on_end: Callable[[str], None]) -> Callable[[], None]:
        """``on_end(reason)`` is called when a session that begins now is over, at most once.

        That is the case when the token or connections.max.reauth.ms ends, or the password is changed or
        deleted. To be called before anything else is waited for. What comes back calls it off.
        """
        most_ms = self._logins.max_session_ms(_MECHANISMS[identity.scheme])
        by_password = identity.scheme == BASIC and not identity.by_token
        user = identity.principal.name if by_password else None
        return SessionWatch(self._logins.all, user, identity.expires_ms, most_ms, on_end).end

    # settings that are altered (config/dynamic.py: Reconfigurable)

    def check(self, altered: Mapping[str, str | None]) -> None:
        """Whatever its definition allows."""

    def settings_changed(self, names: Collection[str]) -> None:
        if any("sasl." in name for name in names):
            self._known.clear()

    # checking

    def _check(
        self, authorization: str, digest: bytes, peer_host: str, now_ms: int
    ) -> Identity | Pending[Identity]:
        attempt = _Attempt(self, peer_host, now_ms)
        try:
            checked = self._checked(authorization, attempt)
        except (SaslFailure, InvalidToken) as failure:
            checked = Pending.failed(failure)
        if not isinstance(checked, Pending) or (checked.done and checked.succeeded):
            identity = checked.result() if isinstance(checked, Pending) else checked
            return self._remembered(digest, identity, peer_host)
        return self._await(attempt, checked, digest)

    def _await(self, attempt: _Attempt, checked: Pending[Identity], digest: bytes) -> Pending[Identity]:
        attempt.cancel = checked.abandon
        self._waiting[attempt] = None
        if len(self._waiting) > self._broker.settings["kbroker.max.unauthenticated.connections"]:
            self._make_room()

        def settled(checked: Pending[Identity]) -> None:
            try:
                identity = checked.result()
            except (SaslFailure, InvalidToken) as failure:
                self._fail_later(attempt, failure)
            except Exception as error:
                attempt.end()
                attempt.result.fail(error)
            else:
                attempt.end()
                attempt.result.resolve(self._remembered(digest, identity, attempt.peer_host))

        if not attempt.result.done:
            checked.then(settled)
        return attempt.result

    def _checked(self, authorization: str, attempt: _Attempt) -> Identity | Pending[Identity]:
        scheme, _, credentials = authorization.strip().partition(" ")
        offered = {each.lower(): each for each in self.schemes}
        attempt.scheme = offered.get(scheme.lower())
        if attempt.scheme is None:
            raise SaslFailure("it is of a kind that is not offered")
        if attempt.scheme == BASIC:
            return self._by_password(*_name_and_password(credentials.strip()))
        return self._by_bearer(credentials.strip())

    def _by_password(self, name: str, password: str) -> Identity | Pending[Identity]:
        def checked(login: Login) -> Identity:
            return Identity(login.principal, BASIC, login.expires_ms, login.by_token)

        return mapped(self._logins.by_password(name, password), checked)

    def _by_bearer(self, token: str) -> Identity | Pending[Identity]:
        def checked(bearer: BearerToken) -> Identity:
            return Identity(Principal("User", bearer.principal_name), BEARER, bearer.expires_ms)

        return mapped(self._logins.validate_token(token), checked)

    def _remembered(self, digest: bytes, identity: Identity, peer_host: str) -> Identity:
        until_ms = self._broker.clock() + _REMEMBERED_MS
        if identity.expires_ms is not None:
            until_ms = min(until_ms, identity.expires_ms)
        known = _Known(identity, until_ms)
        if not identity.by_token:  # one that is ended would be remembered; and they are checked quickly
            if len(self._known) >= _MOST_REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[digest] = known
        self._tell_success(known, peer_host)
        return identity

    # failing

    def _fail_later(self, attempt: _Attempt, failure: Exception) -> None:
        broker, logins = self._broker, self._logins
        now_ms = broker.clock()
        mechanism = attempt.scheme or "Authorization"
        reason = f"its {mechanism} login failed: {failure}"
        self._tell(FAILURE, "unknown", attempt.peer_host, mechanism, reason)
        delay_ms, told = logins.failure_delay_ms(attempt.peer_host, now_ms)
        level, extra = logging.WARNING if told else logging.DEBUG, {"peer": attempt.peer_host}
        logger.log(level, "%s: %s", attempt.peer_host, reason, extra=extra)

        def refuse() -> None:
            attempt.end()
            attempt.result.fail(attempt.refusal())

        attempt.cancel = broker.scheduler.after(max(attempt.came_ms + delay_ms - now_ms, 0), refuse)

    def _make_room(self) -> None:
        """Several at a time: to look for them takes longer than to refuse one."""
        ((host, waiting),) = Counter(attempt.peer_host for attempt in self._waiting).most_common(1)
        oldest = [attempt for attempt in self._waiting if attempt.peer_host == host]
        for attempt in oldest[: max(waiting // 20, 1)]:
            attempt.give_up()

    def forget(self, attempt: _Attempt) -> None:
        self._waiting.pop(attempt, None)

    # telling

    def _tell_success(self, known: _Known, peer_host: str) -> None:
        """Not for each request: once while it is remembered, for each address that it comes from."""
        if len(known.addresses) >= _MOST_ADDRESSES:
            known.addresses.clear()
        known.addresses.add(peer_host)
        self._tell(SUCCESS, known.identity.principal, peer_host, known.identity.scheme)

    def _tell(
        self,
        outcome: str,
        principal: Principal | str,
        peer_host: str,
        mechanism: str,
        reason: str | None = None,
    ) -> None:
        audit = self._broker.audit
        if audit is not None:
            audit.login(
                principal=principal,
                address=peer_host,
                listener=self._logins.listener,
                mechanism=mechanism,
                outcome=outcome,
                reason=reason,
            )


class _Attempt:
    """A login that is not decided yet, or whose refusal waits."""

    __slots__ = ("_owner", "came_ms", "cancel", "peer_host", "result", "scheme")

    def __init__(self, owner: RequestLogins, peer_host: str, came_ms: int) -> None:
        self._owner = owner
        self.peer_host = peer_host
        self.came_ms = came_ms
        self.scheme: str | None = None
        self.result: Pending[Identity] = Pending(self.end_early)
        self.cancel: Callable[[], None] | None = None
        """Ends what it waits for."""

    def end(self) -> None:
        self.cancel = None
        self._owner.forget(self)

    def end_early(self) -> None:
        cancel = self.cancel
        self.end()
        if cancel is not None:
            cancel()

    def give_up(self) -> None:
        self.end_early()
        self.result.fail(
            LoginRefused("Too many logins are being checked: try again.", scheme=self.scheme, busy=True)
        )

    def refusal(self) -> LoginRefused:
        if self.scheme == BASIC:
            return LoginRefused("The user name or the password is wrong.", scheme=BASIC)
        if self.scheme == BEARER:
            return LoginRefused("The token is not valid.", scheme=BEARER)
        return LoginRefused("There is no login of this kind here.")


def _name_and_password(credentials: str) -> tuple[str, str]:
    """Raises SaslFailure."""
    try:
        decoded = base64.b64decode(credentials, validate=True)
    except (binascii.Error, ValueError):
        raise SaslFailure("the credentials are not base64") from None
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        text = decoded.decode("latin-1")  # what some clients still write
    name, colon, password = text.partition(":")
    if not colon:
        raise SaslFailure("the credentials are no name and password")
    if not name or not password:
        raise SaslFailure("the name or the password is missing")
    return name, password
