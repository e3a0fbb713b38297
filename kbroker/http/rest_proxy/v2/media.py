"""The media types of version 2, and how requests that are meant for it are told from others.

The plain API has some of the same paths. There a request is version 2's if its Content-Type or its Accept
names a type of Kafka's (``application/vnd.kafka…``), and the plain API's if not. Paths below /consumers are
version 2's alone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kbroker.http.answers import Response, encoded
from kbroker.http.endpoint import JSON
from kbroker.http.rest_proxy.errors import RestError
from kbroker.http.table import REST_PROXY_V2_MEDIA

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest

ANY: Final = REST_PROXY_V2_MEDIA
V2: Final = "application/vnd.kafka.v2+json"
_UNSUPPORTED_MEDIA_TYPE: Final = 415
_NOT_ACCEPTABLE: Final = 406
_NOT_IMPLEMENTED: Final = 501


class Format(StrEnum):
    """How keys and values stand in the JSON of a request or an answer."""

    BINARY = "binary"
    JSON = "json"
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @property
    def media_type(self) -> str:
        return f"application/vnd.kafka.{self}.v2+json"

    def without_schema(self) -> Format:
        """The same. RestError: it needs a schema."""
        if self in (Format.BINARY, Format.JSON):
            return self
        raise RestError(
            _NOT_IMPLEMENTED,
            f"The format {self} needs a Schema Registry, and there is none yet: use binary or json.",
        )


_FORMATS: Final = {each.media_type: each for each in Format}


def given_format(request: HttpRequest) -> Format:
    """Of the records in the body, by its Content-Type; without a format they are binary."""
    media_type = _content_type(request)
    if media_type == V2:
        return Format.BINARY
    if media_type not in _FORMATS:
        raise _unsupported(media_type, f"{Format.JSON.media_type} or {Format.BINARY.media_type}")
    return _FORMATS[media_type].without_schema()


def check_content_type(request: HttpRequest) -> None:
    """Of a body without records."""
    media_type = _content_type(request)
    if media_type and media_type not in (V2, JSON) and media_type not in _FORMATS:
        raise _unsupported(media_type, V2)


def wanted_format(request: HttpRequest, own: Format) -> Format | None:
    """The format that the client accepts; its consumer's own, if it does not say; None: another."""
    if request.accepts(own.media_type, V2, JSON) is not None:
        return own
    others = [each.media_type for each in Format if each is not own]
    if request.accepts(*others) is None:
        raise _not_acceptable(request)
    return None


def answer(request: HttpRequest, value: Any) -> Response:
    """Metadata, offsets and the like."""
    media_type = request.accepts(V2, JSON, *_FORMATS)
    if media_type is None:
        raise _not_acceptable(request)
    return Response(encoded(value), 200, None, JSON if media_type == JSON else V2)


def _content_type(request: HttpRequest) -> str:
    return str(request.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _unsupported(media_type: str, instead: str) -> RestError:
    said = f"not {media_type[:100]!r}" if media_type else "and it is missing"
    return RestError(_UNSUPPORTED_MEDIA_TYPE, f"The Content-Type must be {instead}, {said}.")


def _not_acceptable(request: HttpRequest) -> RestError:
    accept = request.headers.get("accept", "")
    return RestError(_NOT_ACCEPTABLE, f"This cannot be answered as {accept[:100]!r}, but as {V2}.")
