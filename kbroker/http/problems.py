"""What HTTP clients are told of failures: problem documents (RFC 9457) that say what is wrong and what to do.

Kafka's error codes become HTTP statuses here and nowhere else. A problem that stands for one carries its name
(`error`), its number (`errorCode`) and whether the same request may succeed later (`retriable`).
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from kbroker.errors import describe
from kbroker.protocol.errors import ErrorCode

MEDIA_TYPE = "application/problem+json"

_E = ErrorCode
_STATUSES: dict[ErrorCode, int] = {
    **dict.fromkeys(
        (
            _E.UNKNOWN_TOPIC_OR_PARTITION,
            _E.UNKNOWN_TOPIC_ID,
            _E.GROUP_ID_NOT_FOUND,
            _E.TRANSACTIONAL_ID_NOT_FOUND,
            _E.RESOURCE_NOT_FOUND,
        ),
        404,
    ),
    **dict.fromkeys(
        (
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            _E.SECURITY_DISABLED,
            _E.POLICY_VIOLATION,
            _E.TOPIC_DELETION_DISABLED,
        ),
        403,
    ),
    **dict.fromkeys(
        (
            _E.TOPIC_ALREADY_EXISTS,
            _E.DUPLICATE_RESOURCE,
            _E.NON_EMPTY_GROUP,
            _E.GROUP_SUBSCRIBED_TO_TOPIC,
            _E.ILLEGAL_GENERATION,
            _E.UNKNOWN_MEMBER_ID,
            _E.FENCED_MEMBER_EPOCH,
            _E.FENCED_INSTANCE_ID,
            _E.STALE_MEMBER_EPOCH,
            _E.UNRELEASED_INSTANCE_ID,
            _E.INCONSISTENT_GROUP_PROTOCOL,
            _E.REBALANCE_IN_PROGRESS,
            _E.INVALID_PRODUCER_EPOCH,
            _E.PRODUCER_FENCED,
            _E.INVALID_TXN_STATE,
            _E.CONCURRENT_TRANSACTIONS,
            _E.TRANSACTION_ABORTABLE,
            _E.OUT_OF_ORDER_SEQUENCE_NUMBER,
            _E.INVALID_PRODUCER_ID_MAPPING,
            _E.UNKNOWN_PRODUCER_ID,
        ),
        409,
    ),
    **dict.fromkeys((_E.MESSAGE_TOO_LARGE, _E.RECORD_LIST_TOO_LARGE, _E.OFFSET_METADATA_TOO_LARGE), 413),
    _E.OFFSET_OUT_OF_RANGE: 416,
    **dict.fromkeys((_E.INVALID_RECORD, _E.INVALID_TIMESTAMP), 422),
    **dict.fromkeys((_E.THROTTLING_QUOTA_EXCEEDED, _E.GROUP_MAX_SIZE_REACHED), 429),
    _E.UNSUPPORTED_VERSION: 501,
    **dict.fromkeys(
        (
            _E.LEADER_NOT_AVAILABLE,
            _E.NOT_LEADER_OR_FOLLOWER,
            _E.COORDINATOR_LOAD_IN_PROGRESS,
            _E.COORDINATOR_NOT_AVAILABLE,
            _E.NOT_COORDINATOR,
            _E.NOT_ENOUGH_REPLICAS,
            _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            _E.KAFKA_STORAGE_ERROR,
            _E.BROKER_NOT_AVAILABLE,
        ),
        503,
    ),
    _E.REQUEST_TIMED_OUT: 504,
    _E.UNKNOWN_SERVER_ERROR: 500,
}


_ADVICE: dict[ErrorCode, str] = {  # where the failure alone does not say what to do
    _E.UNKNOWN_TOPIC_OR_PARTITION: "GET /topics lists what there is, POST /topics creates one.",
    _E.GROUP_ID_NOT_FOUND: "GET /groups lists what there is.",
    _E.SECURITY_DISABLED: "The broker's setting authorizer.class.name names one.",
    _E.OUT_OF_ORDER_SEQUENCE_NUMBER: "Send first what is missing in between, or begin with another origin.",
}


class Problem(Exception):
    """What ends a request. ``more``: further members of the document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        title: str | None = None,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title or HTTPStatus(status).phrase
        self.detail = detail
        self.headers = headers or {}
        self.more = more

    def document(self, instance: str | None = None) -> dict[str, Any]:
        document = {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail}
        if instance is not None:
            document["instance"] = instance
        return document | self.more

    def encoded(self, instance: str | None = None) -> bytes:
        return json.dumps(self.document(instance), ensure_ascii=False).encode(errors="replace")


def status_of(code: ErrorCode) -> int:
    """What is no fault of the broker's, and nothing else, is the request's."""
    return _STATUSES.get(code, 400)


def problem_of(error: BaseException) -> Problem:
    """The problem that stands for a failure; an unforeseen one leaves a traceback in the log."""
    if isinstance(error, Problem):
        return error
    code, message = describe(error)
    return problem_of_code(code, message)


def problem_of_code(code: ErrorCode, message: str | None = None, **more: Any) -> Problem:
    detail = _sentence(message or code.message)
    if code in _ADVICE and not detail.endswith("was deleted."):
        detail = f"{detail} {_ADVICE[code]}"
    if code.retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        detail = f"{detail.rstrip('.')}. The same request may succeed if it is sent again."
    return Problem(
        status_of(code), detail, error=code.name, errorCode=int(code), retriable=code.retriable, **more
    )


def _sentence(text: str) -> str:
    """With a capital, unless it begins with a name such as a config's, and a full stop."""
    if text.split(" ", 1)[0].isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."
