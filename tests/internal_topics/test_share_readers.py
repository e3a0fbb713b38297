"""A share group reads an internal topic: Kafka lets it."""

from __future__ import annotations

from kbroker.internal_topics.topic import IDLE_MS
from kbroker.transactions.offsets_partition import offsets_partition
from tests.handlers.committed_offsets import commit
from tests.handlers.share_members import ACCEPT, ShareMember, acquired, initialize

from .reader import EARLIEST, OFFSETS, offset_at


def test_a_share_group_reads_it_and_begins_anew_with_it(cluster):
    cluster.create("t")
    commit(cluster, 9, "t", group_id="other")
    partition = offsets_partition("other", 50)
    initialize(cluster, cluster.broker.topics.get(OFFSETS))
    member = ShareMember(cluster, cluster.broker.topics.get(OFFSETS))
    first = offset_at(cluster, OFFSETS, partition, EARLIEST)
    assert acquired(member.fetch(partition)) == {partition: [(first, first, 1)]}
    member.acknowledge({partition: [(first, first, [ACCEPT])]})
    cluster.now_ms += IDLE_MS
    for callback in list(cluster.scheduler.waiting):
        callback()  # among them: nobody has read for long
    again = offset_at(cluster, OFFSETS, partition, EARLIEST)
    assert again > first
    member.fetch()  # finds that it is behind the beginning
    assert acquired(member.fetch()) == {partition: [(again, again, 1)]}
