from __future__ import annotations


def test_the_cluster_has_one_broker_that_is_the_controller(admin, kafka_server):
    cluster = admin.describe_cluster()
    (broker,) = cluster["brokers"]
    assert broker["broker_id"] == kafka_server.node_id == cluster["controller_id"]
    assert f"{broker['host']}:{broker['port']}" == kafka_server.bootstrap
    assert len(cluster["cluster_id"]) == 22


def test_log_directories_show_the_size_of_every_partition(admin, new_topic, producer):
    topic = new_topic(partitions=2)
    producer(acks="all").send(topic, b"x" * 5000, partition=1).get(30)
    (broker,) = admin.describe_log_dirs()
    (directory,) = broker["log_dirs"]
    (described,) = [each for each in directory["topics"] if each["name"] == topic]
    sizes = {each["partition_index"]: each["partition_size"] for each in described["partitions"]}
    assert sizes[0] == 0
    assert 5000 < sizes[1] < 5200
    assert directory["total_bytes"] > directory["usable_bytes"] > 0


def test_the_metadata_quorum_has_one_leader(admin, kafka_server):
    quorum = admin.describe_metadata_quorum()
    (topic,) = quorum["topics"]
    (partition,) = topic["partitions"]
    assert (topic["topic_name"], partition["leader_id"]) == ("__cluster_metadata", kafka_server.node_id)
    assert [voter["replica_id"] for voter in partition["current_voters"]] == [kafka_server.node_id]


def test_no_partition_is_being_reassigned(admin):
    assert admin.list_partition_reassignments() == {}


def test_describe_topic_partitions_pages(admin, new_topic):
    topic = new_topic(partitions=5)
    page = admin.describe_topic_partitions([topic], response_partition_limit=3)
    assert [each["partition_index"] for each in page["topics"][0]["partitions"]] == [0, 1, 2]
    assert page["next_cursor"]["partition_index"] == 3
