"""Members of a share group made of raw requests. What they see is noted in a form that brokers share."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from compat.harness import wire
from compat.harness.batches import Record, batch, whole_batches
from compat.harness.connection import Connection
from compat.harness.raw_producer import find_coordinators
from compat.harness.side import Side
from compat.harness.waiting import eventually

GROUP_CONFIGS = 32
Values = dict[str, Any]
Ack = tuple[int, int, Sequence[int]]
Acks = dict[tuple[str, int], list[Ack]]


class ShareGroup:
    """A group for which all partitions of its topics are initialized, and the notes of a story."""

    def __init__(
        self,
        side: Side,
        group_id: str,
        topics: Mapping[str, int],
        *,
        initialize: bool = True,
        open_all: bool = True,
        **configs: str,
    ) -> None:
        """``topics``: letters and numbers of partitions. ``configs``: share.*, with _ for '.'."""
        self.side = side
        self.group_id = group_id
        self.notes: list[Any] = []
        self._connections: list[Connection] = []
        self.names = {letter: f"{group_id}-{letter}" for letter in topics}
        self.ids = {letter: side.create_topic(self.names[letter], count) for letter, count in topics.items()}
        self.configure(**{"share_auto_offset_reset": "earliest", **configs})
        if initialize:
            self.initialize(topics)
        if initialize and open_all:
            self.open_all(topics)

    def configure(self, **configs: str) -> None:
        altered = [
            {"Name": name.replace("_", "."), "ConfigOperation": 0, "Value": value}
            for name, value in configs.items()
        ]
        resource = {"ResourceType": GROUP_CONFIGS, "ResourceName": self.group_id, "Configs": altered}
        (answer,) = self.side.raw("IncrementalAlterConfigs", 1, {"Resources": [resource]})["Responses"]
        assert answer["ErrorCode"] == 0, answer

    def initialize(self, topics: Mapping[str, int]) -> None:
        """A member comes and goes. Kafka initializes partitions after it has answered the first heartbeat."""
        find_coordinators(self.side)
        member_id = str(uuid.uuid4())
        epoch = 0

        def assigned() -> bool:
            nonlocal epoch
            values: Values = {"GroupId": self.group_id, "MemberId": member_id, "MemberEpoch": epoch}
            values |= {"SubscribedTopicNames": [self.names[each] for each in topics] if not epoch else None}
            answer = self.side.raw("ShareGroupHeartbeat", 1, values)
            if answer["ErrorCode"] in (14, 15, 16):
                return False
            assert answer["ErrorCode"] == 0, answer
            epoch = answer["MemberEpoch"]
            got = (answer["Assignment"] or {"TopicPartitions": []})["TopicPartitions"]
            return sum(len(each["Partitions"]) for each in got) == sum(topics.values())

        eventually(assigned)
        leave = {"GroupId": self.group_id, "MemberId": member_id, "MemberEpoch": -1}
        self.side.raw("ShareGroupHeartbeat", 1, leave)

    def open_all(self, topics: Mapping[str, int]) -> None:
        """Kafka loads share partitions while a first fetch waits, and keeps them while there is a session."""
        partitions = [(letter, number) for letter, count in topics.items() for number in range(count)]
        first = self.member()
        first.fetch(*partitions, MaxWaitMs=500)
        first.fetch()
        self.notes.clear()

    def produce(self, letter: str, *sizes: int, partition: int = 0, value: bytes = b"value") -> None:
        """One batch of each size."""
        for size in sizes:
            appended = self.side.produce(self.names[letter], batch([Record(value)] * size), partition)
            assert appended["ErrorCode"] == 0, appended

    def recreate(self, letter: str, partitions: int) -> None:
        """Delete a topic, and create another one of its name."""
        name = self.names[letter]
        (deleted,) = self.side.raw("DeleteTopics", 6, {"Topics": [{"Name": name}], "TimeoutMs": 10_000})[
            "Responses"
        ]
        assert deleted["ErrorCode"] == 0, deleted
        wanted = {"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1}

        def created() -> bool:
            (answer,) = self.side.raw("CreateTopics", 7, {"Topics": [wanted], "timeoutMs": 10_000})["Topics"]
            if answer["ErrorCode"] == 0:
                self.ids[letter] = answer["TopicId"]
            return bool(answer["ErrorCode"] == 0)

        eventually(created)
        eventually(lambda: self.side.is_served(name, partitions))

    def delete_records(self, letter: str, offset: int) -> None:
        deleted = {"Name": self.names[letter], "Partitions": [{"PartitionIndex": 0, "Offset": offset}]}
        answer = self.side.raw("DeleteRecords", 2, {"Topics": [deleted], "TimeoutMs": 10_000})
        assert answer["Topics"][0]["Partitions"][0]["ErrorCode"] == 0, answer

    def alter_offset(self, letter: str, offset: int) -> None:
        """Noted: the error."""
        partition = {"PartitionIndex": 0, "StartOffset": offset}
        topics = [{"TopicName": self.names[letter], "Partitions": [partition]}]
        answer = self.side.raw("AlterShareGroupOffsets", 0, {"GroupId": self.group_id, "Topics": topics})
        codes = [each["ErrorCode"] for topic in answer["Responses"] for each in topic["Partitions"]]
        self.notes.append(["AlterShareGroupOffsets", answer["ErrorCode"], codes])

    def lag(self) -> int:
        """Of t, as administrators are told."""
        topics = [{"TopicName": self.names["t"], "Partitions": [0]}]
        asked = {"Groups": [{"GroupId": self.group_id, "Topics": topics}]}
        (group,) = self.side.raw("DescribeShareGroupOffsets", 1, asked)["Groups"]
        return int(group["Topics"][0]["Partitions"][0]["Lag"])

    def delete(self) -> None:
        """The group. Noted: the error."""
        (answer,) = self.side.raw("DeleteGroups", 2, {"GroupsNames": [self.group_id]})["Results"]
        self.notes.append(["DeleteGroups", answer["ErrorCode"]])

    def member(self) -> ShareMember:
        return ShareMember(self, str(uuid.uuid4()))

    def connect(self) -> Connection:
        connection = Connection(self.side.server.bootstrap, timeout=60)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def letter(self, topic_id: bytes) -> str:
        return next((letter for letter, known in self.ids.items() if known == topic_id), "?")


def fetched(
    group: ShareGroup, member: ShareMember, *partitions: tuple[str, int], **options: Any
) -> list[int]:
    """Offsets of t; noted as ranges. Kafka names each record of a batch that was cut: they are joined."""
    member.fetch(*partitions, **options)
    ranges: list[list[int]] = []
    for first, last, count in group.notes.pop()[1][1].get("t0", {"acquired": []})["acquired"]:
        if ranges and ranges[-1][1] + 1 == first and ranges[-1][2] == count:
            ranges[-1][1] = last
        else:
            ranges.append([first, last, count])
    group.notes.append(ranges)
    return [offset for first, last, _ in ranges for offset in range(first, last + 1)]


class ShareMember:
    """A member with a connection of its own, which counts its session's epochs."""

    def __init__(self, group: ShareGroup, member_id: str) -> None:
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self.connection = group.connect()

    def fetch(self, *partitions: tuple[str, int], epoch: int | None = None, **options: Any) -> Any:
        """Fetch, and note the answer."""
        self.send_fetch(*partitions, epoch=epoch, **options)
        return self.receive()

    def send_fetch(
        self,
        *partitions: tuple[str, int],
        epoch: int | None = None,
        acks: Acks | None = None,
        forget: Sequence[tuple[str, int]] = (),
        version: int = 2,
        **options: Any,
    ) -> None:
        values = {
            **self._common(epoch),
            "MaxWaitMs": 0,
            "MinBytes": 1,
            "MaxBytes": 1 << 20,
            "MaxRecords": 500,
            "BatchSize": 500,
            "Topics": self._topics(dict.fromkeys(partitions, ()) | (acks or {})),
            "ForgottenTopicsData": [
                {"TopicId": self._topic_id(letter), "Partitions": [number]} for letter, number in forget
            ],
        }
        if version >= 2:
            values |= {"ShareAcquireMode": 0, "IsRenewAck": False}
        self._send("ShareFetch", version, values | options)

    def acknowledge(
        self, acks: Acks | None = None, *, epoch: int | None = None, version: int = 2, **options: Any
    ) -> Any:
        values = {**self._common(epoch), "Topics": self._topics(acks or {})}
        if version >= 2:
            values["IsRenewAck"] = False
        self._send("ShareAcknowledge", version, values | options)
        return self.receive()

    def receive(self) -> Any:
        api = wire.apis()[self._api]
        body = self.connection.receive(flexible=True)
        answer = wire.decode(api.response, self._version, body)
        noted = self._noted(answer)
        self.group.notes.append([self._api, noted])
        return noted

    def _send(self, api: str, version: int, values: Values) -> None:
        self._api, self._version = api, version
        self.connection.send(api, version, values)
        if values["ShareSessionEpoch"] >= 0:
            self.epoch = values["ShareSessionEpoch"] + 1

    def _common(self, epoch: int | None) -> Values:
        return {
            "GroupId": self.group.group_id,
            "MemberId": self.member_id,
            "ShareSessionEpoch": self.epoch if epoch is None else epoch,
        }

    def _topics(self, partitions: dict[tuple[str, int], Sequence[Ack]]) -> list[Values]:
        topics: dict[str, list[Values]] = {}
        for (letter, number), acks in partitions.items():
            batches = [
                {"FirstOffset": first, "LastOffset": last, "AcknowledgeTypes": list(types)}
                for first, last, types in acks
            ]
            listed = topics.setdefault(letter, [])
            listed.append({"PartitionIndex": number, "AcknowledgementBatches": batches})
        return [{"TopicId": self._topic_id(letter), "Partitions": each} for letter, each in topics.items()]

    def _topic_id(self, letter: str) -> bytes:
        return self.group.ids.get(letter, b"unknown topic id")

    def _noted(self, answer: Values) -> Any:
        if answer["ErrorCode"]:
            return [answer["ErrorCode"], answer.get("AcquisitionLockTimeoutMs")]
        partitions = {}
        for topic in answer["Responses"]:
            for each in topic["Partitions"]:
                name = f"{self.group.letter(topic['TopicId'])}{each['PartitionIndex']}"
                partitions[name] = self._noted_partition(each)
        return [answer.get("AcquisitionLockTimeoutMs"), dict(sorted(partitions.items()))]

    def _noted_partition(self, each: Values) -> Any:
        if "AcquiredRecords" not in each:
            return each["ErrorCode"]
        acquired = [
            [got["FirstOffset"], got["LastOffset"], got["DeliveryCount"]] for got in each["AcquiredRecords"]
        ]
        records = None if each["Records"] is None else whole_batches(each["Records"])
        batches = [[got["base_offset"], got["last_offset_delta"]] for got in records or ()]
        return {
            "codes": [each["ErrorCode"], each["AcknowledgeErrorCode"]],
            "acquired": acquired,
            "batches": None if records is None else batches,
            "leader": [each["CurrentLeader"]["LeaderId"], each["CurrentLeader"]["LeaderEpoch"]],
        }
