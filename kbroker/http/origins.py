"""Web pages: which may use HTTP (CORS), and that none may that was not asked for.

A browser lets any page send requests to any address, with the passwords and certificates that it has for it;
it only keeps the page from reading the answers. So:

- A request with an Origin is served if that is this broker's own or one of kbroker.http.cors.origins, and
  refused else; the same holds for WebSockets, for which browsers make no other rule. A request without one
  that says it comes from another site (Sec-Fetch-Site: an image, a link) is served documentation alone.
- A page can give its own name the address 127.0.0.1 (DNS rebinding), and is of the same origin then. Where
  HTTP over a loopback address asks nobody who they are, it must be asked for by an address, a name without a
  dot, or one that is known here.
- `*` and `null` stand for any page: it is served, but what its browser adds by itself does not count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from kbroker.config.listeners import is_loopback
from kbroker.http.answers import Response
from kbroker.http.problems import Problem

if TYPE_CHECKING:
    from starlette.types import Scope

    from kbroker.config.settings import Settings
    from kbroker.http.connection import HttpConnection

_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_EXPOSED = (
    "Location, Retry-After, X-High-Watermark, X-Next-Offset, X-Offset, X-Request-Id, X-Timestamp, X-Tombstone"
)
_HEADER_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z, -]{1,2000}")
_ADDRESS = re.compile(r"[0-9.]+")
_MAX_AGE_SECONDS = 600
_ANYBODY = ("*", "null")
_ADVICE = "name their origin in kbroker.http.cors.origins if they are to."


class Page(NamedTuple):
    """A page of another origin that may use HTTP."""

    origin: str
    named: bool
    """Whether its origin is listed itself, so that its browser's passwords and certificates count."""

    def headers(self) -> dict[str, str]:
        if not self.named:
            return {"access-control-allow-origin": "*", "access-control-expose-headers": _EXPOSED}
        return {
            "access-control-allow-origin": self.origin,
            "access-control-allow-credentials": "true",
            "access-control-expose-headers": _EXPOSED,
        }


class Origins:
    def __init__(self, settings: Settings, *, any_name: bool) -> None:
        """``any_name``: a page that gives its own name another address gets nothing for it, since it has
        neither the broker's certificate nor the passwords that the browser has for the broker.
        """
        self._settings = settings
        self._any_name = any_name

    @property
    def vary(self) -> bool:
        """Whether answers depend on who asks."""
        return bool(self._settings["kbroker.http.cors.origins"])

    def judge(self, scope: Scope, *, public: bool) -> Page | None:
        """The page of another origin that asks, if it is one. Raises Problem for who may not.

        ``public``: what is asked for is the same for all, and nothing comes of it.
        """
        host, origin, site = b"", b"", b""
        for name, value in scope["headers"]:
            if name == b"host":
                if host:
                    raise Problem(400, "The request has two Host headers.")
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
        if not host and scope["http_version"] == "1.1":
            raise Problem(400, "The request has no Host header.")
        connection: HttpConnection = scope["state"]["connection"]
        if not self._any_name and host != connection.known_as:
            self._check_name(host.decode("latin-1").lower(), scope["server"][0])
            connection.known_as = host
        if origin:
            return self._page(origin.decode("latin-1"), host.decode("latin-1").lower())
        if site in (b"cross-site", b"same-site") and not public:
            raise Problem(403, f"A page of another site asks for this: {_ADVICE}")
        return None

    def preflight(self, scope: Scope) -> Response | None:
        """The answer to a browser that asks what a page may do. None: it is no such question."""
        if scope["method"] != "OPTIONS":
            return None
        headers = dict(scope["headers"])
        if b"origin" not in headers or b"access-control-request-method" not in headers:
            return None
        page = self.judge(scope, public=False)
        answer = Response(None, 204, {"vary": "Origin, Access-Control-Request-Headers"})
        if page is None:
            return answer
        answer.headers.update(page.headers())
        answer.headers["access-control-allow-methods"] = _METHODS
        answer.headers["access-control-max-age"] = str(_MAX_AGE_SECONDS)
        wanted = headers.get(b"access-control-request-headers", b"").decode("latin-1")
        if _HEADER_NAMES.fullmatch(wanted):
            answer.headers["access-control-allow-headers"] = wanted
        if headers.get(b"access-control-request-private-network") == b"true":
            answer.headers["access-control-allow-private-network"] = "true"
        return answer

    def _page(self, origin: str, host: str) -> Page | None:
        """None: a page of this broker's own, whether or not a proxy before it speaks TLS."""
        lowered = origin.lower()
        if host and lowered in (f"http://{host}", f"https://{host}"):
            return None
        listed: tuple[str, ...] = self._settings["kbroker.http.cors.origins"]
        if lowered not in _ANYBODY and any(lowered == each.lower() for each in listed):
            return Page(origin, named=True)
        if "*" in listed or (lowered == "null" and "null" in listed):
            return Page(origin, named=False)
        raise Problem(403, f"Web pages of {origin[:200]} may not use this: {_ADVICE}")

    def _check_name(self, host: str, address: str) -> None:
        """``address``: of ours, that the name leads to."""
        name = host.partition(":")[0].rstrip(".")
        if not is_loopback(address) or host.startswith("[") or "." not in name or _ADDRESS.fullmatch(name):
            return
        if name.endswith(".localhost") or name in self._known_names():
            return
        raise Problem(
            403,
            f"Nothing here is known as {name[:200]}: anybody may have given that name to this machine's own "
            "address. If it is right, name it in kbroker.http.hosts.",
        )

    def _known_names(self) -> set[str]:
        settings = self._settings
        names = {each.host.lower() for each in settings.advertised_listeners.values()}
        names.update(each.lower() for each in settings["kbroker.http.hosts"])
        names.update(urlsplit(each).hostname or "" for each in settings["kbroker.http.cors.origins"])
        return names
