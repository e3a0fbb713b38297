"""Consumer groups of either protocol: their consumers, what these are assigned, and how far they are behind.

Groups of other kinds (share, streams) are not in this version of the API.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.errors import GroupIdNotFound
from kbroker.http.answers import json_answer
from kbroker.http.endpoint import BOOLEAN, INTEGER, STRING, Endpoint
from kbroker.http.rest_proxy.errors import RestError
from kbroker.http.rest_proxy.v3.documents import (
    LINK,
    Document,
    Place,
    list_answer,
    list_schema,
    resource_schema,
)
from kbroker.http.rest_proxy.v3.endpoints import endpoint
from kbroker.http.turns import in_turns
from kbroker.operations.group_lag import GroupLag, PartitionLag, group_lag
from kbroker.operations.groups import DescribedGroup, DescribedMember, describe_group, list_groups
from kbroker.protocol.errors import ApiError

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

_TYPES = ("classic", "consumer")
_CONSUMERS = ("consumer", "")  # protocol types: what reads by Kafka's consumer protocol, or only commits
_EVERY_GROUP = 1 << 31


async def list_all(request: HttpRequest) -> Response:
    place = Place(request)
    groups = await in_turns(request, _all_groups(request.resources))
    return list_answer(
        "KafkaConsumerGroupList",
        place.url("consumer-groups"),
        groups,
        lambda group: _group(request, place, group),
    )


async def get(request: HttpRequest) -> Response:
    return json_answer(_group(request, Place(request), await _described(request)))


async def list_consumers(request: HttpRequest) -> Response:
    place, group = Place(request), await _described(request)
    return list_answer(
        "KafkaConsumerList",
        place.url("consumer-groups", group.group_id, "consumers"),
        group.members,
        lambda member: _consumer(place, group.group_id, member),
    )


async def get_consumer(request: HttpRequest) -> Response:
    place, group = Place(request), await _described(request)
    return json_answer(_consumer(place, group.group_id, _member(request, group)))


async def list_assignments(request: HttpRequest) -> Response:
    place, group = Place(request), await _described(request)
    member = _member(request, group)
    return list_answer(
        "KafkaConsumerAssignmentList",
        place.url("consumer-groups", group.group_id, "consumers", member.member_id, "assignments"),
        member.assignment,
        lambda at: _assignment(place, group.group_id, member.member_id, *at),
    )


async def get_assignment(request: HttpRequest) -> Response:
    place, group = Place(request), await _described(request)
    member = _member(request, group)
    at = (request.path["topic_name"], request.path_int("partition_id"))
    if at not in member.assignment:
        raise RestError(404, "The partition is not assigned to this consumer.")
    return json_answer(_assignment(place, group.group_id, member.member_id, *at))


async def list_lags(request: HttpRequest) -> Response:
    place, lag = Place(request), await _lag(request)
    group_id = lag.group.group_id
    return list_answer(
        "KafkaConsumerLagList",
        place.url("consumer-groups", group_id, "lags"),
        _committed(lag),
        lambda each: _partition_lag(place, group_id, each),
    )


async def get_lag(request: HttpRequest) -> Response:
    place, lag = Place(request), await _lag(request)
    at = (request.path["topic_name"], request.path_int("partition_id"))
    for each in _committed(lag):
        if (each.topic, each.partition) == at:
            return json_answer(_partition_lag(place, lag.group.group_id, each))
    raise RestError(404, "The group has committed nothing for this partition.")


async def get_lag_summary(request: HttpRequest) -> Response:
    place, lag = Place(request), await _lag(request)
    group_id, partitions = lag.group.group_id, _committed(lag)
    if not partitions:
        raise RestError(404, "The group has committed nothing yet.")
    largest = max(partitions, key=lambda each: each.lag)
    consumer_id, instance_id, client_id = _reader(largest)
    of_consumer = ("consumer-groups", group_id, "consumers", consumer_id)
    return json_answer(
        place.resource(
            "KafkaConsumerGroupLagSummary",
            ("consumer-groups", group_id, "lag-summary"),
            f"consumer-group={group_id}/lag-summary",
            {
                "consumer_group_id": group_id,
                "max_lag_consumer_id": consumer_id,
                "max_lag_instance_id": instance_id,
                "max_lag_client_id": client_id,
                "max_lag_topic_name": largest.topic,
                "max_lag_partition_id": largest.partition,
                "max_lag": largest.lag,
                "total_lag": sum(each.lag for each in partitions),
                "max_lag_consumer": place.link(*of_consumer),
                "max_lag_partition": place.link("topics", largest.topic, "partitions", largest.partition),
            },
        )
    )


def _all_groups(resources: Resources) -> Steps[list[DescribedGroup]]:
    groups: list[DescribedGroup] = []
    for listed in list_groups(resources, limit=_EVERY_GROUP, types=_TYPES).groups:
        try:
            group = yield from describe_group(resources, listed.group_id)
        except ApiError:  # it reads what the caller may not see
            group = DescribedGroup(
                listed.group_id, listed.type, listed.state, listed.protocol_type, None, None
            )
        except GroupIdNotFound:  # gone meanwhile
            continue
        if group.protocol_type in _CONSUMERS:
            group.members = [member._replace(assignment=()) for member in group.members]
            groups.append(group)
    return groups


async def _described(request: HttpRequest) -> DescribedGroup:
    group = await in_turns(request, describe_group(request.resources, request.path["consumer_group_id"]))
    return _checked(group)


async def _lag(request: HttpRequest) -> GroupLag:
    lag = await in_turns(request, group_lag(request.resources, request.path["consumer_group_id"]))
    _checked(lag.group)
    return lag


def _checked(group: DescribedGroup) -> DescribedGroup:
    if group.type not in _TYPES or group.protocol_type not in _CONSUMERS:
        raise RestError(404, f"{group.group_id} is no consumer group.")
    return group


def _committed(lag: GroupLag) -> list[PartitionLag]:
    return [each for each in lag.partitions if each.committed_offset is not None]


def _member(request: HttpRequest, group: DescribedGroup) -> DescribedMember:
    member_id = request.path["consumer_id"]
    for member in group.members:
        if member.member_id == member_id:
            return member
    raise RestError(404, "The group has no such consumer.")


def _reader(lag: PartitionLag) -> tuple[str, str | None, str]:
    member = lag.member
    return ("", None, "") if member is None else (member.member_id, member.instance_id, member.client_id)


# documents


def _group(request: HttpRequest, place: Place, group: DescribedGroup) -> Document:
    path = ("consumer-groups", group.group_id)
    return place.resource(
        "KafkaConsumerGroup",
        path,
        f"consumer-group={group.group_id}",
        {
            "consumer_group_id": group.group_id,
            "is_simple": not group.protocol_type,
            "partition_assignor": group.assignor or "",
            "state": _words(group.state),
            "type": group.type.upper(),
            "is_mixed_consumer_group": group.type == "consumer"
            and any(member.protocol == "classic" for member in group.members),
            "coordinator": place.link("brokers", request.broker.cluster.node_id),
            "consumers": place.link(*path, "consumers"),
            "lag_summary": place.link(*path, "lag-summary"),
        },
    )


def _words(state: str) -> str:
    """PreparingRebalance is PREPARING_REBALANCE here."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper()


