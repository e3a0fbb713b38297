"""From a request to its answer: route, from where and who, quotas, endpoint, answer. All requests pass here.

An answer that is sent before its request has ended closes the connection: what follows would be read in vain.
Of a request the log tells its path, at level debug: never its query, its headers or its body.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Sequence
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

from kbroker.authentication.credentials import RequestLogins
from kbroker.http.answers import Response
from kbroker.http.at_once import in_a_task
from kbroker.http.authentication import SUBPROTOCOL, authenticated
from kbroker.http.endpoint import WEBSOCKET, Endpoint
from kbroker.http.exchange import ClientGone
from kbroker.http.origins import Origins, Page
from kbroker.http.problems import MEDIA_TYPE, Problem, problem_of
from kbroker.http.quotas import HttpQuotas, Timed, retry_after
from kbroker.http.request import HttpCaller, HttpRequest
from kbroker.http.rest_proxy.errors import refusal
from kbroker.http.routing import Router
from kbroker.http.table import REST_PROXY_V2_CONSUMERS, REST_PROXY_V2_MEDIA, REST_PROXY_V3
from kbroker.quotas.entities import CONSUMER_BYTE_RATE

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from kbroker.authentication.logins import ListenerLogins
    from kbroker.broker import Broker
    from kbroker.config.listeners import Listener
    from kbroker.http.connection import HttpConnection
    from kbroker.http.exchange import Exchange

logger = logging.getLogger("kbroker.http")

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_MOST_PATH = 500  # of the log
_POLICY_VIOLATION, _INTERNAL_ERROR = 1008, 1011  # of WebSocket


class Application:
    """The ASGI application of one broker."""

    def __init__(
        self,
        broker: Broker,
        logins: ListenerLogins | None,
        served: Iterable[tuple[str, Endpoint]],
        listener: Listener | None,
    ) -> None:
        """``logins``: of a listener that asks who comes. ``served``: endpoints, with their whole paths."""
        self.broker = broker
        self.logins = None if logins is None else RequestLogins(logins)
        self._origins = Origins(
            broker.settings, any_name=listener is None or listener.uses_tls or listener.uses_sasl
        )
        self._quotas = HttpQuotas()
        self._router = Router(served)
        self._names: dict[Endpoint, tuple[str, ...]] = {}
        self._prefix = os.urandom(4).hex()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """For WebSockets."""
        if scope["type"] == "websocket":
            await self._speak(scope, receive, send)

    async def serve(self, exchange: Exchange) -> None:
        scope = exchange.scope
        request_id = self._request_id(scope)
        request: HttpRequest | None = None
        page: Page | None = None
        path_told = ""
        began = perf_counter()
        try:
            try:
                answer = self._origins.preflight(scope) if scope["method"] == "OPTIONS" else None
                if answer is None:
                    endpoint, path = self._route(scope, scope["method"])
                    path_told = endpoint.path
                    page = self._origins.judge(scope, public=endpoint.public)
                    request = self._request(scope, exchange.receive, path, request_id)
                    if not endpoint.at_once:
                        await in_a_task()
                    await self._identify(request, endpoint, page)
                    answer = await self._handled(request, endpoint)
            except ClientGone:
                return
            except Exception as error:
                answer = refusal(error) if _is_rest_proxys(scope) else _refused(error, request_id)
                if answer.status_code == 500:
                    text = "%s %s failed"
                    logger.error(text, scope["method"], _path(scope), extra=_who(scope, request_id))
            self._complete(answer, request_id, page, request)
            if not exchange.came_whole:
                exchange.keep_alive = False
                scope["state"]["connection"].answered_early = True
            if logger.isEnabledFor(logging.DEBUG):
                _log(scope, request_id, request, answer.status_code)
            self._count(scope["method"], path_told, answer.status_code, began)
            await self._send(answer, exchange, request)
        except ClientGone:
            pass
        except Exception:
            text = "%s %s could not be answered"
            logger.exception(text, scope["method"], _path(scope), extra=_who(scope, request_id))
        finally:
            exchange.give_up()
            if request is not None:
                request.release()

    async def _speak(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.websockets import WebSocket, WebSocketState  # loaded by who upgrades

        request_id = self._request_id(scope)
        request: HttpRequest | None = None
        page: Page | None = None

        async def answer(message: Message) -> None:
            if message["type"] == "websocket.accept":
                if message.get("subprotocol") is None and SUBPROTOCOL in scope["subprotocols"]:
                    message["subprotocol"] = SUBPROTOCOL
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        websocket = WebSocket(scope, receive, answer)
        began = perf_counter()
        try:
            endpoint, path = self._route(scope, WEBSOCKET)
            page = self._origins.judge(scope, public=False)
            request = self._request(scope, receive, path, request_id)
            request.scope["method"] = "GET"
            await self._identify(request, endpoint, page)
            if endpoint.quota == CONSUMER_BYTE_RATE:
                send = _counted(send, request)
            self._count("GET", endpoint.path, 101, began)
            if logger.isEnabledFor(logging.DEBUG):
                _log(scope, request_id, request, 101)
            assert endpoint.socket is not None
            await endpoint.socket(websocket, request)
        except ClientGone:
            pass
        except Exception as error:
            problem = problem_of(error)
            if websocket.application_state is WebSocketState.CONNECTING:
                denial = _refused(problem, request_id)
                self._complete(denial, request_id, page, request)
                await websocket.send_denial_response(denial)  # type: ignore[arg-type]
            elif websocket.application_state is WebSocketState.CONNECTED:
                code = _INTERNAL_ERROR if problem.status >= 500 else _POLICY_VIOLATION
                await websocket.close(code, problem.detail[:100])
        finally:
            if request is not None:
                request.release()

    # steps

    def _route(self, scope: Scope, method: str) -> tuple[Endpoint, dict[str, str]]:
        found = self._router.find(scope["raw_path"], method)
        if found is None:
            raise Problem(
                404, "There is nothing at this path: /openapi.json lists what there is.", path=scope["path"]
            )
        endpoint = _chosen(found.endpoints, scope)
        if endpoint is None:
            allowed = sorted({"GET" if each == WEBSOCKET else each for each in found.allowed})
            if method == "GET" and WEBSOCKET in found.allowed and not found.endpoints:
                raise Problem(
                    426, "This path is a WebSocket: open it as one.", headers={"upgrade": "websocket"}
                )
            raise Problem(
                405,
                f"This path answers {', '.join(allowed)}, not {method}.",
                headers={"allow": ", ".join(allowed)},
            )
        names = self._names.get(endpoint)
        if names is None:
            names = self._names[endpoint] = tuple(re.findall(r"{(\w+)}", endpoint.path))
        return endpoint, dict(zip(names, found.values, strict=True))

    def _request(self, scope: Scope, receive: Receive, path: dict[str, str], request_id: str) -> HttpRequest:
        connection: HttpConnection = scope["state"]["connection"]
        return HttpRequest(
            scope, receive, self.broker, connection, path, request_id, self.logins, self._quotas
        )

    async def _identify(self, request: HttpRequest, endpoint: Endpoint, page: Page | None) -> None:
        """Who asks, and whether they may now."""
        from_anywhere = page is not None and not page.named
        principal = await authenticated(request, endpoint, self.logins, from_anywhere=from_anywhere)
        request.quota = endpoint.quota
        request.caller = HttpCaller(
            principal,
            request.connection.peer_host,
            f"{request.method} {endpoint.path}",
            request.headers.get("x-client-id", ""),
        )
        usage = request.usage
        if usage is not None and not endpoint.public:
            await usage.admit()

    async def _handled(self, request: HttpRequest, endpoint: Endpoint) -> Response:
        usage = request.usage
        if usage is not None and usage.times:
            return await Timed(endpoint.handle(request), usage)
        return await endpoint.handle(request)

    async def _send(self, answer: Response, exchange: Exchange, request: HttpRequest | None) -> None:
        reading = request if request is not None and request.quota == CONSUMER_BYTE_RATE else None
        if type(answer) is Response:
            if reading is not None and (usage := reading.usage) is not None:
                usage.consumed(len(answer.body))
            await exchange.answer(answer.status_code, answer.headers, answer.body)
        else:
            send = exchange.send if reading is None else _counted(exchange.send, reading)
            await answer(exchange.scope, exchange.receive, send)

    def _complete(
        self, answer: Response, request_id: str, page: Page | None, request: HttpRequest | None
    ) -> None:
        """The headers that all answers have."""
        headers = answer.headers
        headers["x-request-id"] = request_id
        if page is not None:
            headers.update(page.headers())
        if self._origins.vary:
            headers["vary"] = f"{headers['vary']}, Origin" if "vary" in headers else "Origin"
        if answer.status_code == 429 and request is not None and request.caller is not None:
            throttle = request.caller.throttle
            if throttle is not None and throttle.mutation_wait_ms:
                headers.setdefault("retry-after", retry_after(throttle.mutation_wait_ms))

    def _count(self, method: str, path: str, status: int, began: float) -> None:
        """``path``: of the endpoint; what clients make up is no label of a metric."""
        traffic = self.broker.traffic
        if not path:
            method = ""
        traffic.http_requests[method, path, status] += 1
        traffic.http_times[method, path].add(perf_counter() - began)

    def _request_id(self, scope: Scope) -> str:
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                given = value.decode("latin-1")
                if _REQUEST_ID.fullmatch(given):
                    return str(given)
        return f"{self._prefix}-{next(self._numbers)}"


def _chosen(alike: Sequence[Endpoint], scope: Scope) -> Endpoint | None:
    """The first whose media type the request has, if it asks for one."""
    for endpoint in alike:
        if endpoint.media is None:
            return endpoint
        wanted = endpoint.media.encode()
        for name, value in scope["headers"]:
            if name in (b"content-type", b"accept") and wanted in value:
                return endpoint
    return None


def _counted(send: Send, request: HttpRequest) -> Send:
    """What is sent of what was read counts for the caller's quota, and waits for it."""

    async def counted(message: Message) -> None:
        await send(message)
        usage = request.usage
        if usage is None:
            return
        sent = message.get("body") or message.get("bytes") or message.get("text") or b""
        usage.consumed(len(sent))
        await usage.pace(CONSUMER_BYTE_RATE)

    return counted


