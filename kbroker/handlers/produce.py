"""Produce 0–13: append batches to partitions (KIP-98, KIP-467 record errors, KIP-951 leader, KIP-516 topic
ids).

Work is per batch. Versions 3 and up carry exactly one batch of format 2 per partition; versions 0–2 carry
message sets of formats 0 and 1, which are converted. With acks=0 there is no answer, and an error closes the
connection: it is the only way to make the producer look.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, cast

from kbroker.operations.appending import append
from kbroker.pending import Pending, join
from kbroker.protocol import topic_ids
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kbroker.protocol.records.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    LOW_ATTRIBUTES_POSITION,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_BIT,
    batch_size_at,
    magic_at,
    read_header,
)
from kbroker.protocol.records.compression import ZSTD
from kbroker.protocol.records.errors import CorruptRecord, InvalidRecord, UnsupportedCompression
from kbroker.requests.answers import BadRequest, Unassigned
from kbroker.requests.long_requests import Steps
from kbroker.requests.produce_results import appended_at, refused, when_durable
from kbroker.requests.repeated_produce import RepeatedProduces
from kbroker.requests.traits import Traits
from kbroker.security.acls import AclOperation
from kbroker.storage.interface import Appended
from kbroker.topics.names import INTERNAL_TOPICS
from kbroker.transactions.writes import ClientKnows, Refusals, TransactionalBatch

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources, TopicKey
    from kbroker.storage.interface import Log
    from kbroker.topics.registry import Topic

_FIRST_WITH_BATCHES = 3
_FIRST_WITH_ZSTD = 7
_FIRST_WITH_TRANSACTION_ABORTABLE = 11
_FIRST_THAT_ADDS = 12  # partitions to transactions
_LEAST_BATCH_BYTES = 26  # of a message of format 0
_NO_RECORDS = memoryview(b"")
_AT_ONCE = 128  # partitions of one request that keep others waiting
_MOST_DECODING_STEPS = 2000  # 128,000 partitions

TRAITS = Traits(
    overlaps=True,
    bounded_answer=True,
    max_request_bytes=None,
    max_decoding_steps=_MOST_DECODING_STEPS,
)

Answer = ProduceResponse | Pending[ProduceResponse] | None

lanes = RepeatedProduces


def handle(broker: Broker, request: ProduceRequest, context: RequestContext) -> Answer | Steps[Answer]:
    if context.api_version < _FIRST_WITH_BATCHES or not _has_transactional_batches(request):
        # One of many partitions, one after the other; others have their turn in between.
        in_turns = sum(len(topic.partition_data) or 1 for topic in request.topic_data) > _AT_ONCE
        return (_append_in_turns if in_turns else _append_all)(broker, request, context, {})
    try:
        admitted = _admit(broker.resources(context), request, context)
    except ApiError as error:
        if request.acks == 0:
            raise BadRequest(f"a Produce with acks=0 failed: {error}") from error
        raise
    if isinstance(admitted, Pending):
        return _append_later(broker, request, context, admitted)
    return _append_all(broker, request, context, admitted)


def _has_transactional_batches(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if (
                records is not None
                and len(records) > LOW_ATTRIBUTES_POSITION
                and records[LOW_ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT
                and magic_at(records) == MAGIC
            ):
                return True
    return False


def _admit(
    resources: Resources, request: ProduceRequest, context: RequestContext
) -> Refusals | Pending[Refusals]:
    """Which batches their transaction does not let in."""
    version = context.api_version
    if request.transactional_id is None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return resources.transactional_writes(request.transactional_id).admit(
        request.transactional_id,
        _transactional_batches(resources, request, version),
        ClientKnows(
            adding=version >= _FIRST_THAT_ADDS,
            transaction_abortable=version >= _FIRST_WITH_TRANSACTION_ABORTABLE,
        ),
        context.now_ms,
    )


def _transactional_batches(
    resources: Resources, request: ProduceRequest, version: int
) -> Iterator[TransactionalBatch]:
    """As far as they can be written at all."""
    for topic_data in request.topic_data:
        topic = resources.find_topic(_key(topic_data, version), AclOperation.WRITE)
        if topic is None or topic.name in INTERNAL_TOPICS:
            continue
        for data in topic_data.partition_data:
            records = data.records
            if (
                records is None
                or len(records) < BATCH_OVERHEAD
                or magic_at(records) != MAGIC
                or not 0 <= data.index < topic.partitions
            ):
                continue
            header = read_header(records)
            if header.is_transactional and header.producer_id >= 0:
                yield TransactionalBatch(topic, data.index, resources.log_of(topic, data.index), header)


def _append_later(
    broker: Broker, request: ProduceRequest, context: RequestContext, admitted: Pending[Refusals]
) -> Unassigned[ProduceResponse] | None:
    """Append once the partitions are in the transaction; what was received must outlive this call."""
    answer: Unassigned[ProduceResponse] = Unassigned()
    held = _keep_records(request)
    broker.budget.set_aside(held)

    def append(settled: Pending[Refusals]) -> None:
        broker.budget.take_up(held)
        if answer.abandoned:
            return
        try:
            appended: Any = _append_all(broker, request, context, settled.result())
            if isinstance(appended, Generator):
                appended = broker.long_requests.run(appended)
        except Exception as error:
            answer.fail(error)
            return
        if isinstance(appended, Pending):
            appended.then(answer.follow)
        elif appended is not None:
            answer.resolve(appended)

    admitted.then(append)
    return None if request.acks == 0 else answer


def _keep_records(request: ProduceRequest) -> int:
    """Let the records outlive the frame that they came in; returns how many bytes they are."""
    held = 0
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))
                held += len(data.records)
    return held


def _append_in_turns(
    broker: Broker, request: ProduceRequest, context: RequestContext, refusals: Refusals
) -> Steps[Answer]:
    held = _keep_records(request)
    broker.budget.set_aside(held)
    try:
        return (yield from _appending(broker, request, context, refusals))
    finally:
        broker.budget.take_up(held)


def _append_all(
    broker: Broker, request: ProduceRequest, context: RequestContext, refusals: Refusals
) -> Answer | Steps[Answer]:
    """All partitions at once, if none of them takes long."""
    appending = _appending(broker, request, context, refusals)
    try:
        while (waits_for := next(appending)) is None:
            pass
    except StopIteration as end:
        return cast("Answer", end.value)
    return _append_rest(broker, request, appending, waits_for)


def _append_rest(
    broker: Broker, request: ProduceRequest, appending: Steps[Answer], waits_for: Pending[Any]
) -> Steps[Answer]:
    held = _keep_records(request)
    broker.budget.set_aside(held)
    try:
        yield waits_for
        return (yield from appending)
    finally:
        broker.budget.take_up(held)


def _appending(
    broker: Broker, request: ProduceRequest, context: RequestContext, refusals: Refusals
) -> Steps[Answer]:
    version, acks = context.api_version, request.acks
    resources = broker.resources(context)
    response = ProduceResponse()
    waiting: list[Pending[None] | None] = []
    failure: Exception | None = None
    for topic_data in request.topic_data:
        topic = _topic(resources, topic_data, version)
        results: list[PartitionProduceResponse] = []
        response.responses.append(TopicProduceResponse(topic_data.name, topic_data.topic_id, results))
        for data in topic_data.partition_data:
            judge: Log | None = None
            try:
                log = _log(resources, topic, data.index, acks)
                if refusals and (log.topic_id, data.index) in refusals:
                    raise refusals[log.topic_id, data.index]
                records = _batch(data.records or _NO_RECORDS, version)
                judge = log
                if records:
                    appended = yield from append(broker, log, records, context.now_ms)
                else:  # an empty message set of old is no error
                    appended = Appended(-1, -1, -1, log.log_start_offset, False, None)
            except Exception as error:
                failure = error
                results.append(refused(data.index, error, judge))
                yield None
                continue
            result = appended_at(data.index, appended)
            results.append(result)
            if appended.durable is not None:
                waiting.append(when_durable(appended.durable, result, log))
            yield None
        yield None
    if acks == 0:
        if failure is not None:
            raise BadRequest(f"a Produce with acks=0 failed: {failure}")
        return None
    if not waiting:
        return response
    return join(waiting, lambda _: response)


def refuse(request: ProduceRequest, context: RequestContext, error: BaseException) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                topic.name, topic.topic_id, [refused(data.index, error) for data in topic.partition_data]
            )
            for topic in request.topic_data
        ]
    )


def _key(topic_data: TopicProduceData, version: int) -> TopicKey:
    return topic_data.topic_id if version >= topic_ids.PRODUCE_SINCE else topic_data.name


def _topic(resources: Resources, topic_data: TopicProduceData, version: int) -> Topic | ApiError:
    """The topic, or what its partitions are refused with."""
    topic: Topic | ApiError
    try:
        topic = resources.topic(_key(topic_data, version), AclOperation.WRITE)
        name = topic.name
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return error
        topic = error
        name = topic_data.name
    return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION) if name in INTERNAL_TOPICS else topic


def _log(resources: Resources, topic: Topic | ApiError, partition: int, acks: int) -> Log:
    if acks not in (-1, 0, 1):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    if isinstance(topic, ApiError):
        raise topic
    return resources.log_of(topic, partition)


def _batch(records: memoryview, version: int) -> memoryview:
    """The one batch that a partition's data holds, without what follows it and makes no batch."""
    if version < _FIRST_WITH_BATCHES:
        from kbroker.protocol.records import legacy as legacy_records

        return memoryview(bytearray(legacy_records.up_convert(records)))
    size = _whole_batch(records)
    if size == 0:
        raise InvalidRecord("a partition without a batch")
    if size == len(records) and version >= _FIRST_WITH_ZSTD and records[MAGIC_POSITION] == MAGIC:
        return records
    if magic_at(records) != MAGIC:
        raise InvalidRecord(f"version {version} carries batches of format 2 only")
    if size < len(records):
        if _whole_batch(records[size:]):
            raise InvalidRecord("more than one batch for a partition")
        records = records[:size]
    if version < _FIRST_WITH_ZSTD and records[LOW_ATTRIBUTES_POSITION] & CODEC_MASK == ZSTD:
        raise UnsupportedCompression("zstd needs Produce version 7")
    return records


def _whole_batch(data: memoryview) -> int:
    """The size of the batch at the start; 0 if there is none, or only a part of one."""
    if len(data) <= MAGIC_POSITION:
        return 0
    size = batch_size_at(data, 0)
    if size < _LEAST_BATCH_BYTES:
        raise CorruptRecord(f"a batch of {size} bytes")
    if data[MAGIC_POSITION] > MAGIC:
        raise CorruptRecord(f"a batch of format {data[MAGIC_POSITION]}")
    return size if size <= len(data) else 0
