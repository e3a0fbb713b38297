"""OAUTHBEARER: tokens of a provider whose keys are in a file or behind a URL."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbroker.config.sasl_rules import UNSECURED_HANDLER
from kbroker.protocol.errors import ErrorCode
from tests.support.server_process import ServerProcess

from .provider import Provider, log_in
from .sasl_client import is_in

LISTENER = (
    *("--set", "listeners=SASL_PLAINTEXT://127.0.0.1:0"),
    *("--set", "sasl.enabled.mechanisms=OAUTHBEARER"),
    *("--set", "kbroker.login.failure.delay.max.ms=0"),
    *("--set", "connection.failed.authentication.delay.ms=0"),
)
EXPECTED = (
    *("--set", "sasl.oauthbearer.expected.issuer=https://issuer.example"),
    *("--set", "sasl.oauthbearer.expected.audience=kafka,streams"),
    *("--set", "sasl.oauthbearer.clock.skew.seconds=5"),
)
NOW = int(time.time())


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module")
def server(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    url = provider.write(tmp_path_factory.mktemp("keys") / "jwks.json")
    settings = ("--set", f"sasl.oauthbearer.jwks.endpoint.url={url}")
    with ServerProcess("--in-memory", *LISTENER, *EXPECTED, *settings) as running:
        yield running


def at_times(claims: dict[str, Any]) -> dict[str, Any]:
    """Times are given by their distance from now."""
    return {
        name: NOW + value if name in ("exp", "nbf", "iat") and isinstance(value, int) else value
        for name, value in claims.items()
    }


def code_of(server: ServerProcess, token: str) -> int:
    with server.client() as client:
        answer = log_in(client, token)
        assert answer.error_code or is_in(client)
        return int(answer.error_code)


def test_a_token_logs_in_until_it_expires(server: ServerProcess, provider: Provider) -> None:
    with server.client() as client:
        answer = log_in(client, provider.token())
        assert answer.error_code == 0
        assert 0 < answer.session_lifetime_ms <= 60_000
        assert is_in(client)


def _without_time(claims: dict[str, Any]) -> str:
    """A test's name is the same in every process that collects it."""
    return str({name: "a time" if isinstance(value, int) else value for name, value in claims.items()})


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["x", "streams"]},
        {"nbf": -10},
        {"scope": "a b"},
        {"scope": ["a"]},
        {"scope": 5},
        {"kid": None},
    ],
    ids=_without_time,
)
def test_what_is_expected_may_be_said_in_several_ways(
    server: ServerProcess, provider: Provider, claims: dict[str, Any]
) -> None:
    assert code_of(server, provider.token(**at_times(claims))) == 0


def test_keys_of_curves_are_keys_too(server: ServerProcess, provider: Provider) -> None:
    assert code_of(server, provider.token(provider.ec, "ES256", "ec")) == 0


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"exp": -3600},
        {"exp": None},
        {"iat": None},
        {"nbf": 3600},
        {"sub": None},
        {"sub": " "},
        {"sub": 5},
        {"scope": ["a", "a"]},
        {"scope": ""},
        {"iat": 3600},
        {"kid": "unknown"},
        {"kid": "ec"},
        {"exp": "soon"},
    ],
    ids=_without_time,
)
def test_what_is_not_expected_is_an_invalid_token(
    server: ServerProcess, provider: Provider, claims: dict[str, Any]
) -> None:
    import jwt

    claims = dict(claims)
    if claims.get("sub") == 5 or claims.get("exp") == "soon":  # the library would not write such
        whole = {"sub": "joe", "iss": "https://issuer.example", "aud": "kafka", "iat": NOW, "exp": NOW + 600}
        payload = json.dumps({**whole, **claims}).encode()
        token = jwt.PyJWS().encode(payload, provider.rsa, "RS256", headers={"kid": "rsa"})
    else:
        token = provider.token(**at_times(claims))
    assert code_of(server, token) == ErrorCode.SASL_AUTHENTICATION_FAILED


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_no_signature_but_the_providers_counts(server: ServerProcess, provider: Provider) -> None:
    import jwt
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    genuine = provider.token()
    head, body, signature = genuine.split(".")
    claims = {"sub": "admin", "iss": "https://issuer.example", "aud": "kafka", "iat": NOW, "exp": NOW + 600}
    pem = provider.rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    confused = f"{_part({'alg': 'HS256', 'kid': 'rsa'})}.{_part(claims)}"
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signed = base64.urlsafe_b64encode(mac.sign(confused.encode(), pem)).decode().rstrip("=")
    for forged in (
        provider.token(provider.stranger),
        f"{_part({'alg': 'none'})}.{_part(claims)}.",
        f"{head}.{_part(claims)}.{signature}",
        f"{confused}.{signed}",
        f"{head}.{body}.",
        f"{head}.{body}",
        "abc",
    ):
        assert code_of(server, forged) == ErrorCode.SASL_AUTHENTICATION_FAILED


class _Keys(http.server.BaseHTTPRequestHandler):
    answers: list[str] = []  # noqa: RUF012 (one server at a time)
    asked = 0

    def do_GET(self) -> None:
        _Keys.asked += 1
        self.send_response(200 if self.answers else 500)
        self.end_headers()
        if self.answers:
            self.wfile.write(self.answers[-1].encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_keys_behind_a_url_are_fetched_again_when_they_change(provider: Provider) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Keys) as keys:
        threading.Thread(target=keys.serve_forever, daemon=True).start()
        settings = (
            *("--set", f"sasl.oauthbearer.jwks.endpoint.url=http://127.0.0.1:{keys.server_port}/keys"),
            *("--set", "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=1"),
            *("--set", "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=1"),
        )
        with ServerProcess("--in-memory", *LISTENER, *EXPECTED, *settings) as server:
            assert code_of(server, provider.token()) == ErrorCode.SASL_AUTHENTICATION_FAILED
            _Keys.answers.append(provider.jwks())
            assert code_of(server, provider.token()) == 0
            asked = _Keys.asked
            assert code_of(server, provider.token()) == 0
            assert _Keys.asked == asked
            _Keys.answers.append(provider.jwks(renamed="2"))
            assert code_of(server, provider.token(kid="rsa2")) == 0
            assert _Keys.asked == asked + 1
        keys.shutdown()


def test_tokens_without_a_signature_are_taken_only_if_asked_for(tmp_path: Path) -> None:
    login = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredValidatorRequiredScope="write";'
    )
    prefix = "listener.name.sasl_plaintext.oauthbearer."
    settings = (
        *("--set", f"{prefix}sasl.server.callback.handler.class={UNSECURED_HANDLER}"),
        *("--set", f"{prefix}sasl.jaas.config={login}"),
    )
    claims = {"sub": "joe", "iat": NOW, "exp": NOW + 600, "scope": "read write"}
    with ServerProcess("--in-memory", *LISTENER, *settings) as server:
        assert code_of(server, f"{_part({'alg': 'none'})}.{_part(claims)}.") == 0
        with server.client() as client:
            from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
            from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest

            client.ask(SaslHandshakeRequest("OAUTHBEARER"), 1)
            token = f"{_part({'alg': 'none'})}.{_part({**claims, 'scope': 'read'})}."
            answer = client.ask(SaslAuthenticateRequest(f"n,,\x01auth=Bearer {token}\x01\x01".encode()), 2)
            assert answer.auth_bytes == b'{"status":"insufficient_scope", "scope":"write"}'
