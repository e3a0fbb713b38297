"""Topics, configs and groups, from code in the process."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbroker.local import LocalBroker, NewRecord, ResetTo, TopicDescription, TopicPartition
from kbroker.local.errors import (
    GroupIdNotFound,
    InvalidConfig,
    InvalidPartitions,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    NonEmptyGroup,
    PolicyViolation,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from tests.local.scenario import scenario

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


@scenario
async def test_a_topic_is_made_described_grown_and_deleted(tmp_path: Path) -> None:
    async with LocalBroker(data=tmp_path / "data") as broker:
        configs = {"retention.ms": 1000, "cleanup.policy": ["compact", "delete"]}
        made = await broker.create_topic("t", partitions=2, configs=configs)
        told = {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
        assert made == TopicDescription("t", made.topic_id, 2, told, internal=False)
        assert await broker.describe_topic("t") == made
        assert (await broker.add_partitions("t", 3)).partitions == 3
        await broker.create_topic("other")
        assert [each.name for each in await broker.topics()] == ["other", "t"]
        assert [each.name for each in await broker.topics("t")] == ["t"]
        await broker.publish_each([NewRecord("t", b"x", key=b"k", partition=1) for _ in range(3)])
        offsets = [each.offsets for each in await broker.partitions("t")]
        assert [each.log_end_offset for each in offsets] == [0, 3, 0]
        assert offsets[1].size_bytes
        await broker.delete_topic("t")
        with pytest.raises(UnknownTopicOrPartition):
            await broker.describe_topic("t")


@scenario
async def test_a_topic_that_cannot_be_made_says_why() -> None:
    async with LocalBroker() as broker:
        await broker.create_topic("t")
        with pytest.raises(TopicAlreadyExists):
            await broker.create_topic("t")
        assert (await broker.create_topic("t", partitions=7, if_not_exists=True)).partitions == 1
        for refused, arguments in (
            (InvalidTopicException, {"name": "a/b"}),
            (InvalidPartitions, {"name": "u", "partitions": 0}),
            (PolicyViolation, {"name": "u", "partitions": 20_000}),
            (InvalidConfig, {"name": "u", "configs": {"no.such": 1}}),
            (InvalidConfig, {"name": "u", "configs": {"retention.ms": "long"}}),
        ):
            with pytest.raises(refused):
                await broker.create_topic(**arguments)  # type: ignore[arg-type]
        with pytest.raises(InvalidPartitions):
            await broker.add_partitions("t", 1)
        with pytest.raises(UnknownTopicOrPartition):
            await broker.delete_topic("u")
    async with LocalBroker(configs={"delete.topic.enable": False}) as broker:
        await broker.create_topic("t")
        with pytest.raises(TopicDeletionDisabled):
            await broker.delete_topic("t")


@scenario
async def test_records_are_deleted_from_the_front() -> None:
    async with LocalBroker() as broker:
        await broker.publish_each([NewRecord("t", str(number)) for number in range(5)])
        assert await broker.delete_records("t", 0, 2) == 2
        assert [each.text() for each in (await broker.fetch("t")).records] == ["2", "3", "4"]
        assert await broker.delete_records("t", 0, "latest") == 5
        assert (await broker.fetch("t")).records == []
        with pytest.raises(UnknownTopicOrPartition):
            await broker.delete_records("t", 1, 0)


@scenario
async def test_configs_are_described_and_altered() -> None:
    async with LocalBroker(configs={"log.retention.ms": 5000}) as broker:
        await broker.create_topic("t")

        async def value(what: str, config: str, name: str = "") -> tuple[str | None, str]:
            (found,) = [each for each in await broker.configs(what, name) if each.name == config]  # type: ignore[arg-type]
            return found.value, found.source.name

        assert await value("topic", "retention.ms", "t") == ("5000", "STATIC_BROKER_CONFIG")
        await broker.alter_configs("topic", "t", values={"retention.ms": 7000, "max.message.bytes": 100})
        assert await value("topic", "retention.ms", "t") == ("7000", "TOPIC_CONFIG")
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            await broker.publish("t", b"x" * 200)
        await broker.alter_configs("topic", "t", values={"max.message.bytes": None, "retention.ms": None})
        await broker.publish("t", b"x" * 200)
        with pytest.raises(InvalidConfig):
            await broker.alter_configs("topic", "t", values={"retention.ms": "long"}, validate_only=True)
        await broker.alter_configs("topic", "t", values={"retention.ms": 1}, validate_only=True)
        assert await value("topic", "retention.ms", "t") == ("5000", "STATIC_BROKER_CONFIG")
        await broker.alter_configs("cluster", values={"log.retention.ms": 9000})
        assert (await value("broker", "log.retention.ms"))[0] == "9000"
        await broker.alter_configs("group", "g", values={"consumer.session.timeout.ms": 50_000})
        assert (await value("group", "consumer.session.timeout.ms", "g"))[0] == "50000"
        with pytest.raises(UnknownTopicOrPartition):
            await broker.configs("topic", "none")
        for wrong in (("broker", "1"), ("listener", "x")):
            with pytest.raises(ValueError):  # noqa: PT011
                await broker.configs(*wrong)  # type: ignore[arg-type]


@scenario
async def test_a_group_is_described_with_its_lag() -> None:
    async with LocalBroker() as broker:
        await broker.create_topic("t", partitions=2)
        await broker.publish_each([NewRecord("t", str(number), partition=number % 2) for number in range(10)])
        async with broker.subscribe("t", group="g", client_id="me") as records:
            taken = [await anext(records) for _ in range(3)]
            await records.commit()
            group = await broker.describe_group("g")
            assert (group.type, group.state) == ("consumer", "Stable")
            (member,) = group.members
            assert (member.client_id, member.assignment) == ("me", (P0, P1))
            lag = await broker.lag("g")
            assert lag.total == 7
            assert {each.partition: each.lag for each in lag.partitions} == {
                partition: 5 - sum(each.partition == partition for each in taken) for partition in (0, 1)
            }
            with pytest.raises(NonEmptyGroup):
                await broker.delete_group("g")
            with pytest.raises(UnknownMemberId):
                await broker.commit("g", {P0: 0})
            with pytest.raises(NonEmptyGroup):
                await broker.reset_offsets("g", "earliest")
        assert [(each.group_id, each.state) for each in await broker.groups()] == [("g", "Empty")]
        assert await broker.groups("x") == await broker.groups(states=["Stable"]) == []
        await broker.delete_group("g")
        for call in (broker.describe_group("g"), broker.lag("g"), broker.delete_group("g")):
            with pytest.raises(GroupIdNotFound):
                await call
        assert await broker.committed("g") == {}


@scenario
async def test_offsets_of_a_group_are_set_from_outside() -> None:
    async with LocalBroker() as broker:
        await broker.create_topic("t", partitions=2)
        await broker.publish_each([NewRecord("t", "x", partition=0, timestamp=1000) for _ in range(5)])

        async def offsets() -> dict[TopicPartition, int]:
            return {at: each.offset for at, each in (await broker.committed("g")).items()}

        await broker.commit("g", {P0: 3, P1: 0})
        assert await offsets() == {P0: 3, P1: 0}
        with pytest.raises(UnknownTopicOrPartition):
            await broker.commit("g", {TopicPartition("none", 0): 3})
        moment = datetime.fromtimestamp(1, UTC)
        for to, wanted in (("latest", 5), ("earliest", 0), (2, 2), (ResetTo("shift", 2), 4), (moment, 0)):
            (change, _) = await broker.reset_offsets("g", to)  # type: ignore[arg-type]
            assert change[:2] == P0
            assert change.after == wanted
            assert (await offsets())[P0] == wanted
        await broker.reset_offsets("g", 4, partitions=[P0], dry_run=True)
        assert (await offsets())[P0] == 0
        await broker.reset_offsets("g", 1, topics=["t"])
        await broker.delete_offsets("g", [P1])
        assert await offsets() == {P0: 1}
        async with broker.subscribe("t", group="g") as records:
            assert (await anext(records)).offset == 1
        with pytest.raises(InvalidRequest):
            await broker.reset_offsets("other", "latest")
        with pytest.raises(ValueError, match="start"):
            await broker.reset_offsets("g", "middle")  # type: ignore[arg-type]


@scenario
async def test_what_a_user_changes_is_told_to_the_audit_log_and_what_the_owner_does_is_not(
    tmp_path: Path,
) -> None:
    log = tmp_path / "audit.log"
    async with LocalBroker(configs={"kbroker.audit.log.file": str(log)}) as broker:
        await broker.create_topic("owners")
        ada = broker.as_user("ada")
        await ada.create_topic("t")
        await ada.alter_configs("topic", "t", values={"retention.ms": 1000})
        await ada.commit("g", {P0: 0})
        await ada.delete_topic("t")
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(each["resource_type"], each["resource"]) for each in told] == [
        ("TOPIC", "t"),
        ("TOPIC", "t"),
        ("GROUP", "g"),
        ("TOPIC", "t"),
    ]
    assert {each["principal"] for each in told} == {"User:ada"}
