"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

import pytest

from compat.harness.waiting import eventually

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
STATIC = 4


def describe(side, kind, name, keys=None, version=4, **options):
    resource = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}
    answer = side.ask("DescribeConfigs", version, {"Resources": [resource], **options})
    if isinstance(answer, dict):
        for result in answer["Results"]:
            result["Configs"] = {each.pop("Name"): each for each in result["Configs"] or ()}
            for each in result["Configs"].values():
                if "Documentation" in each:
                    each["Documentation"] = bool(each["Documentation"])
    return answer


def incremental(side, kind, name, *operations, version=1, **options):
    configs = [{"Name": key, "ConfigOperation": op, "Value": value} for key, op, value in operations]
    resource = {"ResourceType": kind, "ResourceName": name, "Configs": configs}
    return side.ask("IncrementalAlterConfigs", version, {"Resources": [resource], **options})


def legacy(side, kind, name, *pairs, version=2, **options):
    configs = [{"Name": key, "Value": value} for key, value in pairs]
    resource = {"ResourceType": kind, "ResourceName": name, "Configs": configs}
    return side.ask("AlterConfigs", version, {"Resources": [resource], **options})


def without_own_defaults(answer):
    """kbroker flushes every second; a new Kafka cluster sets a cluster-wide min.insync.replicas."""
    for result in answer["Results"]:
        for name in ("flush.ms", "min.insync.replicas"):
            result["Configs"].pop(name, None)
    return answer


def own_configs(side, topic):
    """The topic's own configs: name -> value."""
    configs = describe(side, TOPIC, topic)["Results"][0]["Configs"]
    return {name: each["Value"] for name, each in configs.items() if each["ConfigSource"] == 1}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("options", [{}, {"IncludeSynonyms": True}, {"IncludeDocumentation": True}], ids=str)
def test_all_configs_of_a_topic(pair, topic, version, options):
    """Names, values, sources, types, synonyms and the presence of documentation."""

    def scenario(side):
        side.create_topic(
            topic, retention_ms="5000", segment_bytes="2000000", cleanup_policy="compact,delete"
        )
        answer = describe(side, TOPIC, topic, version=version, **options)
        return without_own_defaults(answer)

    pair.same(scenario)


KEYS = [
    None,
    [],
    ["retention.ms"],
    ["retention.ms", "no.such"],
    ["no.such"],
    ["retention.ms", "retention.ms"],
]


@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_some_configs_of_a_topic(pair, topic, keys):
    def scenario(side):
        side.create_topic(topic)
        answer = describe(side, TOPIC, topic, keys)
        return answer["Results"][0]["ErrorCode"], sorted(answer["Results"][0]["Configs"])

    pair.same(scenario)


UNKNOWN = [
    (TOPIC, "{}-unknown"),
    (TOPIC, ""),
    (TOPIC, "bad name"),
    (BROKER, "77"),
    (BROKER, "one"),
    (BROKER, "-1"),
    (BROKER_LOGGER, "77"),
    (BROKER_LOGGER, ""),
    (BROKER_LOGGER, "one"),
    (CLIENT_METRICS, "{}-unknown"),
    (CLIENT_METRICS, ""),
    (GROUP, ""),
    (0, "x"),
    (1, "x"),
    (3, "x"),
    (127, "x"),
    (-1, "x"),
]


@pytest.mark.parametrize(("kind", "name"), UNKNOWN)
def test_describing_what_does_not_exist(pair, topic, kind, name):
    def scenario(side):
        return {v: describe(side, kind, name.replace("{}", topic), version=v) for v in (1, 4)}

    pair.same(scenario)


@pytest.mark.parametrize(("kind", "name"), UNKNOWN)
def test_altering_what_does_not_exist(pair, topic, kind, name):
    def scenario(side):
        target = name.replace("{}", topic)
        if kind == CLIENT_METRICS:
            return incremental(side, kind, target, ("interval.ms", SET, "no"))
        return [
            incremental(side, kind, target, ("retention.ms", SET, "5"), version=v) for v in (0, 1)
        ], legacy(side, kind, target, ("retention.ms", "5"))

    pair.same(scenario)


