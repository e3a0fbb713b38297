"""What endpoints that hand out records take from the query, and how they write records as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.http.endpoint import Parameter, Schema
from kbroker.http.json_records import Encoding
from kbroker.http.problems import Problem

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest

ISOLATIONS = {"read_uncommitted": False, "read_committed": True}
_ENCODINGS: Schema = {"type": "string", "enum": [each.value for each in Encoding]}
KEY_PARAMETER = Parameter("key", "How keys are written: text if not given.", _ENCODINGS)
VALUE_PARAMETER = Parameter("value", "How values are written: json if not given.", _ENCODINGS)
ISOLATION_PARAMETER = Parameter(
    "isolation",
    "read_uncommitted if not given; read_committed leaves out aborted records.",
    {"type": "string", "enum": [*ISOLATIONS]},
)


def limit(request: HttpRequest, name: str, default: int, least: int, most: int) -> int:
    """A number of the query, within its bounds."""
    value = request.query(name, int, default)
    if not least <= value <= most:
        raise Problem(400, f"{name} must be from {least} to {most}, not {value}.")
    return value


def limit_parameter(name: str, doc: str, default: int, least: int, most: int) -> Parameter:
    return Parameter(name, doc, {"type": "integer", "minimum": least, "maximum": most, "default": default})


def encodings(request: HttpRequest) -> tuple[Encoding, Encoding]:
    """Of keys and of values."""
    return _encoding(request, "key", Encoding.TEXT), _encoding(request, "value", Encoding.JSON)


def reads_committed(request: HttpRequest) -> bool:
    isolation = request.query("isolation", str, "read_uncommitted")
    if isolation not in ISOLATIONS:
        raise Problem(400, f"isolation must be one of {', '.join(ISOLATIONS)}.")
    return ISOLATIONS[isolation]


def _encoding(request: HttpRequest, name: str, default: Encoding) -> Encoding:
    text = request.query(name, str, default.value)
    try:
        return Encoding(text)
    except ValueError:
        raise Problem(400, f"The parameter {name} must be json, text or base64, not {text[:50]!r}.") from None
