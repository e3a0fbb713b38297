"""Logins, given what they need of the broker: settings, stored users, a secret of the broker's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kbroker.authentication.logins import ListenerLogins, Logins
from kbroker.config.sasl_rules import given_users

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.security.delegation_tokens import DelegationTokens

TABLE, KEY = "secrets", "login"
_SECRET_BYTES = 32


def open_logins(broker: Broker) -> dict[str, ListenerLogins]:
    """By listener, of those that ask who comes."""
    listeners = [listener for listener in broker.settings.all_listeners if listener.uses_sasl]
    if not listeners:
        return {}
    settings = broker.settings
    given = given_users(settings["kbroker.users"], settings["kbroker.users.file"])
    logins = Logins(broker, given, _secret(broker))
    return {
        listener.name: ListenerLogins(logins, listener.name, listener.security_protocol)
        for listener in listeners
    }


def open_delegation_tokens(broker: Broker) -> DelegationTokens:
    """Those that there were before the last stop; what has expired is swept from now on."""
    from kbroker.security.delegation_tokens import TABLE as TOKENS
    from kbroker.security.delegation_tokens import DelegationTokens, Lifetimes

    settings = broker.settings
    tokens = DelegationTokens(
        broker.catalog,
        broker.stored_entries(TOKENS),
        settings["delegation.token.secret.key"],
        Lifetimes(settings["delegation.token.max.lifetime.ms"], settings["delegation.token.expiry.time.ms"]),
    )

    def sweep() -> None:
        tokens.sweep(broker.clock())
        broker.scheduler.after(settings["delegation.token.expiry.check.interval.ms"], sweep)

    if tokens.enabled:
        sweep()
    return tokens


def _secret(broker: Broker) -> bytes:
    """The same at every start: what unknown users are told must not change."""
    stored = broker.stored_entries(TABLE).get(KEY)
    if stored is not None:
        return bytes.fromhex(stored)
    secret = os.urandom(_SECRET_BYTES)
    broker.catalog.save_entries(TABLE, {KEY: secret.hex()})
    return secret