def _consumer(place: Place, group_id: str, member: DescribedMember) -> Document:
    path = ("consumer-groups", group_id, "consumers", member.member_id)
    return place.resource(
        "KafkaConsumer",
        path,
        f"consumer-group={group_id}/consumer={member.member_id}",
        {
            "consumer_group_id": group_id,
            "consumer_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "assignments": place.link(*path, "assignments"),
        },
    )


def _assignment(place: Place, group_id: str, member_id: str, topic: str, partition: int) -> Document:
    group = ("consumer-groups", group_id)
    return place.resource(
        "KafkaConsumerAssignment",
        (*group, "consumers", member_id, "assignments", topic, "partitions", partition),
        f"consumer-group={group_id}/consumer={member_id}/assignment={topic}/partition={partition}",
        {
            "consumer_group_id": group_id,
            "consumer_id": member_id,
            "topic_name": topic,
            "partition_id": partition,
            "partition": place.link("topics", topic, "partitions", partition),
            "lag": place.link(*group, "lags", topic, "partitions", partition),
        },
    )


def _partition_lag(place: Place, group_id: str, lag: PartitionLag) -> Document:
    consumer_id, instance_id, client_id = _reader(lag)
    return place.resource(
        "KafkaConsumerLag",
        ("consumer-groups", group_id, "lags", lag.topic, "partitions", lag.partition),
        f"consumer-group={group_id}/lag={lag.topic}/partition={lag.partition}",
        {
            "consumer_group_id": group_id,
            "topic_name": lag.topic,
            "partition_id": lag.partition,
            "current_offset": lag.committed_offset,
            "log_end_offset": lag.log_end_offset,
            "lag": lag.lag,
            "consumer_id": consumer_id,
            "instance_id": instance_id,
            "client_id": client_id,
        },
    )


