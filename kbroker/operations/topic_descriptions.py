"""Topics as they are listed and described to who may describe them."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation
from kbroker.topics.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_by_name = attrgetter("name")

EVERY_TOPIC = 1 << 31
"""As a limit: for answers that have no pages."""


class TopicPage(NamedTuple):
    topics: list[Topic]
    """Sorted by name."""
    more: bool
    """Whether there are others behind the last."""


def list_topics(resources: Resources, *, limit: int, prefix: str = "", after: str = "") -> Steps[TopicPage]:
    """The first topics behind ``after`` whose names begin with the prefix."""
    page: list[Topic] = []
    room = limit + 1
    for topic in resources.each_topic(AclOperation.DESCRIBE):
        if topic is not None and topic.name > after and topic.name.startswith(prefix):
            page.append(topic)
            if len(page) >= 2 * room:  # what is sorted at once stays short, however many topics there are
                page.sort(key=_by_name)
                del page[room:]
        yield None
    page.sort(key=_by_name)
    return TopicPage(page[:limit], len(page) > limit)


def replication_factor(resources: Resources, topic: Topic) -> int:
    return len(resources.broker.cluster.replicas(topic, 0))


def is_internal(topic: Topic) -> bool:
    """Whether it is one of Kafka's own."""
    return topic.name in INTERNAL_TOPICS
