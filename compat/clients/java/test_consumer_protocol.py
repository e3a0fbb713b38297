"""Kafka's own tools with group.protocol=consumer: the console consumer, and every view on such a group."""

from __future__ import annotations

from compat.clients.confluent.members import produce

CONSUMER_PROTOCOL = ("--command-property", "group.protocol=consumer")


def consume(run, topic, group, count, *options):
    result = run(
        "kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning",
        "--max-messages", str(count), "--timeout-ms", "30000", *CONSUMER_PROTOCOL, *options,
    )  # fmt: skip
    return result.stdout.splitlines()


def rows(output, *columns):
    """The named columns of a tool's table; rows of other suites' groups may lack some."""
    header, *lines = [line.split() for line in output.splitlines() if line.strip()]
    whole = [line for line in lines if len(line) >= len(header)]
    return [tuple(line[header.index(column)] for column in columns) for line in whole]


def test_the_console_consumer_reads_and_commits(kafka_server, run, new_topic, topic, unique):
    group = unique("group")
    new_topic(2)
    values = [f"value {number}" for number in range(20)]
    produce(kafka_server.bootstrap, topic, 2, [value.encode() for value in values])
    assert sorted(consume(run, topic, group, 20)) == sorted(values)
    described = run("kafka-consumer-groups", "--describe", "--group", group)
    assert rows(described.stdout, "TOPIC", "PARTITION", "CURRENT-OFFSET", "LAG") == [
        (topic, "0", "10", "0"),
        (topic, "1", "10", "0"),
    ]
    assert f"Consumer group '{group}' has no active members." in described.stderr
    state = run("kafka-consumer-groups", "--describe", "--group", group, "--state").stdout
    assert state.split()[-2:] == ["Empty", "0"]


def test_the_tools_show_a_running_group(run, new_topic, topic, members):
    new_topic(4)
    members.start("one", topic, group_instance_id="instance-1")
    members.poll_until(lambda: members.counts() == [4])
    listed = run("kafka-consumer-groups", "--list", "--type", "--state").stdout
    assert (members.group, "Consumer", "Stable") in rows(listed, "GROUP", "TYPE", "STATE")
    listed = run("kafka-groups", "--list", "--consumer").stdout
    assert (members.group, "Consumer", "consumer") in rows(listed, "GROUP", "TYPE", "PROTOCOL")
    shown = run(
        "kafka-consumer-groups", "--describe", "--group", members.group, "--members", "--verbose"
    ).stdout
    assert "instance-1" in shown
    assert f"{topic}:0,1,2,3" in shown
    shown = run(
        "kafka-consumer-groups", "--describe", "--group", members.group, "--state", "--verbose"
    ).stdout
    assert "uniform" in shown
    assert "Stable" in shown


def test_a_regular_expression_of_the_console_consumer(kafka_server, run, new_topic, topic, unique):
    new_topic(1, name=f"{topic}-a")
    produce(kafka_server.bootstrap, f"{topic}-a", 1, [b"x"])
    result = run(
        "kafka-console-consumer", "--include", f"{topic}-.*", "--group", unique("group"), "--from-beginning",
        "--max-messages", "1", "--timeout-ms", "30000", *CONSUMER_PROTOCOL,
    )  # fmt: skip
    assert result.stdout.splitlines() == ["x"]


def test_offsets_of_a_consumer_group_are_reset_and_the_group_deleted(
    kafka_server, run, new_topic, topic, unique
):
    group = unique("group")
    new_topic(1)
    produce(kafka_server.bootstrap, topic, 1, [b"a", b"b", b"c"])
    assert consume(run, topic, group, 3) == ["a", "b", "c"]
    run(
        "kafka-consumer-groups",
        "--reset-offsets",
        "--group",
        group,
        "--topic",
        topic,
        "--shift-by",
        "-2",
        "--execute",
    )
    assert consume(run, topic, group, 2) == ["b", "c"]
    run("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    deleted = run("kafka-consumer-groups", "--delete", "--group", group)
    assert f"('{group}')" in deleted.stdout
    assert group not in run("kafka-consumer-groups", "--list").stdout
