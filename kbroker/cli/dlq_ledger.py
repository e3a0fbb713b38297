"""The ledger of a dead-letter topic: which of its records were sent back to where they came from.

It is a compacted topic, `<topic>.replayed`. A record of it tells of a block of offsets of one partition:

    key    <topic id>/<partition>/<block>
    value  offsets and ranges of offsets that were sent back, such as 0-15,17

It is written in the transaction that sends the records back: whoever reads committed records sees both or
neither. Unlike committed offsets it does not expire. A topic that is made anew under the same name has
another id, so that nothing of it counts as sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kbroker.cli import connection

SUFFIX = ".replayed"
_BLOCK = 4096  # offsets


def ledger_topic(topic: str) -> str:
    return topic + SUFFIX


class Ledger:
    def __init__(self, topic_id: str) -> None:
        self._topic_id = topic_id
        self._blocks: dict[tuple[int, int], int] = {}  # (partition, block) → a bit for each offset

    def has(self, partition: int, offset: int) -> bool:
        block, bit = divmod(offset, _BLOCK)
        return bool(self._blocks.get((partition, block), 0) >> bit & 1)

    def mark(self, partition: int, offset: int) -> tuple[int, int]:
        """That it is sent; returns the block whose record is to be written."""
        block, bit = divmod(offset, _BLOCK)
        key = partition, block
        self._blocks[key] = self._blocks.get(key, 0) | 1 << bit
        return key

    def first_missing(self, partition: int, offset: int) -> int:
        """The first one from `offset` on that was not sent."""
        while self.has(partition, offset):
            offset += 1
        return offset

    def record(self, key: tuple[int, int]) -> tuple[bytes, bytes]:
        partition, block = key
        ranges = _ranges(self._blocks[key], block * _BLOCK)
        return f"{self._topic_id}/{partition}/{block}".encode(), ",".join(ranges).encode()

    def load(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        for key, value in records:
            named = re.fullmatch(r"(.*)/(\d+)/(\d+)", (key or b"").decode(errors="replace"), re.ASCII)
            if named is not None and named[1] == self._topic_id:
                partition, block = int(named[2]), int(named[3])
                self._blocks[partition, block] = _bits((value or b"").decode(), block * _BLOCK)


def _ranges(bits: int, base: int) -> Iterator[str]:
    offset = 0
    while bits >> offset:
        skipped = bits >> offset
        first = offset + (skipped & -skipped).bit_length() - 1
        run = ~(bits >> first)
        offset = first + (run & -run).bit_length() - 1
        yield f"{base + first}" if offset == first + 1 else f"{base + first}-{base + offset - 1}"


def _bits(text: str, base: int) -> int:
    bits = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        begin, end = int(first) - base, int(last or first) - base
        bits |= ((1 << (end - begin + 1)) - 1) << begin
    return bits


def read_ledger(consumer: Any, topic: str, topic_id: str) -> Ledger:
    """What is committed; a ledger that is not there is empty."""
    from kbroker.cli.dlq_letters import read

    ledger = Ledger(topic_id)
    name = ledger_topic(topic)
    if name in consumer.topics():
        partition = connection.kafka().TopicPartition(name, 0)
        ledger.load((each.record.key, each.record.value) for each in read(consumer, [partition]))
    return ledger


def make_ledger(client: Any, topic: str) -> None:
    """The ledger's topic, unless it is there."""
    from kbroker.cli.errors import refused

    name = ledger_topic(topic)
    if name in client.list_topics():
        return
    asked = {"num_partitions": 1, "replication_factor": -1, "configs": {"cleanup.policy": "compact"}}
    (made,) = client.create_topics({name: asked}, raise_errors=False)["topics"]
    if made["error_code"] and made["error_code"] != _TOPIC_ALREADY_EXISTS:
        raise refused(
            f"topic {name}, which is to tell what was sent back", made["error_code"], made["error_message"]
        )
    client.wait_for_topics([name])


_TOPIC_ALREADY_EXISTS = 36
