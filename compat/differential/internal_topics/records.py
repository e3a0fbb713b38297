"""What comes into an internal topic, decoded and comparable."""

from __future__ import annotations

from typing import Any

from compat.harness.side import Side
from compat.harness.waiting import eventually
from kbroker.protocol.codec import decode
from kbroker.protocol.coordinator_records import (
    classic_groups,
    consumer_groups,
    decode_value,
    offsets,
    share_groups,
    transactions,
)
from kbroker.protocol.message import schema_of
from kbroker.protocol.records import iter_batches, iter_records
from kbroker.transactions.offsets_partition import offsets_partition

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
_MODULES = {
    OFFSETS: (offsets, classic_groups, consumer_groups, share_groups),
    TRANSACTIONS: (transactions,),
}
_TIMES = (
    "commit_timestamp", "expire_timestamp", "current_state_timestamp", "assignment_timestamp",
    "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms",
)  # fmt: skip
_KBROKERS_OWN = {"metadata_hash"}


class Follower:
    """From now on what comes into the topic."""

    def __init__(self, side: Side, topic: str = OFFSETS) -> None:
        self._side = side
        self._topic = topic
        wanted = [{"PartitionIndex": number, "Timestamp": -1} for number in range(3)]
        asked = {"ReplicaId": -1, "IsolationLevel": 0, "Topics": [{"Name": topic, "Partitions": wanted}]}
        (answered,) = side.raw("ListOffsets", 7, asked)["Topics"]
        self._positions = {each["PartitionIndex"]: each["Offset"] for each in answered["Partitions"]}
        self._read: list[dict[str, Any]] = []

    def until(self, count: int) -> list[dict[str, Any]]:
        """All records that came, sorted by key; as soon as there are so many."""

        def enough() -> bool:
            for partition in self._positions:
                self._fetch(partition)
            return len(self._read) >= count

        eventually(enough)
        return sorted(self._read, key=lambda record: (record["type"], str(record["key"])))

    def _fetch(self, partition: int) -> None:
        wanted = {
            "Partition": partition,
            "FetchOffset": self._positions[partition],
            "PartitionMaxBytes": 1 << 20,
            "CurrentLeaderEpoch": -1,
            "LastFetchedEpoch": -1,
            "LogStartOffset": -1,
        }
        asked = {
            "ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 1, "MaxBytes": 1 << 20, "SessionEpoch": -1,
            "Topics": [{"Topic": self._topic, "Partitions": [wanted]}], "RackId": "",
            "ForgottenTopicsData": [],
        }  # fmt: skip
        (answered,) = self._side.raw("Fetch", 12, asked)["Responses"][0]["Partitions"]
        assert answered["ErrorCode"] == 0, answered
        data = memoryview(bytes(answered["Records"] or b""))
        for position, header in iter_batches(data):
            for record in iter_records(data[position : position + header.size_bytes]):
                if record.offset >= self._positions[partition] and not header.is_control:
                    self._read.append(self._comparable(partition, record.key, record.value))
            self._positions[partition] = header.last_offset + 1

    def _comparable(self, partition: int, key: bytes, value: bytes | None) -> dict[str, Any]:
        record_type = int.from_bytes(key[:2], "big")
        key_type, value_type = _types(self._topic, record_type)
        version = None if value is None else int.from_bytes(value[:2], "big")
        decoded = None if value is None else self._plain(decode_value(value_type, value))
        decoded_key = self._plain(decode(key_type, 0, memoryview(key), 2)[0])
        owner = next(iter(decoded_key.values()))  # the group, or the transactional id
        return {
            "type": record_type,
            "in its partition": partition == offsets_partition(owner, len(self._positions)),
            "key": decoded_key,
            "version": version,
            "value": decoded,
        }

    def _plain(self, value: Any) -> Any:
        if isinstance(value, list):
            plain = [self._plain(item) for item in value]
            return sorted(plain) if plain and isinstance(plain[0], int) else plain
        if isinstance(value, bytes):
            return self._side.comparable(value)
        if not hasattr(value, "__schema__"):
            return value
        return {
            f.name: getattr(value, f.name) > 0 if f.name in _TIMES else self._plain(getattr(value, f.name))
            for f in schema_of(type(value))
            if f.name not in _KBROKERS_OWN
        }


def _types(topic: str, record_type: int) -> tuple[type[Any], type[Any]]:
    key_type, value_type = sorted(
        (
            cls
            for module in _MODULES[topic]
            for cls in vars(module).values()
            if isinstance(cls, type)
            and cls.__module__ == module.__name__
            and schema_of(cls).api_key == record_type
        ),
        key=lambda cls: schema_of(cls).kind,
    )
    return key_type, value_type
