"""kafka-cluster, kafka-broker-api-versions, kafka-features, kafka-log-dirs, kafka-metadata-quorum,
kafka-leader-election, kafka-reassign-partitions"""

from __future__ import annotations

import json
import re


def test_the_cluster_id(run):
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", run("kafka-cluster", "cluster-id").stdout)


def test_the_endpoints(run, kafka_server):
    header, line = run("kafka-cluster", "list-endpoints").stdout.splitlines()
    assert header.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    node, host, port, rack, state, kind = line.split()
    assert (node, f"{host}:{port}") == (str(kafka_server.node_id), kafka_server.bootstrap)
    assert (rack, state, kind) == ("null", "unfenced", "broker")


def test_broker_api_versions_are_all_usable(run, kafka_server):
    output = run("kafka-broker-api-versions").stdout
    assert output.startswith(
        f"{kafka_server.bootstrap} (id: {kafka_server.node_id} rack: null isFenced: false) -> ("
    )
    usable = dict(re.findall(r"(\w+)\(\d+\): .*\[usable: (\d+)\]", output))
    expected = {
        "Produce": "13", "Fetch": "18", "ListOffsets": "11", "Metadata": "13", "ApiVersions": "4",
        "CreateTopics": "7", "DeleteTopics": "6", "DeleteRecords": "2", "InitProducerId": "5",
        "DescribeConfigs": "4", "AlterConfigs": "2", "IncrementalAlterConfigs": "1", "DescribeLogDirs": "5",
        "CreatePartitions": "3", "ElectLeaders": "2", "AlterPartitionReassignments": "1",
        "ListPartitionReassignments": "0", "DescribeCluster": "2", "DescribeQuorum": "2",
        "UpdateFeatures": "2", "DescribeTopicPartitions": "0", "ListConfigResources": "1",
        "OffsetForLeaderEpoch": "4", "FindCoordinator": "6",
    }  # fmt: skip
    assert {name: usable.get(name) for name in expected} == expected


def test_features_are_described(run):
    lines = run("kafka-features", "describe").stdout.splitlines()
    features = {}
    for line in lines:
        fields = dict(re.findall(r"(\w+): (\S+)", line))
        features[fields["Feature"]] = fields
    assert features["metadata.version"]["FinalizedVersionLevel"] == "4.3-IV0"
    assert features["group.version"]["SupportedMaxVersion"] == "1"


def test_a_feature_upgrade_is_validated(run):
    output = run("kafka-features", "upgrade", "--metadata", "4.3-IV0", "--dry-run").stdout
    assert "metadata.version can be upgraded to 30" in output
    unknown = run("kafka-features", "upgrade", "--feature", "no.such=1", "--dry-run", ok=False)
    assert "Can not upgrade no.such to 1." in unknown.stdout


def test_log_directories(run, kafka_server, new_topic):
    topic = new_topic(partitions=2)
    run("kafka-console-producer", "--topic", topic, stdin="x" * 1000)
    *text, document = run("kafka-log-dirs", "--describe", "--topic-list", topic).stdout.splitlines()
    assert text[-1] == f"Received log directory information from brokers {kafka_server.node_id}"
    (broker,) = json.loads(document)["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["error"] is None
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert sizes.keys() == {f"{topic}-0", f"{topic}-1"}
    assert 1000 < sum(sizes.values()) < 1200
    assert {(each["offsetLag"], each["isFuture"]) for each in directory["partitions"]} == {(0, False)}


def test_the_metadata_quorum(run, kafka_server):
    status = dict(re.findall(r"(\w+):\s+(.*)", run("kafka-metadata-quorum", "describe", "--status").stdout))
    assert status["LeaderId"] == str(kafka_server.node_id)
    assert status["MaxFollowerLag"] == "0"
    assert json.loads(status["CurrentVoters"])[0]["id"] == kafka_server.node_id
    header, line = run("kafka-metadata-quorum", "describe", "--replication").stdout.splitlines()
    assert header.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert (line.split()[0], line.split()[-1]) == (str(kafka_server.node_id), "Leader")


def test_leader_elections(run, new_topic):
    topic = new_topic()
    for kind in ("preferred", "unclean"):
        output = run(
            "kafka-leader-election", "--election-type", kind, "--topic", topic, "--partition", "0"
        ).stdout
        assert output == f"Valid replica already elected for partitions {topic}-0\n"
    run("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")


def test_a_leader_election_in_an_unknown_topic_fails(run, topic):
    options = ["--election-type", "preferred", "--topic", topic, "--partition", "0"]
    assert "UnknownTopicOrPartitionException" in run("kafka-leader-election", *options, ok=False).stdout


def test_reassignments(run, kafka_server, new_topic, json_file):
    topic, node = new_topic(partitions=2), kafka_server.node_id
    topics = json_file({"topics": [{"topic": topic}], "version": 1})
    generated = run(
        "kafka-reassign-partitions",
        "--generate",
        "--topics-to-move-json-file",
        topics,
        "--broker-list",
        str(node),
    ).stdout.strip()
    proposed = json.loads(generated.splitlines()[-1])
    assert [each["replicas"] for each in proposed["partitions"]] == [[node], [node]]
    plan = json_file(proposed)
    executed = run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan).stdout
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in executed
    verified = run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", plan).stdout
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert run("kafka-reassign-partitions", "--list").stdout == "No partition reassignments found.\n"
    cancelled = run("kafka-reassign-partitions", "--cancel", "--reassignment-json-file", plan).stdout
    assert "None of the specified partition reassignments are active." in cancelled


def test_a_reassignment_to_an_unknown_broker_fails(run, new_topic, json_file):
    plan = json_file({"version": 1, "partitions": [{"topic": new_topic(), "partition": 0, "replicas": [9]}]})
    failed = run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan, ok=False)
    assert "Unknown broker id 9" in failed.stdout
