"""The public keys of an identity provider, from a file or a URL, and signatures checked with them.

They are fetched off the event loop: before the first token, then each refresh interval, and for a token with
a key that is not known: the provider may have changed them. After a failure the next try waits for the
backoff, and old keys stay in use.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from kbroker.config.errors import SettingError
from kbroker.pending import Pending, after
from kbroker.security.bearer_tokens import header_of, json_object
from kbroker.security.sasl.oauthbearer import InvalidToken

if TYPE_CHECKING:
    from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.oauthbearer")

_TIMEOUT_SECONDS = 10
_MOST_BYTES = 1 << 20
_MOST_TRIED = 8  # keys, for a token that names none
_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}


class Pace(NamedTuple):
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int


class Jwks:
    def __init__(self, url: str, worker: Worker, clock: Callable[[], int], pace: Pace) -> None:
        self._url = url
        self._worker = worker
        self._clock = clock
        self._pace = pace
        self._keys: list[dict[str, Any]] | None = None
        self._refresh_ms = 0  # when they are fetched anew
        self._again_ms = 0  # from when on they may be, for a token with an unknown key
        self._failures = 0
        self._fetching: Pending[None] | None = None

    def verified(self, token: str) -> dict[str, Any] | Pending[dict[str, Any]]:
        """The claims of a token whose signature is right. Raises, or fails with, InvalidToken."""
        header = header_of(token)
        now_ms = self._clock()
        if self._with_id(header):
            if now_ms >= self._refresh_ms:
                self._fetch()  # for the next ones
            return self._verify(token, header)
        if now_ms < self._again_ms and self._fetching is None:
            return self._verify(token, header)
        return after(self._fetch(), lambda _: self._verify(token, header))

    def _with_id(self, header: dict[str, Any]) -> list[dict[str, Any]]:
        key_id = header.get("kid")
        return [key for key in self._keys or () if key_id is None or key.get("kid") == key_id]

    def _verify(self, token: str, header: dict[str, Any]) -> dict[str, Any]:
        import jwt  # on first use: most brokers check no tokens

        algorithm = header.get("alg")
        fitting = [
            key
            for key in self._with_id(header)
            if algorithm in _ALGORITHMS.get(str(key.get("kty")), ())
            and key.get("alg", algorithm) == algorithm
            and key.get("use", "sig") == "sig"
        ]
        for key in fitting[:_MOST_TRIED]:
            try:
                public = jwt.PyJWK(key, algorithm)
                return json_object(
                    jwt.PyJWS().decode_complete(token, public.key, algorithms=[str(algorithm)])["payload"]
                )
            except jwt.PyJWTError:
                continue
        raise InvalidToken("no key of the provider fits its signature")

    def _fetch(self) -> Pending[None]:
        if self._fetching is not None:
            return _shared(self._fetching)
        fetching: Pending[None] = Pending()
        self._fetching = fetching

        def fetched(result: Pending[list[dict[str, Any]]]) -> None:
            self._fetching = None
            now_ms = self._clock()
            try:
                self._keys = result.result()
            except Exception as error:
                wait_ms = min(self._pace.backoff_ms << min(self._failures, 20), self._pace.backoff_max_ms)
                self._failures += 1
                self._refresh_ms = self._again_ms = now_ms + wait_ms
                logger.warning("the keys of %s cannot be had: %s", self._url, error)
            else:
                self._failures = 0
                self._refresh_ms = now_ms + self._pace.refresh_ms
                self._again_ms = now_ms + self._pace.backoff_max_ms  # strangers send unknown keys, too
            fetching.resolve(None)

        self._worker.run(lambda: read_keys(self._url)).then(fetched)
        return _shared(fetching)


def _shared(fetching: Pending[None]) -> Pending[None]:
    """For one of several who wait: if it goes away, the others still get theirs."""
    own: Pending[None] = Pending()
    fetching.then(own.follow)
    return own


def read_keys(url: str) -> list[dict[str, Any]]:
    """Blocks."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        with open(unquote(parts.path), "rb") as file:
            content = file.read(_MOST_BYTES + 1)
    else:
        from urllib.request import urlopen

        with urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # the scheme was checked at the start
            content = answer.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    try:
        keys = json_object(content).get("keys")
    except InvalidToken:
        keys = None
    if not isinstance(keys, list):
        raise ValueError("this is no JSON Web Key Set")
    return [key for key in keys if isinstance(key, dict)]


def check_library() -> None:
    """Whether signatures can be checked here. Raises SettingError."""
    from importlib.util import find_spec

    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise SettingError("OAUTHBEARER with signed tokens needs two libraries: pip install 'kbroker[oauth]'")
