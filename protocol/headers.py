"""The request and response headers, and which version of them an API version has.

The client id keeps its int16 length in the flexible header too. The response to ApiVersions has header
version 0 at every version, so that a client can read it before it knows what the broker speaks.
"""

from __future__ import annotations

from typing import Final

from kbroker.protocol.message import field, message, schema_of
from kbroker.protocol.messages import request_type, response_type
from kbroker.protocol.types import INT16, INT32, STRING

API_VERSIONS_KEY: Final = 18


@message(kind="header", versions=(0, 2), flexible=2)
class RequestHeader:
    request_api_key: int = field(INT16)
    request_api_version: int = field(INT16)
    correlation_id: int = field(INT32)
    client_id: str | None = field(STRING, since=1, nullable_since=1, flexible=False)


@message(kind="header", versions=(0, 1), flexible=1)
class ResponseHeader:
    correlation_id: int = field(INT32)


def request_header_version(api_key: int, api_version: int) -> int:
    """2 for a flexible request version, else 1. Works for versions nobody knows yet, too."""
    return 2 if schema_of(request_type(api_key)).is_flexible(api_version) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    if api_key == API_VERSIONS_KEY:
        return 0
    return 1 if schema_of(response_type(api_key)).is_flexible(api_version) else 0
