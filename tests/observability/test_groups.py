"""Groups, lag in seconds, share groups and transactions, of a broker in the process."""

from __future__ import annotations

from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.coordinators.transactions.transaction import TopicPartition
from kbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kbroker.requests.long_requests import LongRequests
from tests.handlers.conftest import NOW_MS, Cluster
from tests.handlers.share_members import ACCEPT, REJECT, RELEASE, ShareMember, configure, initialize
from tests.support.metrics import scraped

LAG = "kbroker_consumergroup_lag_seconds"
DEAD = "kafka_server_sharegroupmetrics_deadletterqueue"


def commit(cluster: Cluster, group: str, topic: str, offset: int, partition: int = 0) -> None:
    request = CommitRequest(group, [NewOffset(topic, partition, offset)])
    cluster.broker.groups.offsets.commit(request, cluster.now_ms)
    cluster.broker.groups.tick(cluster.now_ms)


def test_looking_makes_no_coordinator(cluster: Cluster) -> None:
    scraped(cluster.broker)
    assert not {"groups", "transactions", "shares", "share_states"} & cluster.broker.__dict__.keys()


def test_lag_in_seconds_is_the_age_of_the_record_that_is_read_next(cluster: Cluster) -> None:
    cluster.create("t")
    for seconds_ago in (50, 30, 10):
        cluster.produce("t", NOW_MS - seconds_ago * 1000)
    at = {"consumergroup": "g", "topic": "t", "partition": "0"}
    for offset, expected in ((0, 50.0), (1, 30.0), (2, 10.0), (3, 0.0)):
        commit(cluster, "g", "t", offset)
        assert scraped(cluster.broker).of(LAG, **at) == expected
    commit(cluster, "g", "t", 2)
    cluster.now_ms += 5000
    assert scraped(cluster.broker).of(LAG, **at) == 15.0


def test_a_group_behind_the_log_start_reads_on_from_there(cluster: Cluster) -> None:
    cluster.create("t")
    cluster.produce("t", NOW_MS - 50_000)
    cluster.produce("t", NOW_MS - 10_000)
    commit(cluster, "g", "t", 0)
    cluster.broker.find_log("t", 0).delete_records_before(1)
    assert scraped(cluster.broker).of(LAG, consumergroup="g", topic="t", partition="0") == 10.0


def test_lag_of_a_deleted_topic_is_not_told(cluster: Cluster) -> None:
    topic = cluster.create("t")
    cluster.produce("t", NOW_MS)
    commit(cluster, "g", "t", 0)
    assert scraped(cluster.broker).labels(LAG)
    cluster.broker.topics.delete(topic)
    assert not scraped(cluster.broker).labels(LAG)


def test_groups_are_counted_by_type_and_state_and_so_are_rebalances(cluster: Cluster) -> None:
    cluster.create("t")
    commit(cluster, "simple", "t", 0)
    joining = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = cluster.send(joining, 4)
    joining.member_id = answer.member_id
    cluster.send(joining, 4)
    cluster.now_ms += 5000
    cluster.broker.groups.tick(cluster.now_ms)
    found = scraped(cluster.broker)
    assert found.of("kbroker_groups", type="classic", state="Empty") == 1
    assert found.of("kbroker_groups", type="classic", state="CompletingRebalance") == 1
    assert found.of("kbroker_group_rebalances_total", type="classic") == 1
    assert found.of("kafka_consumergroup_members", consumergroup="g") == 1


def test_share_groups_tell_what_became_of_their_records(cluster: Cluster) -> None:
    topic = cluster.create("t")
    initialize(cluster, topic)
    cluster.create("dlq.t", errors_deadletterqueue_group_enable="true")
    configure(cluster, errors_deadletterqueue_topic_name="dlq.t")
    cluster.produce("t", *[NOW_MS] * 10)
    member = ShareMember(cluster, topic)
    member.fetch(0)
    at = {"group": "g", "topic": "t", "partition": "0"}
    found = scraped(cluster.broker)
    assert found.of("kbroker_share_in_flight_records", **at) == 10
    assert found.of("kbroker_share_acquired_records", **at) == 10
    assert found.of("kbroker_share_lag_records", **at) == 10
    assert found.of("kbroker_share_deliveries_total", group="g", delivery="1") == 10
    member.acknowledge({0: [(0, 4, [ACCEPT]), (5, 6, [RELEASE]), (7, 9, [REJECT])]})
    member.fetch(0)
    found = scraped(cluster.broker)
    assert found.of("kbroker_share_deliveries_total", group="g", delivery="2") == 2
    assert found.of("kbroker_share_acquired_records", **at) == 2
    assert found.of("kbroker_share_acknowledged_records_total", group="g") == 5
    assert found.of("kbroker_share_released_records_total", group="g") == 2
    assert found.of("kbroker_share_archived_records_total", group="g") == 3
    assert found.of(f"{DEAD}recordcount_total", group="g") == 3
    assert found.of(f"{DEAD}totalproducerequests_total", group="g") == 1
    assert found.of(f"{DEAD}failedproducerequests_total", group="g") == 0


def test_open_transactions_and_the_age_of_the_oldest(cluster: Cluster) -> None:
    cluster.create("t")
    coordinator = cluster.broker.transactions
    for number in range(2):
        name = f"tx{number}"
        producer = coordinator.init_producer_id(name, 60_000, None, cluster.now_ms).result()
        coordinator.add_partitions(name, producer, [TopicPartition("t", 0)], 2, cluster.now_ms).result()
        cluster.now_ms += 4000
    found = scraped(cluster.broker)
    assert found.of("kbroker_open_transactions", state="Ongoing") == 2
    assert found.of("kbroker_oldest_transaction_seconds") == 8


def test_two_scrapes_at_a_time_tell_all(cluster: Cluster) -> None:
    cluster.create("t", partitions=1000)
    running = [cluster.broker.exposition.scrape(openmetrics=False) for _ in range(2)]
    texts = [b"", b""]
    while not all(scrape.ended for scrape in running):
        for number, scrape in enumerate(running):
            if not scrape.ended:
                part = LongRequests(cluster.scheduler).run(scrape.part())
                assert isinstance(part, bytes)
                texts[number] += part
    for text in texts:
        assert text.count(b"\nkafka_topic_partition_current_offset{") == 1000
        assert text.count(b"\nkafka_log_log_size{") == 1000
