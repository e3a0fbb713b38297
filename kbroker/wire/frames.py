"""One request or response frame, explained: header, fields, and what is wrong with it.

Whatever the bytes, explaining them raises nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import (
    API_VERSIONS_KEY,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import API_NAMES, request_type, response_type
from kbroker.wire.tree import Node, Problem, read

REQUEST: Final = "request"
RESPONSE: Final = "response"
LEAST_REQUEST: Final = 8  # bytes: API key, version, correlation id

# APIs between brokers, which are not declared: known by name only.
OTHER_APIS: Final = {
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    56: "AlterPartition",
    58: "Envelope",
    59: "FetchSnapshot",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    67: "AllocateProducerIds",
    70: "ControllerRegistration",
    73: "AssignReplicasToDirs",
    82: "UpdateRaftVoter",
}


@dataclass(slots=True)
class Explained:
    kind: str
    frame: bytes  # without its length; of a large one only the beginning
    size: int  # of the whole frame
    api_key: int | None = None
    version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    body: Node | None = None
    problem: Problem | None = None
    note: str | None = None
    is_shortened: bool = False  # long records are cut in `frame`, and all other fields are there

    @property
    def api(self) -> str:
        return api_name(self.api_key)

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning of the frame is here."""
        return len(self.frame) < self.size


def api_name(api_key: int | None) -> str:
    if api_key is None:
        return "?"
    return API_NAMES.get(api_key) or OTHER_APIS.get(api_key) or f"ApiKey({api_key})"


def explain_request(frame: bytes, size: int | None = None) -> Explained:
    """`frame`: without its length; of one of `size` bytes perhaps only the beginning."""
    explained = Explained(REQUEST, frame, len(frame) if size is None else size)
    start, _, problem = read(RequestHeader, 0, frame)
    if problem is not None:
        return _with_problem(explained, problem)
    key = explained.api_key = start.get("request_api_key")
    version = explained.version = start.get("request_api_version")
    explained.correlation_id = start.get("correlation_id")
    header_version = request_header_version(key, version) if key in API_NAMES else 1
    header, position, problem = read(RequestHeader, header_version, frame)
    explained.client_id = header.get("client_id")
    unknown = _unknown(key, version, REQUEST)
    if unknown is not None:
        return _with_problem(explained, unknown)
    if problem is not None:
        return _with_problem(explained, problem)
    return _read_body(explained, request_type(key), version, position)


def explain_response(frame: bytes, api_key: int, version: int, size: int | None = None) -> Explained:
    """The response to a request of that API and version."""
    explained = Explained(RESPONSE, frame, len(frame) if size is None else size, api_key, version)
    start, _, problem = read(ResponseHeader, 0, frame)
    if problem is not None:
        return _with_problem(explained, problem)
    explained.correlation_id = start.get("correlation_id")
    if api_key == API_VERSIONS_KEY and frame[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
        explained.version = version = 0  # so that every client can read it
        explained.note = "in version 0, for a version that the broker does not have"
    unknown = _unknown(api_key, version, RESPONSE)
    if unknown is not None:
        return _with_problem(explained, unknown)
    _, position, problem = read(ResponseHeader, response_header_version(api_key, version), frame)
    if problem is not None:
        return _with_problem(explained, problem)
    return _read_body(explained, response_type(api_key), version, position)


def request_parts(api_key: int, version: int) -> list[tuple[type[Any], int]] | None:
    """Header and message of a request, with their versions; None, if they are not known here."""
    if _unknown(api_key, version, REQUEST) is not None:
        return None
    return [(RequestHeader, request_header_version(api_key, version)), (request_type(api_key), version)]


def response_parts(api_key: int, version: int) -> list[tuple[type[Any], int]] | None:
    if _unknown(api_key, version, RESPONSE) is not None:
        return None
    return [(ResponseHeader, response_header_version(api_key, version)), (response_type(api_key), version)]


def is_plausible_request(data: bytes | memoryview, size: int | None = None) -> bool:
    """Whether `data` begins as a request of a declared API and version does; `size`: of the whole frame."""
    data = bytes(data[:4096])
    size = len(data) if size is None else size
    if len(data) < LEAST_REQUEST or size < LEAST_REQUEST:
        return False
    key = int.from_bytes(data[:2], "big", signed=True)
    version = int.from_bytes(data[2:4], "big", signed=True)
    if key not in API_NAMES or _unknown(key, version, REQUEST) is not None:
        return False
    if len(data) < LEAST_REQUEST + 2:
        return size > len(data)
    length = int.from_bytes(data[8:10], "big", signed=True)
    if length < -1 or LEAST_REQUEST + 2 + max(length, 0) > size:
        return False
    client_id = data[10 : 10 + max(length, 0)]
    try:
        return client_id.decode().isprintable()
    except UnicodeDecodeError:
        return len(client_id) < length


def _unknown(key: int, version: int, kind: str) -> Problem | None:
    if key not in API_NAMES:
        named = f", {OTHER_APIS[key]}, is between brokers and" if key in OTHER_APIS else ""
        return Problem(
            0, "request_api_key" if kind == REQUEST else "", f"API key {key}{named} is not known here"
        )
    low, high = schema_of(request_type(key)).versions
    if not low <= version <= high:
        reason = f"{API_NAMES[key]} is known in versions {low} to {high}, not {version}"
        return Problem(2, "request_api_version" if kind == REQUEST else "", reason)
    return None


def _read_body(explained: Explained, cls: type, version: int, position: int) -> Explained:
    explained.body, end, problem = read(cls, version, explained.frame, position)
    if problem is None and end < len(explained.frame):
        problem = Problem(end, "", f"{len(explained.frame) - end} bytes follow the message")
    return explained if problem is None else _with_problem(explained, problem)


def _with_problem(explained: Explained, problem: Problem) -> Explained:
    """A frame of which the rest is not here is not to blame for ending early."""
    if not (explained.is_cut and problem.reason.startswith("the frame ends")):
        explained.problem = problem
    return explained