def _log(scope: Scope, request_id: str, request: HttpRequest | None, status: int) -> None:
    caller = None if request is None else request.caller
    logger.debug(
        "%s %s %s %s %d",
        scope["state"]["connection"].peer_host,
        "-" if caller is None else caller.principal,
        scope["method"],
        _path(scope),
        status,
        extra=_who(scope, request_id),
    )


def _who(scope: Scope, request_id: str) -> dict[str, object]:
    """For the log."""
    connection: HttpConnection = scope["state"]["connection"]
    return {"connection": connection.number, "peer": connection.peer_host, "request": request_id}


def _path(scope: Scope) -> str:
    """As it came, in which there is no line break."""
    return str(scope["raw_path"].decode("latin-1")[:_MOST_PATH])


def _is_rest_proxys(scope: Scope) -> bool:
    """Whether failures are told in the form of Confluent's REST Proxy."""
    if scope["path"].startswith((REST_PROXY_V3, REST_PROXY_V2_CONSUMERS)):
        return True
    return any(
        name in (b"content-type", b"accept") and REST_PROXY_V2_MEDIA.encode() in value
        for name, value in scope["headers"]
    )


def _refused(error: Exception, request_id: str) -> Response:
    problem = problem_of(error)
    return Response(
        problem.encoded(f"urn:kbroker:request:{request_id}"), problem.status, problem.headers, MEDIA_TYPE
    )
