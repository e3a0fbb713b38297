"""What a new topic, or new partitions of one, may look like: Kafka's rules as they are for one broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.topics.names import INTERNAL_TOPICS, check_name

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic

_METADATA_TOPIC = "__cluster_metadata"
MAX_PARTITIONS_PER_REQUEST = 10_000


class NewTopic(NamedTuple):
    name: str
    partitions: int
    configs: dict[str, str]


class Assignment(Protocol):
    broker_ids: list[int]


def count_problem(broker: Broker, topics: Sequence[CreatableTopic]) -> ApiError | None:
    """One request may not ask for so many partitions that it starves the others."""
    default = broker.settings["num.partitions"]
    total = 0
    for topic in topics:
        total += len(topic.assignments) or (default if topic.num_partitions == -1 else topic.num_partitions)
    if total > MAX_PARTITIONS_PER_REQUEST:
        return ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"One request may create {MAX_PARTITIONS_PER_REQUEST} partitions at most, not {total}.",
        )
    return None


def check_new_topic(broker: Broker, asked: CreatableTopic) -> NewTopic:
    """The topic as it would be created. Raises ApiError if it may not be."""
    check_name(asked.name)
    if asked.name == _METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The name '{asked.name}' is reserved.")
    if asked.name in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The name '{asked.name}' is reserved.")
    broker.topics.check_new(asked.name)
    partitions = _partition_count(broker, asked)
    configs: dict[str, str] = {}
    for config in asked.configs:
        if config.value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"The config '{config.name}' has no value.")
        configs[config.name] = config.value
    broker.settings.check_topic_configs(configs)
    return NewTopic(asked.name, partitions, configs)


def _partition_count(broker: Broker, asked: CreatableTopic) -> int:
    if asked.assignments:
        if asked.num_partitions != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "A replica assignment goes with a partition count of -1."
            )
        if asked.replication_factor != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "A replica assignment goes with a replication factor of -1."
            )
        _check_consecutive(asked.assignments)
        check_assignments(broker, asked.assignments)
        return len(asked.assignments)
    factor = asked.replication_factor
    if factor == -1:
        factor = broker.settings["default.replication.factor"]
    if factor != 1:
        problem = "above the number of brokers, 1" if factor > 1 else "not positive"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor {factor} is {problem}.")
    if asked.num_partitions == -1:
        return int(broker.settings["num.partitions"])
    if asked.num_partitions < 1:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"A topic cannot have {asked.num_partitions} partitions."
        )
    return asked.num_partitions


def _check_consecutive(assignments: list[CreatableReplicaAssignment]) -> None:
    indexes = [assignment.partition_index for assignment in assignments]
    if len(set(indexes)) != len(indexes):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned twice.")
    if sorted(indexes) != list(range(len(indexes))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 without a gap."
        )


def check_assignments(broker: Broker, assignments: Sequence[Assignment]) -> None:
    for assignment in assignments:
        replicas = assignment.broker_ids
        if not replicas:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition has no replica.")
        if len(set(replicas)) != len(replicas):
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition has a broker twice.")
        unknown = [replica for replica in replicas if not broker.cluster.has_node(replica)]
        if unknown:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"There is no broker {unknown[0]}.")
