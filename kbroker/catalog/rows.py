"""What a catalog holds, one by one, for topics, configs and facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TOPIC = 2  # the resource type of topics in Kafka's protocol


class TopicRow(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int
    leader_epoch_base: int


class DeletedTopicRow(NamedTuple):
    """A topic that exists no more and whose files may still be there."""

    topic_id: bytes
    name: str
    partitions: int


class ConfigRow(NamedTuple):
    resource_type: int
    resource_name: str
    name: str
    value: str


class ResourceConfigs(NamedTuple):
    """All configs that a resource has of its own."""

    resource_type: int
    resource_name: str
    configs: Mapping[str, str]


class Fact(NamedTuple):
    """A single value that outlives a restart."""

    name: str
    value: str
