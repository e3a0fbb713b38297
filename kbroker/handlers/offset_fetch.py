"""OffsetFetch 0–10: how far groups have read; some partitions, or all (null topics, from 2 on).

7 adds require_stable (KIP-447: UNSTABLE_OFFSET_COMMIT while a transaction is open), 8 several groups
(KIP-709), 9 member epochs and 10 topic ids (KIP-848). A partition without an offset has -1 and no error.
Before 8 a group's error is the answer's own, before 2 that of each partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.offsets.manager import FetchResults
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.errors import describe
from kbroker.pending import Pending, join, mapped
from kbroker.protocol import topic_ids
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kbroker.requests.long_requests import Steps, each, lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_FIRST_WITH_GROUP_ERROR = 2
_FIRST_WITH_GROUPS = 8
_NO_OFFSET = -1

_Refused = dict[str | bytes, ErrorCode]
"""Topics, as the request names them, of which nothing is told."""


def handle(
    broker: Broker, request: OffsetFetchRequest, context: RequestContext
) -> Steps[OffsetFetchResponse | Pending[OffsetFetchResponse]]:
    resources = broker.resources(context)
    if context.api_version >= _FIRST_WITH_GROUPS:
        groups: list[OffsetFetchResponseGroup | Pending[OffsetFetchResponseGroup]] = []
        for group in _once(request.groups):
            groups += [(yield from _fetch(resources, group, request.require_stable, context))]
        return join(groups, lambda groups: OffsetFetchResponse(groups=groups))
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ],
    )
    answer = yield from _fetch(resources, group, request.require_stable, context)
    return mapped(answer, lambda answer: _single(answer, group, context.api_version))


def _once(groups: list[OffsetFetchRequestGroup]) -> Iterator[OffsetFetchRequestGroup]:
    """A group of which all offsets are asked for several times is answered once."""
    answered: set[tuple[str, str | None, int]] = set()
    for group in groups:
        asked = (group.group_id, group.member_id, group.member_epoch)
        if group.topics is not None:
            yield group
        elif asked not in answered:
            answered.add(asked)
            yield group


def _fetch(
    resources: Resources, group: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> Steps[OffsetFetchResponseGroup | Pending[OffsetFetchResponseGroup]]:
    yield None

    def failed(error: Exception) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(group.group_id, error_code=describe(error)[0])

    try:
        groups = resources.groups(group.group_id, AclOperation.DESCRIBE)
    except ApiError as error:
        return failed(error)
    by_id = context.api_version >= topic_ids.OFFSET_FETCH_SINCE
    topics, partitions, refused = group.topics, None, _Refused()
    if topics is not None:
        partitions = []
        for topic in topics:
            yield None
            try:
                _look_up(resources, topic, by_id)
            except ApiError as error:
                refused[topic.topic_id if by_id else topic.name] = error.code
                continue
            partitions += yield from each(topic.partition_indexes, partial(TopicPartition, topic.name))
    fetched = groups.offsets.fetch(
        group.group_id,
        partitions,
        member_id=group.member_id,
        member_epoch=group.member_epoch,
        require_stable=require_stable,
    )

    def answer(results: FetchResults) -> OffsetFetchResponseGroup:
        found = _all_topics(resources, results, by_id=by_id) if topics is None else topics
        return OffsetFetchResponseGroup(
            group.group_id,
            lazily(found, lambda t: _topic(t, results, refused.get(t.topic_id if by_id else t.name))),
        )

    return mapped(fetched, answer, otherwise=failed)


def _look_up(resources: Resources, topic: OffsetFetchRequestTopics, by_id: bool) -> None:
    """Raises ApiError if there is no such topic for the caller."""
    if by_id:
        topic.name = ""
        topic.name = resources.topic(topic.topic_id, AclOperation.DESCRIBE).name
    else:
        resources.check_topic(AclOperation.DESCRIBE, topic.name)


def _all_topics(
    resources: Resources, results: FetchResults, *, by_id: bool
) -> list[OffsetFetchRequestTopics]:
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for name, partition in results:
        if name not in topics:
            if not resources.may_topic(AclOperation.DESCRIBE, name):
                continue
            found = resources.find_topic(name, AclOperation.DESCRIBE)
            if found is None and by_id:
                continue
            topics[name] = OffsetFetchRequestTopics(name, found.topic_id if found else bytes(16))
        topics[name].partition_indexes.append(partition)
    return list(topics.values())


def _topic(
    topic: OffsetFetchRequestTopics, results: FetchResults, refused: ErrorCode | None
) -> OffsetFetchResponseTopics:
    def fetched(index: int) -> OffsetFetchResponsePartitions:
        partition = OffsetFetchResponsePartitions(index, _NO_OFFSET, metadata="")
        if refused is not None:
            partition.error_code = refused
        else:
            result = results.get(TopicPartition(topic.name, index))
            if isinstance(result, CommittedOffset):
                partition.committed_offset = result.offset
                partition.committed_leader_epoch = result.leader_epoch
                partition.metadata = result.metadata
            elif result is not None:
                partition.error_code = describe(result)[0]
        return partition

    return OffsetFetchResponseTopics(topic.name, topic.topic_id, lazily(topic.partition_indexes, fetched))


def _single(
    answer: OffsetFetchResponseGroup, group: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponse:
    """The answer's form before it could hold several groups."""
    if answer.error_code and version < _FIRST_WITH_GROUP_ERROR:
        return OffsetFetchResponse(
            topics=lazily(
                group.topics or (),
                lambda topic: OffsetFetchResponseTopic(
                    topic.name,
                    lazily(
                        topic.partition_indexes,
                        lambda index: OffsetFetchResponsePartition(
                            index, _NO_OFFSET, metadata="", error_code=answer.error_code
                        ),
                    ),
                ),
            )
        )
    return OffsetFetchResponse(
        error_code=answer.error_code,
        topics=lazily(
            answer.topics,
            lambda topic: OffsetFetchResponseTopic(
                topic.name,
                lazily(
                    topic.partitions,
                    lambda p: OffsetFetchResponsePartition(
                        p.partition_index,
                        p.committed_offset,
                        p.committed_leader_epoch,
                        p.metadata,
                        p.error_code,
                    ),
                ),
            ),
        ),
    )
