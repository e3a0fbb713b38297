from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kbroker.operations.topic_descriptions import TopicPage, is_internal, list_topics, replication_factor
from kbroker.security.acls import AclOperation
from tests.handlers.conftest import Cluster
from tests.handlers.test_resources import NobodyMay
from tests.support.steps import result_of

NAMES = st.sets(st.text("ab.", min_size=1, max_size=4).filter(lambda name: name not in (".", "..")))


def page(cluster: Cluster, **asked: Any) -> TopicPage:
    found: TopicPage = result_of(list_topics(cluster.broker.resources(cluster.session()), **asked))
    return found


@given(NAMES, st.text("ab.", max_size=2), st.integers(1, 4))
def test_pages_together_hold_every_topic_of_the_prefix_once_and_sorted(
    names: set[str], prefix: str, limit: int
) -> None:
    cluster = Cluster({"node.id": "1"})
    for name in names:
        cluster.create(name)
    seen: list[str] = []
    after, more = "", True
    while more:
        topics, more = page(cluster, limit=limit, prefix=prefix, after=after)
        assert len(topics) == limit if more else len(topics) <= limit
        seen += (topic.name for topic in topics)
        after = seen[-1] if seen else ""
    assert seen == sorted(name for name in names if name.startswith(prefix))


def test_topics_that_the_caller_may_not_describe_are_not_listed() -> None:
    class OnlyMine(NobodyMay):
        def authorize(self, caller: Any, operation: Any, resource_type: Any, name: str) -> bool:
            return operation is AclOperation.DESCRIBE and name.startswith("mine")

    cluster = Cluster({"node.id": "1"})
    for name in ("mine-1", "theirs", "mine-2"):
        cluster.create(name)
    cluster.broker.authorizer = OnlyMine()
    assert [topic.name for topic in page(cluster, limit=10).topics] == ["mine-1", "mine-2"]


def test_a_topic_has_one_replica_on_the_one_broker() -> None:
    cluster = Cluster({"node.id": "1"})
    topic = cluster.create("t")
    assert replication_factor(cluster.broker.own_resources, topic) == 1
    assert not is_internal(topic)
