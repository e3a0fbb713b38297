"""What an assignor is given and what it answers.

An assignor is a pure function: the members with their subscriptions and their present target, and the
partition count of every subscribed topic, give the new target of every member. Topics are ids (16 bytes), so
a topic that was deleted and created anew is another topic. Subscriptions name existing topics only; a present
target may name topics and partitions that are gone.

Racks take no part: Kafka's uniform and range assignors do not look at them either. A member's rack reaches
the client through ConsumerGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

TopicPartitions = Mapping[bytes, frozenset[int]]


@dataclass(slots=True, frozen=True)
class MemberSpec:
    subscribed: frozenset[bytes]
    assigned: TopicPartitions = field(default_factory=dict)
    instance_id: str | None = None


Assignor = Callable[[Mapping[str, MemberSpec], Mapping[bytes, int]], dict[str, TopicPartitions]]
