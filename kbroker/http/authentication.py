"""Who sends a request: a user with a password, the bearer of a token, or whose certificate was shown.

Browsers cannot give WebSockets and event sources a header. A WebSocket may have the credentials among its
subprotocols, `bearer.TOKEN` or `basic.BASE64URL` beside `kbroker`, which is the one that is answered; it and
an event source may have a token in the query, as `access_token` (RFC 6750). Neither is ever logged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.authentication.credentials import BASIC, BEARER, LoginRefused
from kbroker.http.endpoint import WEBSOCKET
from kbroker.http.problems import Problem
from kbroker.http.waiting import unless_closed
from kbroker.network.awaiting import settled
from kbroker.pending import Pending
from kbroker.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kbroker.authentication.credentials import RequestLogins
    from kbroker.http.endpoint import Endpoint
    from kbroker.http.request import HttpRequest

SUBPROTOCOL = "kbroker"
EVENT_STREAM = "text/event-stream"
_CHALLENGES = {BASIC: 'Basic realm="kbroker", charset="UTF-8"', BEARER: 'Bearer realm="kbroker"'}
_INVALID_TOKEN = 'Bearer realm="kbroker", error="invalid_token"'


async def authenticated(
    request: HttpRequest, endpoint: Endpoint, logins: RequestLogins | None, *, from_anywhere: bool
) -> Principal:
    """Raises Problem. ``from_anywhere``: asked by a web page of an origin that is not named: what a browser
    adds by itself does not count.
    """
    connection = request.connection
    if logins is None or endpoint.public:
        if from_anywhere and connection.principal != ANONYMOUS:
            raise _by_the_browser("A certificate")
        return connection.principal
    authorization = _authorization(request, endpoint)
    if authorization is None:
        raise _unknown(logins)
    if from_anywhere and authorization[:6].lower() == "basic ":
        raise _by_the_browser("A password")
    try:
        identity = logins.identify(authorization, connection.peer_host)
        if isinstance(identity, Pending):
            identity = await unless_closed(request, settled(identity))
    except LoginRefused as refusal:
        raise _refused(refusal, logins) from None
    request.identity = identity
    connection.authenticated = True
    return identity.principal


def on_session_end(request: HttpRequest, on_end: Callable[[str], None]) -> Callable[[], None]:
    """For what lasts. ``on_end(reason)`` is called once its caller has to say anew who they are: a token has
    expired, connections.max.reauth.ms is over, the password was changed. What comes back calls it off.

    To be called before anything is waited for.
    """
    if request.identity is None or request.logins is None:
        return lambda: None
    return request.logins.watch(request.identity, on_end)


def _authorization(request: HttpRequest, endpoint: Endpoint) -> str | None:
    given: str | None = request.headers.get("authorization")
    if given is not None:
        return given
    socket = endpoint.method == WEBSOCKET
    if socket:
        for protocol in request.scope["subprotocols"]:
            scheme, dot, credentials = protocol.partition(".")
            if dot and scheme == "bearer":
                return f"{BEARER} {credentials}"
            if dot and scheme == "basic":
                return f"{BASIC} {_base64(credentials)}"
    if socket or EVENT_STREAM in request.headers.get("accept", ""):
        token: str | None = request.query("access_token", str)
        if token is not None:
            return f"{BEARER} {token}"
    return None


def _base64(text: str) -> str:
    """Of base64url, in which subprotocols have to be: they are tokens of HTTP."""
    return text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)


def _unknown(logins: RequestLogins) -> Problem:
    schemes = logins.schemes
    if not schemes:
        return Problem(
            403,
            "Nobody can log in by HTTP here: without TLS a password is taken where PLAIN is enabled, and a "
            "token where OAUTHBEARER is (listener.name.http.sasl.enabled.mechanisms).",
        )
    return Problem(
        401,
        f"Say who you are, by an Authorization header with {' or '.join(schemes)}.",
        headers={"www-authenticate": ", ".join(_CHALLENGES[scheme] for scheme in schemes)},
    )


def _refused(refusal: LoginRefused, logins: RequestLogins) -> Problem:
    if refusal.busy:
        return Problem(429, str(refusal), headers={"retry-after": "1"})
    problem = _unknown(logins)
    problem.detail = f"{refusal} {problem.detail}" if refusal.scheme is None else str(refusal)
    if refusal.scheme == BEARER:
        challenges = problem.headers["www-authenticate"]
        problem.headers["www-authenticate"] = challenges.replace(_CHALLENGES[BEARER], _INVALID_TOKEN)
    return problem


def _by_the_browser(what: str) -> Problem:
    return Problem(
        403,
        f"{what} does not count for web pages of all origins: name this one in kbroker.http.cors.origins.",
    )
