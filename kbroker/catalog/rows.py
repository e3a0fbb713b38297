"""What a catalog holds, as the broker sees it. (The interface itself is loaded by type checkers only.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

TOPIC = 2  # the resource type of topics in Kafka's protocol

# Facts are single values that outlive a restart. Their names:
CLUSTER_ID = "cluster.id"
UNCLEAN_STARTS = "unclean.starts"
FEATURES = "features"

# Tables of entries:
QUOTAS = "quotas"
DEAD_LETTERS = "share.dead.letters"

ConfigRow = tuple[int, str, str, str]
"""Resource type, resource name, config name, value."""


class EntryRow(NamedTuple):
    """One entry of a table that a part of the broker keeps: its users, ACLs, tokens or quotas, say."""

    table: str
    key: str
    value: str


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


class Snapshot(NamedTuple):
    """What a catalog holds when a broker starts, but for what the stores of coordinators load."""

    facts: Mapping[str, str]
    topics: Sequence[TopicRow]
    deleted_topics: Sequence[DeletedTopicRow]
    configs: Sequence[ConfigRow]
    entries: Sequence[EntryRow]
    groups_stored: bool
    """Whether there is anything for the group store to load."""
    transactions_stored: bool
    """The same of the transaction store."""
    shares_stored: bool = False
    """The same of the store of share partitions."""
