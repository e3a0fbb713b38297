"""confluent-kafka (librdkafka) with group.protocol=consumer."""

from __future__ import annotations

from confluent_kafka.admin import NewPartitions

from compat.clients.confluent.members import produce


def test_a_member_reads_everything_and_its_successor_goes_on_where_it_stopped(
    kafka_server, new_topic, topic, members
):
    new_topic(4)
    first, second = ([f"{part} {number}".encode() for number in range(100)] for part in "ab")
    produce(kafka_server.bootstrap, topic, 4, first)
    members.start("one", topic)
    members.poll_until(lambda: len(members.consumed) == 100)
    members.stop("one")
    produce(kafka_server.bootstrap, topic, 4, second)
    members.start("two", topic)
    members.poll_until(lambda: len(members.consumed) == 200)
    assert sorted(value for _, _, value in members.consumed) == sorted(first + second)


def test_members_share_the_partitions_and_take_over_from_each_other(new_topic, topic, members):
    new_topic(6)
    members.start("one", topic)
    members.poll_until(lambda: members.counts() == [6])
    members.start("two", topic)
    members.start("three", topic)
    members.poll_until(lambda: members.counts() == [2, 2, 2])
    assert len(members.owned("one") | members.owned("two") | members.owned("three")) == 6
    members.stop("two")
    members.poll_until(lambda: members.counts() == [3, 3])


def test_a_regular_expression_finds_topics_that_come_later(kafka_server, new_topic, topic, members):
    new_topic(1, name=f"{topic}-a")
    new_topic(1, name=f"{topic}.other")
    members.start("one", f"^{topic}-.*")
    members.poll_until(lambda: members.owned("one") == {(f"{topic}-a", 0)})
    new_topic(2, name=f"{topic}-b")
    members.poll_until(
        lambda: members.owned("one") == {(f"{topic}-a", 0), (f"{topic}-b", 0), (f"{topic}-b", 1)}
    )


def test_new_partitions_are_assigned(kafka_server, admin, new_topic, topic, members):
    new_topic(1)
    members.start("one", topic)
    members.poll_until(lambda: members.counts() == [1])
    (future,) = admin.create_partitions([NewPartitions(topic, 3)]).values()
    future.result(30)
    members.poll_until(lambda: members.counts() == [3])


def test_a_static_member_comes_back_to_its_partitions_and_nobody_else_moves(new_topic, topic, members):
    new_topic(4)
    members.start("one", topic, group_instance_id="i1")
    members.start("two", topic, group_instance_id="i2")
    members.poll_until(lambda: members.counts() == [2, 2])
    mine, others = members.owned("one"), members.owned("two")
    members.stop("one")
    members.start("one again", topic, group_instance_id="i1")
    members.poll_until(lambda: members.owned("one again") == mine)
    assert members.owned("two") == others


def test_the_range_assignor_co_partitions(new_topic, topic, members):
    a, b = new_topic(4, name=f"{topic}-a"), new_topic(4, name=f"{topic}-b")
    for name in ("one", "two"):
        members.start(name, a, b, group_remote_assignor="range")
    members.poll_until(lambda: members.counts() == [4, 4])
    for name in ("one", "two"):
        owned = members.owned(name)
        assert {p for t, p in owned if t == a} == {p for t, p in owned if t == b}


def test_a_group_is_described_with_its_members(admin, new_topic, topic, members):
    new_topic(2)
    members.start("one", topic)
    members.poll_until(lambda: members.counts() == [2])
    (described,) = (each.result(30) for each in admin.describe_consumer_groups([members.group]).values())
    assert (described.state.name, described.type.name) == ("STABLE", "CONSUMER")
    (member,) = described.members
    assert member.client_id == "one"
    assert {(each.topic, each.partition) for each in member.assignment.topic_partitions} == members.owned(
        "one"
    )
