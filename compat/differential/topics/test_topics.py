"""CreateTopics, DeleteTopics, CreatePartitions, Metadata, DescribeTopicPartitions."""

from __future__ import annotations

import pytest

from compat.harness.side import versions
from compat.harness.waiting import eventually

NODE = 1
# kbroker flushes every second; a new Kafka cluster sets min.insync.replicas as a cluster-wide default.
OWN_DEFAULTS = {"flush.ms", "min.insync.replicas"}


def create(side, *topics, version=7, **options):
    return side.ask("CreateTopics", version, {"Topics": list(topics), "timeoutMs": 10_000, **options})


def wanted(name, partitions=1, factor=1, assignments=(), configs=()):
    return {
        "Name": name,
        "NumPartitions": partitions,
        "ReplicationFactor": factor,
        "Assignments": [{"PartitionIndex": index, "BrokerIds": list(ids)} for index, ids in assignments],
        "Configs": [{"Name": key, "Value": value} for key, value in configs],
    }


def without_ids(answer):
    """Topic ids of topics that a test has just made are not known by name; defaults may be kbroker's own."""
    for topic in answer["Topics"] if "Topics" in answer else answer["Responses"]:
        if isinstance(topic.get("TopicId"), bytes):
            topic["TopicId"] = any(topic["TopicId"])
        if topic.get("Configs"):
            topic["Configs"] = [each for each in topic["Configs"] if each["Name"] not in OWN_DEFAULTS]
    return answer


