"""How calls end: gRPC's statuses, with what went wrong in their details.

Kafka's error codes become HTTP statuses in one place (http/problems.py); here those become gRPC's.
"""

from __future__ import annotations

import base64
from enum import IntEnum
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from kbroker.errors import describe
from kbroker.grpc.messages import message, ours
from kbroker.http.problems import Problem, status_of
from kbroker.protocol.errors import ErrorCode
from kbroker.storage.errors import UnexpectedOffset

DOMAIN: Final = "kbroker"
_MESSAGE_BYTES: Final = 1024
_DETAILS_BYTES: Final = 4096
_PRINTED: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
_ANY: Final = "type.googleapis.com/"


class Status(IntEnum):
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


_OF_HTTP: Final = {
    400: Status.INVALID_ARGUMENT,
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.NOT_FOUND,
    409: Status.ABORTED,
    413: Status.INVALID_ARGUMENT,
    416: Status.OUT_OF_RANGE,
    422: Status.INVALID_ARGUMENT,
    429: Status.RESOURCE_EXHAUSTED,
    500: Status.INTERNAL,
    501: Status.UNIMPLEMENTED,
    503: Status.UNAVAILABLE,
    504: Status.DEADLINE_EXCEEDED,
}
_OF_CODES: Final = {
    ErrorCode.TOPIC_ALREADY_EXISTS: Status.ALREADY_EXISTS,
    ErrorCode.DUPLICATE_RESOURCE: Status.ALREADY_EXISTS,
    ErrorCode.NON_EMPTY_GROUP: Status.FAILED_PRECONDITION,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: Status.FAILED_PRECONDITION,
    ErrorCode.TOPIC_DELETION_DISABLED: Status.FAILED_PRECONDITION,
    ErrorCode.SECURITY_DISABLED: Status.FAILED_PRECONDITION,
}


class GrpcError(Exception):
    """What ends a call."""

    def __init__(
        self,
        status: Status,
        text: str,
        *,
        code: ErrorCode | None = None,
        retry_ms: int | None = None,
        **more: object,
    ) -> None:
        """``code``: Kafka's. ``more``: what a program may want to know, too."""
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.retry_ms = retry_ms
        self.more = more

    def details(self) -> bytes:
        """A google.rpc.Status."""
        found: list[tuple[str, Any]] = []
        if self.code is not None or self.more:
            metadata = {name: str(value) for name, value in self.more.items()}
            if self.code is not None:
                metadata |= {"error_code": str(int(self.code)), "retriable": str(self.code.retriable).lower()}
            reason = self.status.name if self.code is None else self.code.name
            info = _message("google.rpc.ErrorInfo")(reason=reason, domain=DOMAIN, metadata=metadata)
            found.append(("google.rpc.ErrorInfo", info))
        if self.retry_ms is not None:
            seconds, rest_ms = divmod(self.retry_ms, 1000)
            retry = _message("google.rpc.RetryInfo")()
            retry.retry_delay.seconds, retry.retry_delay.nanos = seconds, rest_ms * 1_000_000
            found.append(("google.rpc.RetryInfo", retry))
        if not found:
            return b""
        status = _message("google.rpc.Status")(code=self.status, message=self.text[:_MESSAGE_BYTES])
        for name, detail in found:
            status.details.add(type_url=_ANY + name, value=detail.SerializeToString())
        return bytes(status.SerializeToString())

    def trailers(self) -> list[tuple[str, str]]:
        """What it adds to the trailers of a call, behind its status."""
        trailers = [("grpc-message", quote(self.text[:_MESSAGE_BYTES], safe=_PRINTED, errors="replace"))]
        details = self.details()
        if 0 < len(details) <= _DETAILS_BYTES:
            trailers.append(("grpc-status-details-bin", base64.b64encode(details).decode().rstrip("=")))
        return trailers


_message = cache(message)


def grpc_error(error: BaseException) -> GrpcError:
    """What stands for a failure; an unforeseen one leaves a traceback in the log."""
    if isinstance(error, GrpcError):
        return error
    if isinstance(error, Problem):
        return GrpcError(
            _OF_HTTP.get(error.status, Status.UNKNOWN), error.detail, retry_ms=error.more.get("retryAfterMs")
        )
    if isinstance(error, UnexpectedOffset):
        return GrpcError(
            Status.ABORTED,
            f"The next offset is {error.log_end_offset}: somebody was faster. Nothing is written; read what "
            "is new, and try again with that offset.",
            next_offset=error.log_end_offset,
        )
    code, text = describe(error)
    return GrpcError(_of_code(code), text or code.message, code=code)


def kafka_error(error: BaseException) -> Any:
    """The same as a message, for what fails without the call failing."""
    if isinstance(error, GrpcError):
        code = error.code or ErrorCode.INVALID_REQUEST
        text = error.text
    elif isinstance(error, UnexpectedOffset):
        code, text = ErrorCode.INVALID_REQUEST, grpc_error(error).text
    else:
        code, told = describe(error)
        text = told or code.message
    return ours("Error")(name=code.name, code=int(code), message=text, retriable=code.retriable)


def _of_code(code: ErrorCode) -> Status:
    return _OF_CODES.get(code) or _OF_HTTP[status_of(code)]
