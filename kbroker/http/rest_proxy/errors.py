"""Failures in the form of Confluent's REST Proxy: a status, and a document with a code and a message.

Codes of five digits begin with the status that they come with; one of three digits is the status itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kbroker.errors import describe
from kbroker.http.answers import json_answer
from kbroker.http.exchange import ClientGone
from kbroker.http.problems import Problem, status_of
from kbroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

    Handle = Callable[[HttpRequest], Awaitable[Response]]

BAD_REQUEST: Final = 40002
UNAUTHENTICATED: Final = 40101
UNAUTHORIZED: Final = 40301
TOPIC_NOT_FOUND: Final = 40401
PARTITION_NOT_FOUND: Final = 40402
UNKNOWN_TOPIC_PARTITION: Final = 40403
INVALID_PAYLOAD: Final = 42206
INVALID_BATCH: Final = 42208
TOO_MANY_REQUESTS: Final = 42901
KAFKA_ERROR: Final = 50002
RETRIABLE_KAFKA_ERROR: Final = 50003
BROKER_NOT_AVAILABLE: Final = 50302

_E = ErrorCode
_CODES: Final[dict[ErrorCode, int]] = {
    **dict.fromkeys(
        (
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ),
        UNAUTHORIZED,
    ),
    _E.UNKNOWN_TOPIC_OR_PARTITION: UNKNOWN_TOPIC_PARTITION,
    _E.UNKNOWN_TOPIC_ID: UNKNOWN_TOPIC_PARTITION,
    _E.RESOURCE_NOT_FOUND: 404,
    _E.GROUP_ID_NOT_FOUND: 404,
    _E.MESSAGE_TOO_LARGE: 413,
    _E.RECORD_LIST_TOO_LARGE: 413,
    _E.THROTTLING_QUOTA_EXCEEDED: TOO_MANY_REQUESTS,
    _E.BROKER_NOT_AVAILABLE: BROKER_NOT_AVAILABLE,
    _E.UNKNOWN_SERVER_ERROR: KAFKA_ERROR,
}

_PROBLEMS: Final = {401: UNAUTHENTICATED, 403: UNAUTHORIZED, 429: TOO_MANY_REQUESTS}


class RestError(Exception):
    """What ends a request, or fails one record of it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        return self.code if self.code < 1000 else self.code // 100

    def document(self) -> dict[str, int | str]:
        return {"error_code": self.code, "message": self.message}


def rest_error(error: BaseException) -> RestError:
    """What stands for a failure; an unforeseen one leaves a traceback in the log."""
    if isinstance(error, RestError):
        return error
    if isinstance(error, Problem):
        return RestError(_PROBLEMS.get(error.status, error.status), error.detail)
    code, message = describe(error)
    return RestError(_code_of(code), message or code.message)


def _code_of(code: ErrorCode) -> int:
    known = _CODES.get(code)
    if known is not None:
        return known
    if code.retriable:
        return RETRIABLE_KAFKA_ERROR
    return BAD_REQUEST if status_of(code) < 500 else KAFKA_ERROR


def refusal(error: BaseException) -> Response:
    failure = rest_error(error)
    headers = error.headers if isinstance(error, Problem) else None
    return json_answer(failure.document(), failure.status, headers)


def in_confluents_form(handle: Handle) -> Handle:
    """The same endpoint, whose failures have this form."""

    async def guarded(request: HttpRequest) -> Response:
        try:
            return await handle(request)
        except ClientGone:
            raise
        except Exception as error:
            return refusal(error)

    return guarded
