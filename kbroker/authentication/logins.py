"""Logins: which mechanisms a listener offers, who its users are, and what becomes of failures.

Users come from three places. PLAIN asks the listener's sasl.jaas.config first, as in Kafka. Then come, for
PLAIN and SCRAM, those in the catalog, which AlterUserScramCredentials changes, and last those that were given
at the start (kbroker.users, kbroker.users.file). A name of an earlier place hides that name of a later one.
Settings are read at each login, so that alterations are in force for the next one.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from kbroker.authentication.failed_logins import FailedLogins
from kbroker.authentication.passwords import Passwords
from kbroker.config.sasl_rules import KNOWN_MECHANISMS, OAUTHBEARER, PLAIN
from kbroker.pending import Pending, after, mapped
from kbroker.security.jaas import BadJaas, parse_jaas
from kbroker.security.principal import Principal
from kbroker.security.sasl.exchange import Exchange, Login, SaslFailure
from kbroker.security.sasl.oauthbearer import BearerToken, OAuthBearerExchange, Validate
from kbroker.security.sasl.plain import PlainExchange
from kbroker.security.sasl.scram import Known, ScramExchange
from kbroker.security.scram_credentials import (
    SCRAM_SHA_256,
    ScramCredential,
    derived_salt,
    nobodys,
    of_password,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.security.delegation_tokens import DelegationToken
    from kbroker.security.users import GivenUser

_MOST_REMEMBERED = 10_000


class LoggedIn(Protocol):
    """A session, as far as its end is concerned."""

    def leave(self) -> None:
        """Let the connection close, once what it executes is answered."""


Credentials = Mapping[str, ScramCredential]
"""Of one user, by mechanism."""


class Logins:
    """What the listeners of a broker share."""

    def __init__(self, broker: Broker, given: Mapping[str, GivenUser], secret: bytes) -> None:
        self.broker = broker
        self.secret = secret
        self.failed = FailedLogins()
        self.passwords = Passwords(broker.worker, secret)
        self.token_credentials: dict[tuple[str, str], ScramCredential] = {}  # by mechanism and token id
        self._sessions: dict[str, set[LoggedIn]] = {}  # by user: who logged in with a password
        broker.users.on_change(self._password_changed)
        self._given = given
        self._hashed = broker.worker.run(lambda: {name: self._hash(user) for name, user in given.items()})

    def remember(self, name: str, session: LoggedIn) -> None:
        """Who logged in with the password of a user, and has to leave when it is changed."""
        self._sessions.setdefault(name, set()).add(session)

    def forget(self, name: str, session: LoggedIn) -> None:
        sessions = self._sessions.get(name)
        if sessions is not None:
            sessions.discard(session)
            if not sessions:
                del self._sessions[name]

    def _password_changed(self, name: str, new: bool) -> None:
        if new and name not in self._given:
            return
        for session in tuple(self._sessions.get(name, ())):
            session.leave()

    def credentials(self, name: str) -> Credentials | Pending[Credentials]:
        """Of a stored user, or of one given at the start; none: there is no such user."""
        stored = self.broker.users.credentials(name)
        if stored or name not in self._given:
            return stored
        # At once, but for the first moments after the start. Who gives up waiting does so for nobody else.
        own: Pending[dict[str, Credentials]] = Pending()
        self._hashed.then(own.follow)
        return mapped(own, lambda hashed: hashed[name])

    @property
    def any_hashed(self) -> bool:
        """Whether there is anybody whose password takes time to check."""
        return bool(self._given) or bool(self.broker.users.names())

    def _hash(self, user: GivenUser) -> Credentials:
        if user.password is None:
            return user.credentials
        return {
            mechanism: of_password(mechanism, user.password, derived_salt(self.secret, mechanism, user.name))
            for mechanism in KNOWN_MECHANISMS
            if _is_scram(mechanism)
        }


class ListenerLogins:
    """The logins of one listener."""

    def __init__(self, logins: Logins, listener: str, security_protocol: str) -> None:
        self.all = self._logins = logins
        self._settings = logins.broker.settings
        self._jaas: tuple[str, dict[str, str]] = ("", {})
        self._validate: Validate | None = None
        self.listener = listener
        self.security_protocol = security_protocol
        if OAUTHBEARER in self.mechanisms:
            from kbroker.authentication.oauthbearer import open_validation  # most brokers check no tokens

            self._validate = open_validation(logins.broker, listener)
        self.max_receive_bytes: int = self._settings.of_listener(listener, "sasl.server.max.receive.size")

    @property
    def mechanisms(self) -> list[str]:
        """What is offered to clients."""
        settings = self._settings
        enabled = settings.of_listener(self.listener, "sasl.enabled.mechanisms")
        return [mechanism for mechanism in enabled if mechanism in KNOWN_MECHANISMS]

    def begin(self, mechanism: str) -> Exchange:
        if mechanism == PLAIN:
            return PlainExchange(self._check_plain)
        if mechanism == OAUTHBEARER:
            return OAuthBearerExchange(self.validate_token)
        return ScramExchange(mechanism, lambda name, by_token: self._find(mechanism, name, by_token))

    def max_session_ms(self, mechanism: str) -> int:
        """After which a client must authenticate again; 0: never (KIP-368)."""
        settings = self._settings
        return int(settings.of_listener(self.listener, "connections.max.reauth.ms", mechanism))

    def failure_delay_ms(self, host: str, now_ms: int) -> tuple[int, bool]:
        """One more failure: how long its answer waits, and whether the log is to tell of it."""
        settings = self._settings
        return self._logins.failed.add(
            host,
            now_ms,
            settings.of_listener(self.listener, "connection.failed.authentication.delay.ms"),
            settings["kbroker.login.failure.delay.max.ms"],
        )

    # credentials as they are

    @property
    def takes_passwords(self) -> bool:
        """Whether a password may come as it is: by PLAIN, or a SCRAM user's within TLS."""
        mechanisms = self.mechanisms
        if PLAIN in mechanisms:
            return True
        return self.security_protocol == "SASL_SSL" and any(map(_is_scram, mechanisms))

    @property
    def takes_credentials(self) -> bool:
        """Whether anybody can log in without a conversation: by a password, or a token."""
        return self.takes_passwords or OAUTHBEARER in self.mechanisms

    def by_password(self, name: str, password: str) -> Login | Pending[Login]:
        """Who has this password; a delegation token has its id for a name. Fails with SaslFailure."""
        mechanisms = self.mechanisms
        token = self._live_token(name) if any(map(_is_scram, mechanisms)) else None
        if token is not None:
            expected = self._logins.broker.delegation_tokens.password_of(token)
            if hmac.compare_digest(expected.encode(), password.encode(errors="surrogatepass")):
                return Login(Principal("User", token.owner.name), token.expires_ms, by_token=True)

        def checked(right: bool) -> Login:
            if not right:
                raise SaslFailure("Invalid username or password")
            return Login(Principal("User", name))

        allowed = KNOWN_MECHANISMS if PLAIN in mechanisms else mechanisms
        return mapped(self._check_password(name, password, allowed), checked)

    def validate_token(self, token: str) -> BearerToken | Pending[BearerToken]:
        if self._validate is None:  # it was enabled since the start
            from kbroker.authentication.oauthbearer import open_validation

            self._validate = open_validation(self._logins.broker, self.listener)
        return self._validate(token)

    # users

    def _check_plain(self, name: str, password: str) -> bool | Pending[bool]:
        return self._check_password(name, password, KNOWN_MECHANISMS)

    def _check_password(self, name: str, password: str, allowed: Collection[str]) -> bool | Pending[bool]:
        """``allowed``: the mechanisms whose credentials count."""
        expected = self._jaas_users().get(name) if PLAIN in allowed else None
        if expected is not None:
            return hmac.compare_digest(
                expected.encode(errors="surrogatepass"), password.encode(errors="surrogatepass")
            )
        credentials = self._logins.credentials(name)
        if isinstance(credentials, Pending):
            return after(credentials, lambda found: self._check(name, password, found, allowed))
        return self._check(name, password, credentials, allowed)

    def _check(
        self, name: str, password: str, credentials: Credentials, allowed: Collection[str]
    ) -> bool | Pending[bool]:
        for mechanism in sorted(credentials.keys() & set(allowed)):
            credential = credentials[mechanism]
            return self._logins.passwords.check(name, mechanism, credential, password)
        if not self._logins.any_hashed:
            return False
        nobody = nobodys(self._logins.secret, SCRAM_SHA_256, name)
        return self._logins.passwords.check(name, SCRAM_SHA_256, nobody, password)

    def _jaas_users(self) -> dict[str, str]:
        settings = self._settings
        text = settings.of_listener(self.listener, "sasl.jaas.config", PLAIN) or ""
        if text != self._jaas[0]:
            try:
                users = parse_jaas(text).users()
            except BadJaas:  # it was altered; the start refuses it
                users = {}
            self._jaas = (text, users)
        return self._jaas[1]

    def _find(self, mechanism: str, name: str, by_token: bool) -> Known | Pending[Known]:
        nobody = nobodys(self._logins.secret, mechanism, name)
        if by_token:
            return self._find_token(mechanism, name, nobody)

        def found(credentials: Credentials) -> Known:
            credential = credentials.get(mechanism)
            if credential is None:
                return Known(nobody, None)
            return Known(credential, Login(Principal("User", name)))

        return mapped(self._logins.credentials(name), found)

    def _find_token(self, mechanism: str, token_id: str, nobody: ScramCredential) -> Known | Pending[Known]:
        broker = self._logins.broker
        tokens = broker.delegation_tokens
        token = self._live_token(token_id)
        if token is None:
            return Known(nobody, None)
        login = Login(Principal("User", token.owner.name), token.expires_ms, by_token=True)
        known = self._logins.token_credentials.get((mechanism, token_id))
        if known is not None:
            return Known(known, login)

        def hashed(credential: ScramCredential) -> Known:
            if len(self._logins.token_credentials) >= _MOST_REMEMBERED:
                self._logins.token_credentials.clear()
            self._logins.token_credentials[mechanism, token_id] = credential
            return Known(credential, login)

        return mapped(
            broker.worker.run(
                lambda: of_password(mechanism, tokens.password_of(token), nobody.salt, nobody.iterations)
            ),
            hashed,
        )

    def _live_token(self, token_id: str) -> DelegationToken | None:
        broker = self._logins.broker
        token = broker.delegation_tokens.get(token_id)
        return None if token is None or token.has_expired(broker.clock()) else token


def _is_scram(mechanism: str) -> bool:
    return mechanism.startswith("SCRAM-")
