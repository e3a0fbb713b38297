"""OAUTHBEARER with tokens that a provider signed, its keys in a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.differential.sasl.test_logins import CLUSTER, handshake, message, tell
from compat.harness import sasl
from compat.harness.brokers import SETTINGS, Server, running
from compat.harness.sasl import Client
from compat.harness.side import Side
from tests.authentication.provider import Provider

PREFIX = "listener.name.plaintext.oauthbearer.sasl."
EXPECTED = {
    "sasl.oauthbearer.expected.issuer": "https://issuer.example",
    "sasl.oauthbearer.expected.audience": "kafka,streams",
    "sasl.oauthbearer.clock.skew.seconds": "30",
}
HOUR = 3600
CLAIMS: dict[str, dict[str, Any]] = {
    "as expected": {},
    "for one of several": {"aud": ["x", "streams"]},
    "for others": {"aud": "other"},
    "for nobody": {"aud": None},
    "of another issuer": {"iss": "https://other.example"},
    "of no issuer": {"iss": None},
    "expired": {"exp": -HOUR},
    "without an end": {"exp": None},
    "without a beginning": {"iat": None},
    "from tomorrow on": {"nbf": HOUR},
    "from a moment ago on": {"nbf": -5},
    "from a moment on": {"nbf": 10},
    "issued tomorrow": {"iat": HOUR},
    "of nobody": {"sub": None},
    "of a blank": {"sub": " "},
    "with scopes": {"scope": "a b"},
    "with a list of scopes": {"scope": ["a", "b"]},
    "with a blank scope": {"scope": ""},
    "with a list of blanks": {"scope": ["a", " "]},
    "with a scope twice": {"scope": ["a", "a"]},
    "with a number of a scope": {"scope": 5},
    "with an unknown key": {"kid": "unknown"},
    "with another's key": {"kid": "ec"},
    "without the name of a key": {"kid": None},
    "by a curve": {"key": "ec", "algorithm": "ES256", "kid": "ec"},
    "by a stranger": {"key": "stranger"},
    "by a longer hash": {"algorithm": "RS512"},
    "by another padding": {"algorithm": "PS256"},
}


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module")
def brokers(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, ...]]:
    url = provider.write(tmp_path_factory.mktemp("keys") / "jwks.json")
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    settings = {
        **SETTINGS,
        **sasl.SETTINGS,
        **EXPECTED,
        f"{PREFIX}server.callback.handler.class": handler,
        f"{PREFIX}oauthbearer.jwks.endpoint.url": url,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")
        with running(settings, sasl.KBROKER_ALONE) as servers:
            yield servers


@pytest.mark.parametrize("claims", CLAIMS.values(), ids=CLAIMS.keys())
def test_a_signed_token(pair: Pair, provider: Provider, claims: dict[str, Any]) -> None:
    def scenario(side: Side) -> Any:
        now = int(time.time())
        given = {
            name: now + value if name in ("exp", "nbf", "iat") and value is not None else value
            for name, value in claims.items()
        }
        key = getattr(provider, given.pop("key", "rsa"))
        token = provider.token(key, **given)
        steps = [handshake("OAUTHBEARER"), message(sasl.bearer(token)), message(b"\x01"), CLUSTER]
        seen = tell(Client(side.server.bootstrap), steps)
        if seen[1][1]["SessionLifetimeMs"]:
            seen[1][1]["SessionLifetimeMs"] = "until it expires"
        return seen

    pair.same(scenario)
