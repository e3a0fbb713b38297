"""What the members of one group subscribe to: by name and by regular expression.

Invariants: `_names` and `_regexes` count the members that subscribe to each name and to each expression;
`_resolved` holds the matching topics of exactly the expressions in `_regexes`. A new expression is resolved
when it comes, and kept up to date topic by topic (`topic_created`, `topic_deleted`). One in `_may_see` finds
only what that lets it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from kbroker.coordinators.groups.environment import TopicView
from kbroker.coordinators.groups.modern_member import ModernMember
from kbroker.coordinators.groups.topic_regex import matching_topics


class Subscriptions:
    __slots__ = ("_may_see", "_names", "_regexes", "_resolved", "_topics")

    def __init__(self, topics: TopicView) -> None:
        self._topics = topics
        self._names: dict[str, int] = {}
        self._regexes: dict[str, int] = {}
        self._resolved: dict[str, frozenset[str]] = {}
        self._may_see: dict[str, Callable[[str], bool]] = {}

    def update(self, old: ModernMember | None, new: ModernMember | None) -> None:
        """Count `new` in place of `old`."""
        old_names = old.subscribed_topic_names if old else _NO_NAMES
        new_names = new.subscribed_topic_names if new else _NO_NAMES
        if old_names is not new_names:
            for name in new_names:
                _count(self._names, name, 1)
            for name in old_names:
                _count(self._names, name, -1)
        old_regex = old.subscribed_topic_regex if old else ""
        new_regex = new.subscribed_topic_regex if new else ""
        if old_regex != new_regex:
            if new_regex:
                _count(self._regexes, new_regex, 1)
                if new_regex not in self._resolved:
                    self._resolved[new_regex] = self._found(new_regex, self._topics.names())
            if old_regex:
                _count(self._regexes, old_regex, -1)
                if old_regex not in self._regexes:
                    del self._resolved[old_regex]
                    self._may_see.pop(old_regex, None)

    def restrict(self, regex: str, may_see: Callable[[str], bool]) -> bool:
        """From now on the expression finds only such topics; whether it found others."""
        if regex in self._may_see:
            return False
        self._may_see[regex] = may_see
        topics = self._resolved.get(regex, _NO_NAMES)
        seen = frozenset(filter(may_see, topics))
        if seen == topics:
            return False
        self._resolved[regex] = seen
        return True

    def _found(self, regex: str, topics: Iterable[str]) -> frozenset[str]:
        found = matching_topics(regex, topics)
        may_see = self._may_see.get(regex)
        return found if may_see is None else frozenset(filter(may_see, found))

    def __contains__(self, topic: str) -> bool:
        return topic in self._names or any(topic in topics for topics in self._resolved.values())

    def topic_created(self, topic: str) -> None:
        for regex, topics in self._resolved.items():
            if self._found(regex, (topic,)):
                self._resolved[regex] = topics | {topic}

    def topic_deleted(self, topic: str) -> None:
        for regex, topics in self._resolved.items():
            if topic in topics:
                self._resolved[regex] = topics - {topic}

    def topic_ids_of(self, member: ModernMember) -> frozenset[bytes]:
        """The ids of the existing topics that the member subscribes to."""
        names = member.subscribed_topic_names
        if member.subscribed_topic_regex:
            names = names | self._resolved.get(member.subscribed_topic_regex, _NO_NAMES)
        return frozenset(topic_id for name in names if (topic_id := self._topics.topic_id(name)) is not None)

    def partition_counts(self) -> dict[bytes, int]:
        """Of every existing topic that anybody subscribes to."""
        counts = {}
        for name in self._all_names():
            topic_id, partitions = self._topics.topic_id(name), self._topics.partition_count(name)
            if topic_id is not None and partitions is not None:
                counts[topic_id] = partitions
        return counts

    def metadata_hash(self) -> int:
        """Differs when a subscribed topic has appeared, vanished, been made anew or grown; 0 without any."""
        counts = self.partition_counts()
        if not counts:
            return 0
        digest = hashlib.blake2b(digest_size=8)
        for topic_id in sorted(counts):
            digest.update(topic_id)
            digest.update(counts[topic_id].to_bytes(4, "big"))
        # SQLite's and Kafka's integers have a sign.
        return int.from_bytes(digest.digest(), "big", signed=True)

    def _all_names(self) -> Iterator[str]:
        if not self._resolved:
            return iter(self._names)
        return iter(self._names.keys() | frozenset[str]().union(*self._resolved.values()))


def _count(counts: dict[str, int], key: str, step: int) -> None:
    count = counts.get(key, 0) + step
    if count:
        counts[key] = count
    else:
        del counts[key]


_NO_NAMES: frozenset[str] = frozenset()