REFUSED = {
    "empty name": wanted(""),
    "dot": wanted("."),
    "dots": wanted(".."),
    "space": wanted("a b"),
    "slash": wanted("a/b"),
    "non-ascii": wanted("ü"),
    "too long": wanted("x" * 250),
    "no partitions": wanted("{}", 0),
    "minus two partitions": wanted("{}", -2),
    "factor 0": wanted("{}", 1, 0),
    "factor -2": wanted("{}", 1, -2),
    "factor 2": wanted("{}", 1, 2),
    "unknown config": wanted("{}", configs=[("no.such", "1")]),
    "null config": wanted("{}", configs=[("retention.ms", None)]),
    "empty config value": wanted("{}", configs=[("retention.ms", "")]),
    "bad long": wanted("{}", configs=[("retention.ms", "1.5")]),
    "below range": wanted("{}", configs=[("retention.ms", "-2")]),
    "bad boolean": wanted("{}", configs=[("preallocate", "yes")]),
    "bad list": wanted("{}", configs=[("cleanup.policy", "delete,burn")]),
    "empty cleanup.policy": wanted("{}", configs=[("cleanup.policy", "")]),
    "bad codec": wanted("{}", configs=[("compression.type", "brotli")]),
    "bad level": wanted("{}", configs=[("compression.gzip.level", "10")]),
    "bad ratio": wanted("{}", configs=[("min.cleanable.dirty.ratio", "1.1")]),
    "bad timestamp type": wanted("{}", configs=[("message.timestamp.type", "createtime")]),
    "segment too small": wanted("{}", configs=[("segment.bytes", "1048575")]),
    "lag upside down": wanted("{}", configs=[("min.compaction.lag.ms", "9"), ("max.compaction.lag.ms", "5")]),
    "remote storage off": wanted("{}", configs=[("remote.storage.enable", "true")]),
    "throttled replicas": wanted("{}", configs=[("leader.replication.throttled.replicas", "x")]),
    "unknown broker": wanted("{}", -1, -1, [(0, [99])]),
    "duplicate broker": wanted("{}", -1, -1, [(0, [NODE, NODE])]),
    "no broker": wanted("{}", -1, -1, [(0, [])]),
    "negative broker": wanted("{}", -1, -1, [(0, [-1])]),
    "gap in partitions": wanted("{}", -1, -1, [(0, [NODE]), (2, [NODE])]),
    "not from zero": wanted("{}", -1, -1, [(1, [NODE])]),
    "same partition twice": wanted("{}", -1, -1, [(0, [NODE]), (0, [NODE])]),
    "assignment and count": wanted("{}", 1, -1, [(0, [NODE])]),
    "assignment and factor": wanted("{}", -1, 1, [(0, [NODE])]),
    "unequal factors": wanted("{}", -1, -1, [(0, [NODE]), (1, [NODE, 2])]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_create_topics_refuses(pair, topic, case):
    bad = {**REFUSED[case], "Name": REFUSED[case]["Name"].replace("{}", topic)}
    pair.same(
        lambda side: {version: create(side, bad, version=version) for version in versions("CreateTopics")}
    )


ACCEPTED = {
    "defaults": wanted("{}", -1, -1),
    "assignments": wanted("{}", -1, -1, [(1, [NODE]), (0, [NODE])]),
    "null config": wanted("{}", configs=[("unclean.leader.election.enable", "TRUE")]),
    "spaces in a value": wanted("{}", configs=[("retention.ms", " 5 ")]),
    "list with spaces": wanted("{}", configs=[("cleanup.policy", "compact, delete")]),
    "same config twice": wanted("{}", configs=[("retention.ms", "5"), ("retention.ms", "6")]),
    "throttled replicas": wanted("{}", configs=[("leader.replication.throttled.replicas", "0:1,1:1")]),
    "throttled everywhere": wanted("{}", configs=[("follower.replication.throttled.replicas", "*")]),
    "every kind": wanted(
        "{}",
        configs=[
            ("segment.bytes", "1048576"),
            ("min.cleanable.dirty.ratio", "0.1"),
            ("compression.type", "zstd"),
            ("compression.zstd.level", "-7"),
            ("message.timestamp.type", "LogAppendTime"),
            ("retention.bytes", "-1"),
            ("min.insync.replicas", "2"),
        ],
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
@pytest.mark.parametrize("version", [2, 4, 5, 7])
def test_create_topics_accepts(pair, topic, case, version):
    good = {**ACCEPTED[case], "Name": ACCEPTED[case]["Name"].replace("{}", topic)}
    pair.same(lambda side: without_ids(create(side, good, version=version)))


def test_create_topics_validates_only_when_asked_to(pair, topic):
    def scenario(side):
        first = without_ids(create(side, wanted(topic, 3), validateOnly=True))
        second = without_ids(create(side, wanted(topic, 3)))
        third = without_ids(create(side, wanted(topic, 3), validateOnly=True))
        return first, second, third

    pair.same(scenario)


def test_create_topics_with_the_same_name_twice(pair, topic):
    pair.same(lambda side: without_ids(create(side, wanted(topic), wanted(topic))))


def test_create_topics_with_nothing(pair):
    pair.same(lambda side: side.every_version("CreateTopics", {"Topics": [], "timeoutMs": 1000}))


def test_names_that_collide(pair, topic):
    pair.same(
        lambda side: [
            without_ids(create(side, wanted(name)))
            for name in (f"{topic}.a_b", f"{topic}_a.b", f"{topic}.a.b", f"{topic}_a_b", f"{topic}.c")
        ]
    )


def test_names_that_kafka_uses_itself(pair):
    """__consumer_offsets and friends, and the metadata topic: asked only, not created."""
    names = ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"]
    pair.same(
        lambda side: [
            create(side, wanted(name), validateOnly=True)["Topics"][0]["ErrorCode"] for name in names[3:]
        ]
    )


# DeleteTopics


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_by_name(pair, topic, version):
    def scenario(side):
        side.create_topic(topic)
        names = [topic, f"{topic}-unknown", "bad name", ""]
        request = {"TopicNames": names, "Topics": [{"Name": name} for name in names], "TimeoutMs": 10_000}
        answer = side.ask("DeleteTopics", version, request)
        answer["Responses"].sort(key=lambda each: each["Name"])
        return answer

    pair.same(scenario)


def test_delete_topics_by_id(pair, topic):
    def scenario(side):
        topic_id = side.create_topic(topic)
        unknown = side.call(b"unknown topic id", "unknown id")
        ids = [{"Name": None, "TopicId": each} for each in (topic_id, unknown, bytes(16))]
        answer = side.ask("DeleteTopics", 6, {"Topics": ids, "TimeoutMs": 10_000})
        answer["Responses"].sort(key=repr)
        return answer

    pair.same(scenario)


def test_delete_topics_by_name_and_id_and_twice(pair, topic):
    def scenario(side):
        topic_id = side.create_topic(topic)
        both = [{"Name": topic, "TopicId": topic_id}]
        twice = [{"Name": topic}, {"Name": topic}]
        named = [{"Name": topic}, {"Name": None, "TopicId": topic_id}]
        answers = []
        for topics in (both, twice, named, [{"Name": topic}]):
            answer = side.ask("DeleteTopics", 6, {"Topics": topics, "TimeoutMs": 10_000})
            if isinstance(answer, dict):
                answer["Responses"].sort(key=repr)
            answers.append(answer)
        return answers

    pair.same(scenario)


# CreatePartitions


PARTITIONS = {
    "more": {"Count": 4},
    "the same": {"Count": 2},
    "fewer": {"Count": 1},
    "none": {"Count": 0},
    "minus one": {"Count": -1},
    "assigned": {"Count": 3, "Assignments": [{"BrokerIds": [NODE]}]},
    "too few assigned": {"Count": 4, "Assignments": [{"BrokerIds": [NODE]}]},
    "too many assigned": {"Count": 3, "Assignments": [{"BrokerIds": [NODE]}, {"BrokerIds": [NODE]}]},
    "assigned to nobody": {"Count": 3, "Assignments": [{"BrokerIds": []}]},
    "assigned to an unknown broker": {"Count": 3, "Assignments": [{"BrokerIds": [99]}]},
    "assigned twice": {"Count": 3, "Assignments": [{"BrokerIds": [NODE, NODE]}]},
    "no assignments": {"Count": 3, "Assignments": []},
    "null assignments": {"Count": 3, "Assignments": None},
}


@pytest.mark.parametrize("case", PARTITIONS)
@pytest.mark.parametrize("only_validate", [True, False], ids=["validate", "create"])
def test_create_partitions(pair, topic, case, only_validate):
    def scenario(side):
        side.create_topic(topic, 2)
        change = {"Name": topic, **PARTITIONS[case]}
        request = {"Topics": [change], "TimeoutMs": 10_000, "ValidateOnly": only_validate}
        return [side.ask("CreatePartitions", version, request) for version in (0, 3)]

    pair.same(scenario)


def test_create_partitions_of_unknown_and_repeated_topics(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        answers = []
        for names in ([f"{topic}-unknown"], [""], ["bad name"], [topic, topic]):
            changes = [{"Name": name, "Count": 3, "Assignments": None} for name in names]
            answer = side.ask("CreatePartitions", 3, {"Topics": changes, "TimeoutMs": 10_000})
            answers.append(answer)
        return answers

    pair.same(scenario)


# Metadata


def named(answer, *names):
    """A Metadata answer with only these topics, in this order."""
    topics = {topic["Name"]: topic for topic in answer["Topics"]}
    for topic in topics.values():
        topic["Partitions"].sort(key=lambda each: each["PartitionIndex"])
    return {**answer, "Topics": [topics.get(name) for name in names]}


def test_metadata_of_a_topic_at_every_version(pair, topic):
    def scenario(side):
        side.create_topic(topic, 3)
        answers = side.every_version(
            "Metadata", {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False}
        )
        return {version: named(answer, topic) for version, answer in answers.items()}

    pair.same(scenario)


def test_metadata_of_all_topics_and_of_none(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        everything = {
            version: named(side.ask("Metadata", version, {"Topics": None}), topic) for version in (1, 8, 12)
        }
        version_0 = named(side.ask("Metadata", 0, {"Topics": []}), topic)
        nothing = {version: side.ask("Metadata", version, {"Topics": []}) for version in range(1, 14)}
        return everything, version_0, nothing

    pair.same(scenario)


@pytest.mark.parametrize("name", ["{}-unknown", "bad name", "", "x" * 250, ".", "__consumer_offsets_"])
def test_metadata_of_a_topic_that_does_not_exist(pair, topic, name):
    request = {"Topics": [{"Name": name.replace("{}", topic)}], "AllowAutoTopicCreation": False}
    pair.same(lambda side: {v: side.ask("Metadata", v, request) for v in range(4, 14)})


def test_metadata_creates_a_missing_topic_when_allowed(pair, topic):
    """Kafka first answers that there is no leader yet; kbroker has it at once."""

    def scenario(side):
        request = {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": True}
        eventually(lambda: side.raw("Metadata", 9, request)["Topics"][0]["ErrorCode"] == 0)
        return side.ask("Metadata", 9, request)

    pair.same(scenario)


def test_metadata_of_a_topic_that_was_just_deleted_does_not_show_it_again_at_once(pair, topic):
    """Kafka would show a topic of that name at a later look, kbroker at one a second later."""

    def scenario(side):
        side.create_topic(topic)
        deleted = side.ask("DeleteTopics", 5, {"TopicNames": [topic], "TimeoutMs": 10_000})
        request = {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": True}
        return deleted, side.ask("Metadata", 9, request)

    pair.same(scenario)


def test_metadata_does_not_create_what_has_a_bad_name(pair, topic):
    request = {"Topics": [{"Name": "bad name"}, {"Name": "x" * 250}], "AllowAutoTopicCreation": True}
    pair.same(lambda side: side.ask("Metadata", 9, request))


def test_metadata_by_topic_id(pair, topic):
    def scenario(side):
        topic_id = side.create_topic(topic)
        unknown = side.call(b"unknown topic id", "unknown id")
        wanted_topics = {
            "its id": [{"Name": None, "TopicId": topic_id}],
            "unknown id": [{"Name": None, "TopicId": unknown}],
            "name and id": [{"Name": topic, "TopicId": topic_id}],
            "neither": [{"Name": None, "TopicId": bytes(16)}],
            "name, then id": [{"Name": topic}, {"Name": None, "TopicId": topic_id}],
        }
        return {
            (version, case): side.ask("Metadata", version, {"Topics": topics})
            for version in (10, 11, 12, 13)
            for case, topics in wanted_topics.items()
        }

    pair.same(scenario)


def test_metadata_with_authorized_operations(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        request = {
            "Topics": [{"Name": topic}],
            "IncludeClusterAuthorizedOperations": True,
            "IncludeTopicAuthorizedOperations": True,
        }
        return {version: side.ask("Metadata", version, request) for version in range(8, 14)}

    pair.same(scenario)


def test_metadata_of_the_same_topic_twice(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        return side.ask("Metadata", 9, {"Topics": [{"Name": topic}, {"Name": topic}]})

    pair.same(scenario)


# DescribeTopicPartitions


def test_describe_topic_partitions(pair, topic):
    def scenario(side):
        first, second = f"{topic}-a", f"{topic}-b"
        side.create_topic(first, 3)
        side.create_topic(second, 2)
        both = [{"Name": second}, {"Name": first}, {"Name": f"{topic}-unknown"}, {"Name": "bad name"}]
        answers = []
        for limit, cursor in [
            (100, None),
            (2, None),
            (1, {"TopicName": first, "PartitionIndex": 1}),
            (2, {"TopicName": second, "PartitionIndex": 0}),
            (0, None),
            (-1, None),
            (100, {"TopicName": second, "PartitionIndex": 99}),
            (100, {"TopicName": first, "PartitionIndex": -1}),
            (100, {"TopicName": f"{topic}-aa", "PartitionIndex": 0}),
        ]:
            request = {"Topics": both, "ResponsePartitionLimit": limit, "Cursor": cursor}
            answers.append(side.ask("DescribeTopicPartitions", 0, request))
        return answers

    pair.same(scenario)
