"""WriteTxnMarkers 0–2: append transaction markers to partitions (KIP-98).

Coordinators of other brokers send it, and the admin client to end a hanging transaction (KIP-664). 2 adds the
transaction version, by which a marker that comes too late is told from one that comes again (KIP-1228).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.pending import Pending, join
from kbroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Assigned


def handle(
    broker: Broker, request: WriteTxnMarkersRequest, context: RequestContext
) -> Steps[WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]]:
    resources = broker.resources(context)
    administrates = resources.may_cluster(AclOperation.ALTER)
    resources = resources.of_cluster(AclOperation.ALTER if administrates else AclOperation.CLUSTER_ACTION)
    by_producer: dict[int, dict[str, dict[int, WritableTxnMarkerPartitionResult]]] = {}
    waiting: list[Pending[None] | None] = []
    for marker in request.markers:
        topics = by_producer.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for index in topic.partition_indexes:
                result = WritableTxnMarkerPartitionResult(index)
                topics.setdefault(topic.name, {})[index] = result
                waiting.append(_append(resources, marker, topic.name, result, context.now_ms))
                yield None
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id,
                [
                    WritableTxnMarkerTopicResult(name, list(partitions.values()))
                    for name, partitions in topics.items()
                ],
            )
            for producer_id, topics in by_producer.items()
        ]
    )
    return join(waiting, lambda _: response)


def _append(
    resources: Resources,
    marker: WritableTxnMarker,
    topic: str,
    result: WritableTxnMarkerPartitionResult,
    now_ms: int,
) -> Pending[None] | None:
    try:
        log = resources.log(topic, result.partition_index, AclOperation.WRITE)
        appended = log.append_control(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            now_ms=now_ms,
            transaction_version=marker.transaction_version,
        )
    except Exception as error:
        result.error_code = describe(error)[0]
        return None
    resources.broker.transactional_writes.transaction_ended(log, marker.producer_id)
    if appended.durable is None:
        return None
    settled: Pending[None] = Pending()

    def durable(flush: Pending[Assigned | None]) -> None:
        try:
            flush.result()
        except Exception as error:
            result.error_code = describe(error)[0]
        settled.resolve(None)

    appended.durable.then(durable)
    return settled
