"""The OAUTHBEARER of a listener: its settings, made into a check of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.authentication.jwks import Jwks, Pace, check_library
from kbroker.config.sasl_rules import OAUTHBEARER, jaas_of, unsecured_options
from kbroker.pending import Pending, mapped
from kbroker.security.bearer_tokens import ClaimRules, check_unsecured
from kbroker.security.sasl.oauthbearer import BearerToken, Validate

if TYPE_CHECKING:
    from kbroker.broker import Broker


def open_validation(broker: Broker, listener: str) -> Validate:
    """Raises SettingError."""
    settings = broker.settings
    handler = settings.of_listener(listener, "sasl.server.callback.handler.class", OAUTHBEARER)
    options = unsecured_options(jaas_of(settings, listener, OAUTHBEARER), handler)
    if options is not None:
        return lambda token: check_unsecured(token, options, broker.clock())
    check_library()
    of = OAUTHBEARER
    pace = Pace(
        settings.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.refresh.ms", of),
        settings.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", of),
        settings.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", of),
    )
    url = settings.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.url", of)
    keys = Jwks(url, broker.worker, broker.clock, pace)
    rules = ClaimRules(
        audiences=settings.of_listener(listener, "sasl.oauthbearer.expected.audience", of),
        issuer=settings.of_listener(listener, "sasl.oauthbearer.expected.issuer", of),
        scope_claim=settings.of_listener(listener, "sasl.oauthbearer.scope.claim.name", of),
        sub_claim=settings.of_listener(listener, "sasl.oauthbearer.sub.claim.name", of),
        clock_skew_ms=1000 * settings.of_listener(listener, "sasl.oauthbearer.clock.skew.seconds", of),
    )

    def validate(token: str) -> BearerToken | Pending[BearerToken]:
        return mapped(keys.verified(token), lambda claims: rules.check(claims, broker.clock()))

    return validate
