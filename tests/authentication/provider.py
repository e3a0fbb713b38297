"""An identity provider of a test: keys, and tokens signed with them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.raw_client import RawClient


class Provider:
    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwks(self, *, renamed: str = "") -> str:
        first = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.rsa.public_key()))
        second = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.ec.public_key()))
        keys = [{**first, "kid": f"rsa{renamed}", "use": "sig"}, {**second, "kid": f"ec{renamed}"}]
        return json.dumps({"keys": keys})

    def write(self, path: Path, *, renamed: str = "") -> str:
        path.write_text(self.jwks(renamed=renamed))
        return path.as_uri()

    def token(self, key: Any = None, algorithm: str = "RS256", kid: str | None = "rsa", **claims: Any) -> str:
        now = int(time.time())
        given = {"sub": "joe", "iss": "https://issuer.example", "aud": "kafka", "iat": now, "exp": now + 60}
        payload = {name: value for name, value in {**given, **claims}.items() if value is not None}
        return jwt.encode(payload, key or self.rsa, algorithm, headers={"kid": kid} if kid else None)


def log_in(client: RawClient, token: str) -> Any:
    """The answer to the token; to what follows it, if it is refused."""
    client.ask(SaslHandshakeRequest("OAUTHBEARER"), 1)
    answer = client.ask(SaslAuthenticateRequest(f"n,,\x01auth=Bearer {token}\x01\x01".encode()), 2)
    if not answer.auth_bytes:
        return answer
    assert answer.auth_bytes == b'{"status":"invalid_token"}'
    return client.ask(SaslAuthenticateRequest(b"\x01"), 2)
