"""Transactions over several requests: begun, committed or aborted, listed. What is done in them:
transaction_work.py.

A transaction's id is its transactional id, producer id and epoch (`orders-1:1007:3`). So a client that was
fenced works on the one that it began, which is over, and never on its successor's. Colons and slashes of a
transactional id may stand in the path as they are encoded (`%2F`).

A request that is not well-formed (400) changes nothing. Any other that fails aborts the transaction, so that
a commit is a commit of everything; its problem document says so, and the transaction's state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from kbroker.coordinators.transactions.transaction import TransactionState
from kbroker.errors import describe as described_error
from kbroker.http import idempotency
from kbroker.http.answers import json_answer
from kbroker.http.endpoint import (
    INTEGER,
    STRING,
    Answer,
    Endpoint,
    Parameter,
    Schema,
    json_answer_of,
    json_body,
)
from kbroker.http.members import Members
from kbroker.http.paging import LIMIT, NEXT, limit_of
from kbroker.http.problems import Problem, problem_of, status_of
from kbroker.http.turns import in_turns
from kbroker.network.awaiting import settled
from kbroker.operations.transactions.describing import list_transactions
from kbroker.operations.transactions.errors import OnlyAbort, TransactionOver
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.operations.transactions.describing import DescribedTransaction
    from kbroker.operations.transactions.registry import OpenTransactions

T = TypeVar("T")

_LONGEST_ID = 500  # of a transactional id, in bytes


def transactions_of(request: HttpRequest) -> OpenTransactions:
    return request.broker.publishing.transactions


# begin


async def begin(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _begin(request))


async def _begin(request: HttpRequest) -> Response:
    members = Members(await request.json() if await request.body() else {})
    members.only("transactionalId", "timeoutMs")
    transactional_id = members.optional_text("transactionalId")
    if transactional_id is not None and not 1 <= _utf8_length(transactional_id) <= _LONGEST_ID:
        raise Problem(400, f"A transactional id has 1 to {_LONGEST_ID} bytes.")
    transaction = await settled(
        transactions_of(request).begin(
            request.resources, transactional_id, timeout_ms=members.optional_integer("timeoutMs")
        )
    )
    here = request.scope["raw_path"].decode("latin-1").rstrip("/")
    path = f"{here}/{quote(str(transaction.id), safe=':')}"
    shown = _shown(transaction.described(request.resources))
    return json_answer({**shown, "url": request.base_url + path}, 201, {"location": path})


def _utf8_length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Problem(400, "The transactional id has half of a surrogate pair.") from None


# its end


async def commit(request: HttpRequest) -> Response:
    return await _end(request, transactions_of(request).commit)


async def abort(request: HttpRequest) -> Response:
    return await _end(request, transactions_of(request).abort)


async def _end(request: HttpRequest, end: Callable[..., Pending[None] | None]) -> Response:
    await request.body()
    await told(request, lambda: end(request.resources, request.path["transaction"]))
    return json_answer(_described(request))


async def told(request: HttpRequest, work: Callable[[], T | Pending[T]]) -> T:
    """What the work comes to. Its failure is told with what it made of the transaction."""
    try:
        return await settled(work())
    except Exception as error:
        raise _problem(request, error) from None


def _problem(request: HttpRequest, error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    try:
        transaction = _described(request)
    except ApiError:
        return problem_of(error)
    if transaction["state"] != "CompleteAbort" or isinstance(error, TransactionOver | OnlyAbort):
        problem = problem_of(error)
        problem.more["transaction"] = transaction
        return problem
    code, message = described_error(error)
    return Problem(
        status_of(code),
        f"{(message or code.message).rstrip('.')}. The transaction was aborted by that: begin a new one, and "
        "do all of it again.",
        error=code.name,
        errorCode=int(code),
        retriable=False,
        transaction=transaction,
    )


# looked at


async def list_all(request: HttpRequest) -> Response:
    parameters = request.parameters
    producer_ids = parameters.get("producerId", [])
    if not all(each.isascii() and each.isdecimal() and len(each) < 20 for each in producer_ids):
        raise Problem(400, "producerId must be a number.")
    page = await in_turns(
        request,
        list_transactions(
            request.resources,
            limit=limit_of(request),
            states=parameters.get("state", []),
            producer_ids=[int(each) for each in producer_ids],
            duration_ms=request.query("openForMs", int, -1),
            prefix=request.query("prefix", str, ""),
            after=request.query("after", str, ""),
        ),
    )
    return json_answer(
        {
            "transactions": [_listed(each) for each in page.transactions],
            "next": page.transactions[-1].id.transactional_id if page.more else None,
        }
    )


async def describe(request: HttpRequest) -> Response:
    return json_answer(_described(request))


def _described(request: HttpRequest) -> dict[str, Any]:
    return _shown(transactions_of(request).describe(request.resources, request.path["transaction"]))


def _listed(transaction: DescribedTransaction) -> dict[str, Any]:
    return {
        "id": str(transaction.id),
        "transactionalId": transaction.id.transactional_id,
        "producerId": transaction.id.producer.producer_id,
        "producerEpoch": transaction.id.producer.producer_epoch,
        "state": str(transaction.state),
        "timeoutMs": transaction.timeout_ms,
        "startMs": None if transaction.start_ms < 0 else transaction.start_ms,
    }


def _shown(transaction: DescribedTransaction) -> dict[str, Any]:
    return {
        **_listed(transaction),
        "topics": [{"topic": topic, "partitions": [*found]} for topic, found in transaction.topics.items()],
        "reason": transaction.reason or None,
    }


# what the document says

_STATES = [str(state) for state in TransactionState]
_LISTED: dict[str, Schema] = {
    "id": STRING,
    "transactionalId": STRING,
    "producerId": INTEGER,
    "producerEpoch": INTEGER,
    "state": {"type": "string", "enum": _STATES},
    "timeoutMs": INTEGER,
    "startMs": {"type": ["integer", "null"], "description": "Since when something is part of it."},
}
_TRANSACTION: Schema = {
    "title": "Transaction",
    "type": "object",
    "required": [*_LISTED, "topics", "reason"],
    "properties": {
        **_LISTED,
        "topics": {
            "type": "array",
            "description": "What takes part in it; __consumer_offsets stands for groups' offsets.",
            "items": {
                "type": "object",
                "required": ["topic", "partitions"],
                "properties": {"topic": STRING, "partitions": {"type": "array", "items": INTEGER}},
            },
        },
        "reason": {
            "type": ["string", "null"],
            "description": "Why it ended without its user, or why it can only be aborted.",
        },
        "url": STRING,
    },
}
_NEW: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "transactionalId": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": _LONGEST_ID,
            "description": "Whoever else uses it is fenced. Without one the broker makes one up.",
        },
        "timeoutMs": {
            "type": ["integer", "null"],
            "description": "After that it is aborted. A minute, if it is not given.",
        },
    },
}
_PAGE: Schema = {
    "type": "object",
    "required": ["transactions", "next"],
    "properties": {
        "transactions": {
            "type": "array",
            "items": {"type": "object", "required": [*_LISTED], "properties": _LISTED},
        },
        "next": NEXT,
    },
}
_IT = {200: json_answer_of("The transaction.", _TRANSACTION)}
OVER = {409: Answer("It is over, or was aborted because of this request: `transaction` says what it is now.")}
ID = Parameter("transaction", "The id that it was begun with.", where="path")
_PATH = "/transactions"
ONE = f"{_PATH}/{{transaction}}"
TAG = "transactions"

ENDPOINTS = (
    Endpoint(
        "POST",
        _PATH,
        begin,
        "Begin a transaction.",
        (idempotency.PARAMETER,),
        body=json_body(_NEW),
        answers={201: json_answer_of("The transaction, and where it is.", _TRANSACTION)},
        body_required=False,
        at_once=True,
        tag=TAG,
    ),
    Endpoint(
        "GET",
        _PATH,
        list_all,
        "List transactions, also those of Kafka's clients: the last of each transactional id.",
        (
            Parameter("state", "Only those in this state; may come several times."),
            Parameter("producerId", "Only this producer's; may come several times.", INTEGER),
            Parameter("openForMs", "Only what is open for longer than that.", INTEGER),
            Parameter("prefix", "Only transactional ids that begin like this."),
            Parameter("after", "Only transactional ids behind this one."),
            LIMIT,
        ),
        answers={200: json_answer_of("Transactions, sorted by transactional id.", _PAGE)},
        tag=TAG,
    ),
    Endpoint("GET", ONE, describe, "What is known of a transaction.", (ID,), answers=_IT | OVER, tag=TAG),
    Endpoint(
        "POST",
        f"{ONE}/commit",
        commit,
        "Commit it. Asked again, it is answered again.",
        (ID,),
        answers=_IT | OVER,
        at_once=True,
        tag=TAG,
    ),
    Endpoint(
        "POST",
        f"{ONE}/abort",
        abort,
        "Abort it; for administrators: also what somebody else has begun. Asked again, it is answered again.",
        (ID,),
        answers=_IT | OVER,
        at_once=True,
        tag=TAG,
    ),
)
