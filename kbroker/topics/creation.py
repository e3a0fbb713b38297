"""What a new topic, or new partitions of one, may look like: Kafka's rules as they are for one broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.topics.names import INTERNAL_TOPICS, READABLE_TOPICS, check_name

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.topics.registry import Topic

_METADATA_TOPIC = "__cluster_metadata"
_MAX_PARTITIONS_PER_REQUEST = 10_000
_DEFAULT = -1  # as many as the broker's configs say


class NewTopic(NamedTuple):
    """A topic as it is asked for."""

    name: str
    num_partitions: int = _DEFAULT
    replication_factor: int = _DEFAULT
    configs: Mapping[str, str | None] = {}
    assignments: Sequence[tuple[int, list[int]]] = ()
    """Partitions and their replicas."""


class CheckedTopic(NamedTuple):
    """A topic as it may be created."""

    name: str
    partitions: int
    configs: dict[str, str]


def count_problem(broker: Broker, counts: Iterable[int]) -> ApiError | None:
    """One request may not ask for so many partitions that it starves the others."""
    default = broker.settings["num.partitions"]
    return _too_many(sum(default if count == _DEFAULT else count for count in counts))


def _too_many(partitions: int) -> ApiError | None:
    if partitions <= _MAX_PARTITIONS_PER_REQUEST:
        return None
    return ApiError(
        ErrorCode.POLICY_VIOLATION,
        f"One request may create {_MAX_PARTITIONS_PER_REQUEST} partitions at most, not {partitions}.",
    )


def check_not_metadata(name: str) -> None:
    """Nobody may create it, whatever else they may do."""
    if name == _METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The name '{name}' is reserved.")


def check_new_topic(broker: Broker, new: NewTopic) -> CheckedTopic:
    """The topic as it would be created. Raises ApiError if it may not be."""
    check_name(new.name)
    if new.name in READABLE_TOPICS:  # even before it is
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"The broker makes '{new.name}' itself.")
    if new.name in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The name '{new.name}' is reserved.")
    broker.topics.check_new(new.name)
    partitions = _partition_count(broker, new)
    configs: dict[str, str] = {}
    for name, value in new.configs.items():
        if value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"The config '{name}' has no value.")
        configs[name] = value
    broker.settings.check_topic_configs(configs)
    return CheckedTopic(new.name, partitions, configs)


def _partition_count(broker: Broker, new: NewTopic) -> int:
    if new.assignments:
        if new.num_partitions != _DEFAULT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "A replica assignment goes with a partition count of -1."
            )
        if new.replication_factor != _DEFAULT:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "A replica assignment goes with a replication factor of -1."
            )
        _check_consecutive([partition for partition, _ in new.assignments])
        _check_assignments(broker, [replicas for _, replicas in new.assignments])
        return len(new.assignments)
    factor = new.replication_factor
    if factor == _DEFAULT:
        factor = broker.settings["default.replication.factor"]
    if factor != 1:
        problem = "above the number of brokers, 1" if factor > 1 else "not positive"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor {factor} is {problem}.")
    if new.num_partitions == _DEFAULT:
        return int(broker.settings["num.partitions"])
    if new.num_partitions < 1:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"A topic cannot have {new.num_partitions} partitions.")
    return new.num_partitions


def _check_consecutive(partitions: list[int]) -> None:
    if len(set(partitions)) != len(partitions):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned twice.")
    if sorted(partitions) != list(range(len(partitions))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 without a gap."
        )


def check_growth(
    broker: Broker, topic: Topic, count: int, assignments: Sequence[list[int]] | None = None
) -> None:
    """Whether a topic may get so many partitions in all; ``assignments``: replicas of the new ones."""
    added = count - topic.partitions
    if added == 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"The topic already has {count} partition(s).")
    if added < 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic has {topic.partitions} partition(s); {count} would be fewer.",
        )
    if (too_many := _too_many(added)) is not None:
        raise too_many
    if assignments is not None:
        if len(assignments) != added:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{len(assignments)} assignment(s) for {added} new partition(s).",
            )
        _check_assignments(broker, assignments)


def _check_assignments(broker: Broker, assignments: Sequence[list[int]]) -> None:
    for replicas in assignments:
        if not replicas:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition has no replica.")
        if len(set(replicas)) != len(replicas):
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition has a broker twice.")
        unknown = [replica for replica in replicas if not broker.cluster.has_node(replica)]
        if unknown:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"There is no broker {unknown[0]}.")