# Where kbroker chooses otherwise: data directory, a flush every second, bounded memory, fixed
# listeners, buffers of sockets.
OWN_BROKER_CONFIGS = {
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.flush.scheduler.interval.ms",
    "min.insync.replicas",
    "queued.max.request.bytes",
    "socket.listen.backlog.size",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
}


def test_broker_configs_that_both_have_agree(pair):
    """Every config that kbroker shows is one of Kafka's, with its type, its default and its mutability."""

    def shown(side):
        """Static values are a broker's own, defaults are not."""
        configs = describe(side, BROKER, "1", IncludeSynonyms=True)["Results"][0]["Configs"]
        for config in configs.values():
            if config["ConfigSource"] == STATIC:
                config |= {"Value": None, "Synonyms": None}
        return configs

    def comparison(ours, kafkas):
        common = (ours.keys() & kafkas.keys()) - OWN_BROKER_CONFIGS
        assert len(common) >= 50
        for name in common:
            compared = set(ours[name])
            if STATIC in (ours[name]["ConfigSource"], kafkas[name]["ConfigSource"]):
                compared -= {"Value", "Synonyms", "ConfigSource"}
            assert {each: ours[name][each] for each in compared} == {
                each: kafkas[name][each] for each in compared
            }, name

    pair.compare(shown, comparison)