_MAYBE = {"type": ["string", "null"]}
_GROUP = resource_schema(
    "KafkaConsumerGroup",
    consumer_group_id=STRING,
    is_simple=BOOLEAN,
    partition_assignor=STRING,
    state=STRING,
    type=STRING,
    is_mixed_consumer_group=BOOLEAN,
    coordinator=LINK,
    consumers=LINK,
    lag_summary=LINK,
)
_CONSUMER = resource_schema(
    "KafkaConsumer",
    consumer_group_id=STRING,
    consumer_id=STRING,
    instance_id=_MAYBE,
    client_id=STRING,
    assignments=LINK,
)
_ASSIGNMENT = resource_schema(
    "KafkaConsumerAssignment",
    consumer_group_id=STRING,
    consumer_id=STRING,
    topic_name=STRING,
    partition_id=INTEGER,
    partition=LINK,
    lag=LINK,
)
_LAG = resource_schema(
    "KafkaConsumerLag",
    consumer_group_id=STRING,
    topic_name=STRING,
    partition_id=INTEGER,
    current_offset=INTEGER,
    log_end_offset=INTEGER,
    lag=INTEGER,
    consumer_id=STRING,
    instance_id=_MAYBE,
    client_id=STRING,
)
_SUMMARY = resource_schema(
    "KafkaConsumerGroupLagSummary",
    consumer_group_id=STRING,
    max_lag_consumer_id=STRING,
    max_lag_instance_id=_MAYBE,
    max_lag_client_id=STRING,
    max_lag_topic_name=STRING,
    max_lag_partition_id=INTEGER,
    max_lag=INTEGER,
    total_lag=INTEGER,
    max_lag_consumer=LINK,
    max_lag_partition=LINK,
)
_ONE = "/consumer-groups/{consumer_group_id}"
_ONE_CONSUMER = f"{_ONE}/consumers/{{consumer_id}}"
_PARTITION = "{topic_name}/partitions/{partition_id}"

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint(
        "GET",
        "/consumer-groups",
        list_all,
        "List the consumer groups.",
        answers={200: list_schema("KafkaConsumerGroupList", _GROUP)},
    ),
    endpoint("GET", _ONE, get, "Get a consumer group.", answers={200: _GROUP}),
    endpoint(
        "GET",
        f"{_ONE}/consumers",
        list_consumers,
        "List the consumers of a group.",
        answers={200: list_schema("KafkaConsumerList", _CONSUMER)},
    ),
    endpoint("GET", _ONE_CONSUMER, get_consumer, "Get a consumer of a group.", answers={200: _CONSUMER}),
    endpoint(
        "GET",
        f"{_ONE_CONSUMER}/assignments",
        list_assignments,
        "List the partitions of a consumer.",
        answers={200: list_schema("KafkaConsumerAssignmentList", _ASSIGNMENT)},
    ),
    endpoint(
        "GET",
        f"{_ONE_CONSUMER}/assignments/{_PARTITION}",
        get_assignment,
        "Get a partition of a consumer.",
        answers={200: _ASSIGNMENT},
    ),
    endpoint(
        "GET",
        f"{_ONE}/lags",
        list_lags,
        "List how far a group is behind.",
        answers={200: list_schema("KafkaConsumerLagList", _LAG)},
    ),
    endpoint(
        "GET",
        f"{_ONE}/lags/{_PARTITION}",
        get_lag,
        "Get how far a group is behind in a partition.",
        answers={200: _LAG},
    ),
    endpoint(
        "GET",
        f"{_ONE}/lag-summary",
        get_lag_summary,
        "Get where a group is furthest behind, and how far in all.",
        answers={200: _SUMMARY},
    ),
)
