"""A SASL exchange of any mechanism: messages go in, challenges come out, until it is known who logs in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kbroker.pending import Pending
    from kbroker.security.principal import Principal


class SaslFailure(Exception):
    """Nobody is logged in. The text is for the log, ``told`` for the client: it must not help to guess.

    None: the client hears that its credentials are not valid.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


class Login(NamedTuple):
    principal: Principal
    expires_ms: int | None = None
    """When the credential ends, and the session with it."""
    by_token: bool = False
    """With a delegation token: such a session may not make others."""


class Exchange(Protocol):
    login: Login | None
    """Who it was, once the exchange is done."""

    def evaluate(self, message: bytes) -> bytes | Pending[bytes]:
        """The challenge that answers the client's message. Raises, or fails with, SaslFailure."""
        ...
