"""The internal topics of a broker: what they look like when they are made, and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.topics.creation import CheckedTopic
from kbroker.topics.names import OFFSETS_TOPIC
from kbroker.transactions.offsets_partition import offsets_partition

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.config.settings import Settings
    from kbroker.internal_topics.topic import InternalTopic, Source
    from kbroker.topics.registry import Topic


_SEGMENT_BYTES = str(100 * 1024 * 1024)


def new_internal_topic(name: str, settings: Settings) -> CheckedTopic:
    """As Kafka makes it, though most of its configs have no effect here."""
    if name == OFFSETS_TOPIC:
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": _SEGMENT_BYTES,
        }
        return CheckedTopic(name, settings["offsets.topic.num.partitions"], configs)
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": _SEGMENT_BYTES,
        "unclean.leader.election.enable": "false",
    }
    return CheckedTopic(name, settings["transaction.state.log.num.partitions"], configs)


def open_internal_topic(broker: Broker, topic: Topic) -> InternalTopic:
    from kbroker.internal_topics.topic import InternalTopic

    source: Source
    if topic.name == OFFSETS_TOPIC:
        from kbroker.internal_topics.consumer_offsets import GroupSource

        source = GroupSource(lambda: broker.groups)
    else:
        from kbroker.internal_topics.transaction_state import TransactionSource

        source = TransactionSource(lambda: broker.transactions)
    return InternalTopic(broker, topic, offsets_partition, source)