OPERATIONS = {
    "set": [("retention.ms", SET, "5000")],
    "set two": [("retention.ms", SET, "5000"), ("segment.ms", SET, "6000")],
    "set null": [("retention.ms", SET, None)],
    "set empty": [("retention.ms", SET, "")],
    "set bad": [("retention.ms", SET, "soon")],
    "set with spaces": [("retention.ms", SET, " 7000 ")],
    "set unknown": [("no.such", SET, "1")],
    "set no name": [("", SET, "1")],
    "one good, one bad": [("segment.ms", SET, "6000"), ("retention.ms", SET, "soon")],
    "the same twice": [("retention.ms", SET, "5000"), ("retention.ms", SET, "6000")],
    "delete what is set": [("max.message.bytes", DELETE, None)],
    "delete what is not set": [("retention.ms", DELETE, None)],
    "delete with a value": [("max.message.bytes", DELETE, "x")],
    "delete unknown": [("no.such", DELETE, None)],
    "append": [("cleanup.policy", APPEND, "compact")],
    "append what is there": [("cleanup.policy", APPEND, "delete")],
    "append nonsense": [("cleanup.policy", APPEND, "burn")],
    "append two": [("cleanup.policy", APPEND, "compact,delete")],
    "append nothing": [("cleanup.policy", APPEND, "")],
    "append null": [("cleanup.policy", APPEND, None)],
    "append to a number": [("retention.ms", APPEND, "5")],
    "append to unknown": [("no.such", APPEND, "5")],
    "subtract": [("cleanup.policy", SUBTRACT, "compact")],
    "subtract the last": [("cleanup.policy", SUBTRACT, "delete")],
    "subtract from a number": [("retention.ms", SUBTRACT, "5")],
    "subtract null": [("cleanup.policy", SUBTRACT, None)],
    "unknown operation": [("retention.ms", 4, "5")],
    "negative operation": [("retention.ms", -1, "5")],
    "nothing": [],
    "min above max": [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5")],
    "empty cleanup.policy": [("cleanup.policy", SET, "")],
    "remote storage": [("remote.storage.enable", SET, "true")],
}


@pytest.mark.parametrize("case", OPERATIONS)
def test_incremental_alterations_of_a_topic(pair, topic, case):
    def scenario(side):
        side.create_topic(topic, max_message_bytes="2000000")
        validated = incremental(side, TOPIC, topic, *OPERATIONS[case], ValidateOnly=True)
        answer = incremental(side, TOPIC, topic, *OPERATIONS[case])
        # A second alteration that is known to work shows that the first one has been applied.
        incremental(side, TOPIC, topic, ("file.delete.delay.ms", SET, "60001"))
        eventually(lambda: "file.delete.delay.ms" in own_configs(side, topic))
        return validated, answer, own_configs(side, topic)

    pair.same(scenario)


LEGACY = {
    "one": [("retention.ms", "5000")],
    "none": [],
    "null": [("retention.ms", None)],
    "bad": [("retention.ms", "soon")],
    "unknown": [("no.such", "1")],
    "the same twice": [("retention.ms", "5000"), ("retention.ms", "6000")],
    "good and bad": [("segment.ms", "6000"), ("retention.ms", "soon")],
}


@pytest.mark.parametrize("case", LEGACY)
def test_legacy_alterations_of_a_topic(pair, topic, case):
    def scenario(side):
        side.create_topic(topic, max_message_bytes="2000000")
        validated = legacy(side, TOPIC, topic, *LEGACY[case], ValidateOnly=True)
        answer = legacy(side, TOPIC, topic, *LEGACY[case])
        incremental(side, TOPIC, topic, ("file.delete.delay.ms", SET, "60001"))
        eventually(lambda: "file.delete.delay.ms" in own_configs(side, topic))
        return validated, answer, own_configs(side, topic)

    pair.same(scenario)


def test_the_same_resource_twice(pair, topic):
    """Not with AlterConfigs: Apache Kafka never answers that."""

    def scenario(side):
        side.create_topic(topic)
        change = {"Name": "retention.ms", "ConfigOperation": SET, "Value": "5000"}
        resource = {"ResourceType": TOPIC, "ResourceName": topic, "Configs": [change]}
        return side.ask("IncrementalAlterConfigs", 1, {"Resources": [resource, resource]})

    pair.same(scenario)


def test_a_resource_described_twice_is_answered_once_where_kafka_repeats_the_answer(pair, topic):
    """A known difference: repeats made small requests into huge answers."""

    def answers(side):
        asked = {"ResourceType": TOPIC, "ResourceName": topic, "ConfigurationKeys": ["retention.ms"]}
        side.create_topic(topic)
        results = side.ask("DescribeConfigs", 4, {"Resources": [asked, asked]})["Results"]
        return [[config["Name"] for config in result["Configs"]] for result in results]

    def comparison(ours, kafkas):
        assert ours == [["retention.ms"]]
        assert kafkas == [["retention.ms"]] * 2

    pair.compare(answers, comparison)


BROKER_OPERATIONS = {
    "a number": ("1", [("log.cleaner.threads", SET, "1")]),
    "too many threads at once": ("1", [("log.cleaner.threads", SET, "1000")]),
    "a bad number": ("1", [("log.cleaner.threads", SET, "many")]),
    "zero": ("1", [("log.cleaner.threads", SET, "0")]),
    "read only": ("1", [("node.id", SET, "5")]),
    "read only, by default": ("", [("node.id", SET, "5")]),
    "unknown": ("1", [("my.own.setting", SET, "5")]),
    "a topic's name": ("1", [("retention.ms", SET, "5")]),
    "per broker only, by default": ("", [("listeners", SET, "PLAINTEXT://:1")]),
    "a bad default": ("", [("log.retention.ms", SET, "soon")]),
    "below the range": ("", [("message.max.bytes", SET, "-1")]),
    "a list": ("", [("log.cleanup.policy", SET, "burn")]),
}


@pytest.mark.parametrize("case", BROKER_OPERATIONS)
def test_alterations_of_the_broker_are_validated(pair, case):
    name, operations = BROKER_OPERATIONS[case]
    pair.same(lambda side: incremental(side, BROKER, name, *operations, ValidateOnly=True))


def test_a_cluster_wide_default_shows_in_the_broker_and_in_topics(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        altered = incremental(side, BROKER, "", ("log.segment.bytes", SET, "50000000"))

        def topics_value():
            return describe(side, TOPIC, topic, ["segment.bytes"], IncludeSynonyms=True)

        def value(answer):
            return answer["Results"][0]["Configs"]["segment.bytes"]["Value"]

        during = eventually(topics_value, lambda answer: value(answer) == "50000000")
        broker = describe(side, BROKER, "1", ["log.segment.bytes"], IncludeSynonyms=True)
        default = describe(side, BROKER, "", ["log.segment.bytes"], IncludeSynonyms=True)
        deleted = incremental(side, BROKER, "", ("log.segment.bytes", DELETE, None))
        after = eventually(topics_value, lambda answer: value(answer) == "1073741824")
        return altered, during, broker, default, deleted, after

    pair.same(scenario)


DYNAMIC_CLIENT_METRICS = 7
METRICS = {
    "all three": [("metrics", SET, "a.,b."), ("interval.ms", SET, "1000"), ("match", SET, "client_id=x")],
    "interval too small": [("interval.ms", SET, "99")],
    "interval too large": [("interval.ms", SET, "3600001")],
    "bad interval": [("interval.ms", SET, "soon")],
    "bad match": [("match", SET, "nonsense")],
    "unknown match": [("match", SET, "colour=red")],
    "bad pattern": [("match", SET, "client_id=(")],
    "unknown": [("no.such", SET, "1")],
    "any metric": [("metrics", SET, "*")],
}


def is_set(configs):
    return any(config["ConfigSource"] == DYNAMIC_CLIENT_METRICS for config in configs.values())


@pytest.mark.parametrize("case", METRICS)
def test_client_metrics(pair, topic, case):
    def scenario(side):
        name = f"{topic}-metrics"
        altered = incremental(side, CLIENT_METRICS, name, *METRICS[case])
        if altered["Responses"][0]["ErrorCode"] == 0:
            eventually(lambda: is_set(describe(side, CLIENT_METRICS, name)["Results"][0]["Configs"]))
        described = describe(side, CLIENT_METRICS, name, IncludeSynonyms=True)
        incremental(side, CLIENT_METRICS, name, *[(key, DELETE, None) for key, _, _ in METRICS["all three"]])
        return altered, described

    pair.same(scenario)


@pytest.mark.parametrize(
    "operation",
    [(SET, "DEBUG"), (SET, "debug"), (SET, "LOUD"), (SET, ""), (SET, None), (DELETE, None), (APPEND, "INFO")],
    ids=str,
)
def test_broker_loggers(pair, operation):
    """The root logger exists everywhere; its level is put back."""

    def scenario(side):
        before = describe(side, BROKER_LOGGER, "1", ["root"])["Results"][0]["Configs"]["root"]["Value"]
        answer = incremental(side, BROKER_LOGGER, "1", ("root", *operation))
        entry = describe(side, BROKER_LOGGER, "1", ["root"])["Results"][0]["Configs"]["root"]
        incremental(side, BROKER_LOGGER, "1", ("root", SET, before))
        if entry["Value"] == before:
            entry["Value"] = "as before"
        return answer, entry

    pair.same(scenario)


@pytest.mark.parametrize(
    "types", [[], [TOPIC], [BROKER], [BROKER_LOGGER], [CLIENT_METRICS], [GROUP], [0], [99], [TOPIC, BROKER]]
)
def test_list_config_resources(pair, topic, types):
    def scenario(side):
        side.create_topic(topic)
        answer = side.ask("ListConfigResources", 1, {"ResourceTypes": types})
        found = {(each["ResourceType"], each["ResourceName"]) for each in answer["ConfigResources"]}
        return (
            answer["ErrorCode"],
            sorted(kind for kind, _ in found if kind != TOPIC),
            (TOPIC, topic) in found,
        )

    pair.same(scenario)
