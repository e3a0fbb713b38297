"""kafka-configs and kafka-client-metrics"""

from __future__ import annotations

import pytest

from compat.harness.waiting import eventually


def alter(run, kind, name, *options, ok=True):
    return run("kafka-configs", "--entity-type", kind, "--entity-name", name, "--alter", *options, ok=ok)


def describe(run, kind, name, *options):
    return run("kafka-configs", "--entity-type", kind, "--entity-name", name, "--describe", *options).stdout


def test_topic_configs_are_added_and_deleted(run, new_topic):
    topic = new_topic()
    added = alter(run, "topics", topic, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]")
    assert added.stdout == f"Completed updating config for topic {topic}.\n"
    described = eventually(lambda: describe(run, "topics", topic), lambda text: "retention.ms" in text)
    assert described.splitlines() == [
        f"Dynamic configs for topic {topic} are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms="
        "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000}",
    ]
    alter(run, "topics", topic, "--delete-config", "retention.ms,cleanup.policy")
    eventually(lambda: describe(run, "topics", topic), lambda text: text.count("\n") == 1)


def test_all_configs_of_a_topic_have_their_synonyms(run, new_topic):
    lines = describe(run, "topics", new_topic(), "--all").splitlines()
    assert len(lines) == 1 + 33
    assert (
        "  max.message.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}"
        in lines
    )


@pytest.mark.parametrize("config", ["retention.ms=soon", "no.such.config=1", "cleanup.policy=burn"])
def test_a_bad_topic_config_is_refused(run, new_topic, config):
    refused = alter(run, "topics", new_topic(), "--add-config", config, ok=False)
    assert "InvalidConfigurationException" in refused.stderr


def test_a_missing_topic_has_no_configs(run, topic):
    assert "doesn't exist" in describe(run, "topics", topic)


def test_dynamic_broker_configs(run, kafka_server):
    node = str(kafka_server.node_id)
    alter(run, "brokers", node, "--add-config", "log.cleaner.threads=2")
    expected = "log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2, "
    eventually(lambda: describe(run, "brokers", node), lambda text: expected in text)
    alter(run, "brokers", node, "--delete-config", "log.cleaner.threads")
    eventually(lambda: describe(run, "brokers", node), lambda text: "log.cleaner" not in text)


def test_a_read_only_broker_config_is_refused(run, kafka_server):
    refused = alter(run, "brokers", str(kafka_server.node_id), "--add-config", "node.id=9", ok=False)
    assert "InvalidRequestException" in refused.stderr


def test_all_configs_of_the_broker(run, kafka_server):
    described = describe(run, "brokers", str(kafka_server.node_id), "--all")
    node = kafka_server.node_id
    assert f"  node.id={node} sensitive=false synonyms={{STATIC_BROKER_CONFIG:node.id={node}" in described
    assert "  num.partitions=1 sensitive=false synonyms={DEFAULT_CONFIG:num.partitions=1}" in described


def test_cluster_wide_broker_defaults(run):
    def defaults(*options):
        return run("kafka-configs", "--entity-type", "brokers", "--entity-default", *options).stdout

    defaults("--alter", "--add-config", "log.retention.ms=500000000")
    expected = (
        "log.retention.ms=500000000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms="
    )
    eventually(lambda: defaults("--describe"), lambda text: expected in text)
    defaults("--alter", "--delete-config", "log.retention.ms")
    eventually(lambda: defaults("--describe"), lambda text: "log.retention.ms" not in text)


def test_broker_loggers(run, kafka_server):
    node = str(kafka_server.node_id)
    lines = describe(run, "broker-loggers", node).splitlines()
    assert lines[0] == f"Dynamic configs for broker-logger {node} are:"
    logger, _, level = lines[-1].split()[0].partition("=")
    assert level in {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"}
    alter(run, "broker-loggers", node, "--add-config", f"{logger}=ERROR")
    assert f"  {logger}=ERROR sensitive=false" in describe(run, "broker-loggers", node)
    alter(run, "broker-loggers", node, "--add-config", f"{logger}={level}")
    assert (
        "InvalidConfigurationException"
        in alter(run, "broker-loggers", node, "--add-config", f"{logger}=LOUD", ok=False).stderr
    )


def test_client_metrics_subscriptions(run, unique):
    name = unique("metrics")
    run(
        "kafka-client-metrics", "--alter", "--name", name, "--metrics", "org.apache.kafka.producer.",
        "--interval", "30000", "--match", "client_id=x",
    )  # fmt: skip
    eventually(lambda: name in run("kafka-client-metrics", "--list").stdout.splitlines())
    assert run("kafka-client-metrics", "--describe", "--name", name).stdout.splitlines() == [
        f"Client metrics configs for {name} are:",
        "  interval.ms=30000",
        "  match=client_id=x",
        "  metrics=org.apache.kafka.producer.",
    ]
    run("kafka-client-metrics", "--delete", "--name", name)
    eventually(lambda: name not in run("kafka-client-metrics", "--list").stdout.splitlines())


def test_a_bad_client_metrics_subscription_is_refused(run, unique):
    options = ["--alter", "--name", unique("metrics"), "--metrics", "x", "--interval", "1"]
    assert "InvalidRequestException" in run("kafka-client-metrics", *options, ok=False).stderr
