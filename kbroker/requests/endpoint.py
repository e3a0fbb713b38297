"""Endpoints: what it takes to decode, handle and answer the requests of one API at one version.

An endpoint is bound on the first request of its (api key, version): the API table names the modules of its
messages and of its handler, which are loaded then.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.protocol.headers import request_header_version, response_header_version
from kbroker.protocol.message import has_lists
from kbroker.protocol.messages import request_type, response_type
from kbroker.requests.answers import BadRequest
from kbroker.requests.apis import BY_KEY
from kbroker.requests.error_codes import Count, count_of
from kbroker.requests.traits import Traits

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.lanes import Lanes

_DEFAULT = Traits()


class Endpoint(NamedTuple):
    name: str
    version: int
    header_version: int
    flexible_response: bool
    request: type[Any]
    response: type[Any]
    handle: Callable[..., Any]
    refuse: Callable[..., Any] | None  # builds the answer for a request whose handler failed
    traits: Traits
    may_be_long: bool  # the answer has lists, which may be long
    lanes: Callable[[Broker], Lanes] | None  # for an API whose requests repeat
    count_errors: Count | None  # of an answer; None: it has no error codes


_endpoints: dict[tuple[int, int], Endpoint] = {}


def endpoint_of(api_key: int, version: int) -> Endpoint:
    """Raises BadRequest if there is none."""
    return _endpoints.get((api_key, version)) or _bind(api_key, version)


def _bind(api_key: int, version: int) -> Endpoint:
    api = BY_KEY.get(api_key)
    if api is None:
        raise BadRequest(f"unknown API key {api_key}")
    if not api.min_version <= version <= api.max_version:
        raise BadRequest(f"{api.name} version {version} is not supported")
    try:
        handler = importlib.import_module(f"kbroker.handlers.{api.module}")
        request, response = request_type(api_key), response_type(api_key)
    except OSError as error:  # no descriptor for it now; the next connection may be luckier
        raise BadRequest(f"{api.name} cannot be loaded: {error}") from error
    traits: Traits = getattr(handler, "TRAITS", _DEFAULT)
    endpoint = Endpoint(
        name=api.name,
        version=version,
        header_version=request_header_version(api_key, version),
        flexible_response=response_header_version(api_key, version) == 1,
        request=request,
        response=response,
        handle=handler.handle,
        refuse=getattr(handler, "refuse", None),
        traits=traits,
        may_be_long=not traits.bounded_answer and has_lists(response),
        lanes=getattr(handler, "lanes", None),
        count_errors=count_of(response),
    )
    _endpoints[api_key, version] = endpoint
    return endpoint
