"""Publishing: one request, or batch after batch, each answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kbroker.grpc.messages import ours
from kbroker.grpc.records import new_records
from kbroker.grpc.statuses import GrpcError, Status, kafka_error
from kbroker.network.awaiting import settled
from kbroker.operations import publishing
from kbroker.operations.atomic_publishing import publish_atomically
from kbroker.operations.batching import NO_PRODUCER, Producer
from kbroker.operations.publishing import ACKS_ALL, Outcome, Published, Refused
from kbroker.protocol.records.compression import CODEC_NAMES
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.grpc.call import Call
    from kbroker.requests.long_requests import Steps

_ACKS: Final = {0: ACKS_ALL, 1: 1, 2: 0}
_LONGEST_ORIGIN: Final = 200
_PER_PAUSE: Final = 64  # records
_RESPONSE, _PRODUCED = ours("PublishResponse"), ours("ProduceResponse")


async def publish(call: Call, request: Any) -> Any:
    outcomes = await _published(call, request)
    if all(isinstance(each, Refused) for each in outcomes):
        raise _first_error(outcomes)
    response = _RESPONSE()
    await call.in_turns(_tell(outcomes, response.records))
    return response


async def produce(call: Call) -> None:
    while (request := await call.receive()) is not None:
        response = _PRODUCED(id=request.id)
        try:
            outcomes = await _published(call, request.batch)
        except Exception as error:
            response.error.CopyFrom(kafka_error(error))
        else:
            if all(isinstance(each, Refused) for each in outcomes):
                response.error.CopyFrom(kafka_error(_first_error(outcomes)))
            await call.in_turns(_tell(outcomes, response.records))
        await call.send(response)


def _first_error(outcomes: Sequence[Outcome]) -> Exception:
    return next(each.error for each in outcomes if isinstance(each, Refused))


async def _published(call: Call, request: Any) -> Sequence[Outcome]:
    resources, now_ms = call.resources, call.now_ms
    if request.acks not in _ACKS or not 0 <= request.codec < len(CODEC_NAMES):
        raise GrpcError(Status.INVALID_ARGUMENT, "There are no such acks, or no such codec.")
    expected = request.expected_offset if request.HasField("expected_offset") else None
    if expected is not None and expected < 0:
        raise GrpcError(Status.INVALID_ARGUMENT, "An expected offset is a number from 0 on.")
    records = await call.in_turns(new_records(request.records))
    steps: Steps[Any]
    if request.atomic:
        if request.acks or request.HasField("origin"):
            raise GrpcError(
                Status.INVALID_ARGUMENT, "What is published all or nothing has ACKS_ALL, and no origin."
            )
        addressed = [(request.topic, each) for each in records]
        steps = publish_atomically(
            resources, addressed, now_ms=now_ms, codec=request.codec, expected_offset=expected
        )
    else:
        steps = publishing.publish(
            resources,
            request.topic,
            records,
            now_ms=now_ms,
            acks=_ACKS[request.acks],
            codec=request.codec,
            expected_offset=expected,
            origin=await _origin(call, request),
        )
    outcomes: Sequence[Outcome] = await call.in_turns(steps)
    return outcomes


async def _origin(call: Call, request: Any) -> Producer:
    if not request.HasField("origin"):
        return NO_PRODUCER
    name, sequence = request.origin.id, request.origin.sequence
    if not 1 <= len(name) <= _LONGEST_ORIGIN or not name.isprintable() or sequence < 0:
        raise GrpcError(
            Status.INVALID_ARGUMENT,
            f"An origin has an id of 1 to {_LONGEST_ORIGIN} characters, and a sequence from 0 on.",
        )
    call.resources.check_topic(AclOperation.WRITE, request.topic)  # who may not write makes no origins
    owner = str(call.caller.principal)
    return Producer(await settled(call.broker.publishing.origins.producer_id(owner, name)), 0, sequence)


def _tell(outcomes: Sequence[Outcome], target: Any) -> Steps[None]:
    for index, outcome in enumerate(outcomes, 1):
        if isinstance(outcome, Published):
            added = target.add(partition=outcome.partition, timestamp=outcome.timestamp)
            if outcome.offset >= 0:
                added.offset = outcome.offset
        else:
            target.add(partition=outcome.partition).error.CopyFrom(kafka_error(outcome.error))
        if not index % _PER_PAUSE:
            yield None
