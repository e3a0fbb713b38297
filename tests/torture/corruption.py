"""One injury to the files of a stopped broker, again and again; then all that was acknowledged is asked for.

A cycle: load a new directory, stop the broker (clean or by kill -9), flip a bit of one file, cut it or delete
it, verify, start, read. What was acknowledged is read as it was; or its reader gets an error, and verify
tells of it. No record shows at another offset than it was given, and no offset is given again.

Left out is what nothing on the disk can tell of: after a kill, a shorter last segment, which looks like a
write that was not finished, and another log start offset; the bytes of a batch that Kafka's checksum does not
cover (base offset and leader epoch); wrong bits within SQLite's pages.

`python -m tests.torture.corruption --cycles 200` for long runs; the tests run a few.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import random
import shutil
import struct
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kbroker.cli import main
from kbroker.exit_codes import FOUND
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import (
    Record,
    RecordError,
    build_batch,
    iter_batches,
    iter_records,
    validate_stored_batch,
)
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess

logger = logging.getLogger("torture")

TOPIC = "torture"
GROUP = "group"
PARTITIONS = 2
_LOG_HEADER = struct.Struct(">qi")
_NOT_COVERED = (*range(8), *range(12, 16))  # of a batch, by its checksum

Place = tuple[int, int]  # partition, offset


@dataclass
class Outcome:
    cycles: int = 0
    acknowledged: int = 0
    lost: int = 0
    injuries: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.violations


@dataclass
class _Cycle:
    """One directory, and what was acknowledged of it."""

    data: Path
    chance: random.Random
    records: dict[Place, bytes] = field(default_factory=dict)
    committed: int = -1
    clean: bool = True
    injury: str = "none"

    # loading

    def load(self) -> None:
        with ServerProcess("--data", str(self.data)) as server:
            with server.client() as client:
                self._create_topic(client)
                self._produce(client, self.chance.randrange(5, 60))
            if self.chance.random() < 0.5:  # so that a part of it is below the recovery point
                server.stop()
                server.start()
                with server.client() as client:
                    self._produce(client, self.chance.randrange(1, 40))
            self.clean = self.chance.random() < 0.5
            if self.clean:
                server.stop()
            else:
                server.kill()

    def _create_topic(self, client: RawClient) -> None:
        configs = [
            CreatableTopicConfig("internal.segment.bytes", str(self.chance.choice((3000, 9000, 10**6)))),
            CreatableTopicConfig("index.interval.bytes", "500"),
            CreatableTopicConfig("retention.ms", "-1"),
        ]
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, configs=configs)
        assert client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5).topics[0].error_code == 0

    def _produce(self, client: RawClient, batches: int) -> None:
        for _ in range(batches):
            partition = self.chance.randrange(PARTITIONS)
            count = self.chance.randrange(1, 5)
            values = [self.chance.randbytes(self.chance.randrange(16, 300)) for _ in range(count)]
            offset = self.produce(client, partition, values)
            for delta, value in enumerate(values):
                self.records[partition, offset + delta] = value
            self.committed = offset
            self._commit(client, offset)

    def produce(self, client: RawClient, partition: int, values: list[bytes]) -> int:
        records = [Record(time.time_ns() // 1_000_000, b"key", value, ()) for value in values]
        batch = build_batch(records, codec=self.chance.choice((0, 4)))
        part = PartitionProduceData(index=partition, records=batch)
        asked = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=TOPIC, partition_data=[part])])
        answer = client.ask(asked, 9).responses[0].partition_responses[0]
        return answer.base_offset if answer.error_code == ErrorCode.NONE else -1

    def _commit(self, client: RawClient, offset: int) -> None:
        topics = [OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, offset)])]
        answer = client.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    # injuring

    def injure(self) -> None:
        """Something that the next start or verify can tell of."""
        for _ in range(1000):
            path = self._some_file()
            how = self.chance.choice(("flip", "cut", "delete"))
            if self._is_fair(path, how) and getattr(self, f"_{how}")(path):
                kind = path.suffix or path.name
                self.injury = f"{how} {kind if kind != '.metadata' else path.name}"
                self.injury += " after a clean stop" if self.clean else " after kill -9"
                return
        raise AssertionError("there is nothing to injure")

    def _some_file(self) -> Path:
        """Every kind of file as often as every other."""
        by_kind: dict[str, list[Path]] = {}
        for path in sorted(self.data.rglob("*")):
            if path.is_file():
                by_kind.setdefault(path.suffix if path.parent != self.data else path.name, []).append(path)
        kinds = [*by_kind, ".log", ".log", ".log"]  # most of all those that matter most
        return self.chance.choice(by_kind[self.chance.choice(kinds)])

    def _is_fair(self, path: Path, how: str) -> bool:
        if path.name.startswith("catalog.sqlite"):
            return how != "flip"
        if path.suffix == ".log" and not self.clean and how != "flip":
            return path != max(path.parent.glob("*.log"))
        return path.name != "log-start-offset-checkpoint" or self.clean or how != "flip"

    def _flip(self, path: Path) -> bool:
        data = bytearray(path.read_bytes())
        places = [place for place in range(len(data)) if path.suffix != ".log" or _is_covered(data, place)]
        if not places:
            return False
        data[self.chance.choice(places)] ^= 1 << self.chance.randrange(8)
        path.write_bytes(data)
        return True

    def _cut(self, path: Path) -> bool:
        data = path.read_bytes()
        path.write_bytes(data[: self.chance.choice((0, self.chance.randrange(len(data) + 1)))])
        return bool(data)

    def _delete(self, path: Path) -> bool:
        path.unlink()
        return True

    # judging

    def judge(self) -> tuple[set[Place], list[str]]:
        """What is lost, and what should not be so."""
        code = _kbroker("verify", str(self.data))
        wrong: list[str] = []
        server, rebuilt = _start(self.data)
        with contextlib.ExitStack() as stack:
            stack.callback(server.__exit__)
            client = stack.enter_context(server.client())
            found: dict[Place, bytes] = {}
            refused: set[Place] = set()
            for partition in range(PARTITIONS):
                _read(client, partition, self._end(partition), found, refused)
            lost = self.records.keys() - found.keys()
            if lost - refused:
                wrong.append(f"{sorted(lost - refused)[:9]} are passed over without a word")
            if lost and code != FOUND:
                wrong.append(f"{sorted(lost)[:9]} are lost, and verify finds all well")
            there = found.keys() & self.records.keys()
            wrong += [f"{each} is another record" for each in there if found[each] != self.records[each]]
            wrong += self._judge_new(client)
            committed = _committed(client)
            if committed != self.committed and not rebuilt and "acknowledged are gone" not in server.log():
                wrong.append(f"{self.committed} was committed, {committed} is there, and nobody says so")
            if "Traceback" in server.log():
                wrong.append("something went wrong that nobody expected")
            if wrong:
                wrong.append(f"its log: {server.log()[-1500:]}")
        return lost, wrong

    def _end(self, partition: int) -> int:
        return max((offset for at, offset in self.records if at == partition), default=-1) + 1

    def _judge_new(self, client: RawClient) -> list[str]:
        wrong = []
        for partition in range(PARTITIONS):
            offset = self.produce(client, partition, [b"new"])
            if 0 <= offset < self._end(partition):
                wrong.append(f"offset {offset} of partition {partition} is given again")
        return wrong


def _is_covered(data: bytearray, place: int) -> bool:
    position = 0
    while position + _LOG_HEADER.size <= len(data):
        size = _LOG_HEADER.size + _LOG_HEADER.unpack_from(data, position)[1]
        if place < position + size:
            return place - position not in _NOT_COVERED
        position += size
    return True


def _kbroker(*arguments: str) -> int:
    """A command, whatever it says."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(arguments)


def _start(data: Path) -> tuple[ServerProcess, bool]:
    """A server that refuses is given what it asks for; and whether that was a new catalog."""
    server = ServerProcess("--data", str(data))
    rebuilt = False
    try:
        server.start()
    except AssertionError as error:
        if "--rebuild-catalog" in str(error):
            rebuilt = True
            _kbroker("verify", str(data), "--rebuild-catalog")
        elif "meta.properties" in str(error):
            (data / "meta.properties").unlink()
        else:
            raise
        server.start()
    return server, rebuilt


def _read(
    client: RawClient, partition: int, end: int, found: dict[Place, bytes], refused: set[Place]
) -> None:
    """All that a reader gets who goes on behind every offset that it cannot have."""
    offset = 0
    while offset < end:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=2000)
        asked = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])]
        )
        response = client.ask(asked, 11)
        try:
            if response.error_code != ErrorCode.NONE:
                raise RecordError(f"error {response.error_code}")
            answer = response.responses[0].partitions[0]
            if answer.error_code != ErrorCode.NONE:
                raise RecordError(f"error {answer.error_code}")
            next_offset = _take(bytes(answer.records or b""), partition, offset, found)
        except RecordError:
            refused.add((partition, offset))
            offset += 1
        else:
            if next_offset <= offset:
                return  # nothing more, and no error: whatever is missing is missing in silence
            offset = next_offset


def _take(data: bytes, partition: int, offset: int, found: dict[Place, bytes]) -> int:
    """The records of an answer; raises RecordError if the first batch is damaged, as every client does."""
    for position, header in iter_batches(data):
        batch = memoryview(data)[position : position + header.size_bytes]
        try:
            validate_stored_batch(batch)
        except RecordError:
            if position:
                return offset
            raise
        for record in iter_records(batch):
            if record.offset >= offset:
                found[partition, record.offset] = record.value or b""
        offset = header.next_offset
    return offset


def _committed(client: RawClient) -> int:
    request = OffsetFetchRequest(group_id=GROUP, topics=[OffsetFetchRequestTopic(TOPIC, [0])])
    return int(client.ask(request, 7).topics[0].partitions[0].committed_offset)


def run(cycles: int, *, data: Path, seed: int = 0) -> Outcome:
    outcome = Outcome()
    for number in range(cycles):
        cycle = _Cycle(data / str(number), random.Random(f"{seed} {number}"))
        cycle.load()
        cycle.injure()
        try:
            lost, wrong = cycle.judge()
        except AssertionError as error:
            lost, wrong = set(), [str(error)]
        outcome.cycles += 1
        outcome.acknowledged += len(cycle.records)
        outcome.lost += len(lost)
        outcome.injuries[cycle.injury] += 1
        for each in wrong:
            outcome.violations.append(f"cycle {number} of seed {seed}, {cycle.injury}: {each}")
            logger.error("%s", outcome.violations[-1])
        shutil.rmtree(cycle.data)
    return outcome


def run_from_command_line() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        outcome = run(given.cycles, data=Path(directory), seed=given.seed)
    for injury, count in sorted(outcome.injuries.items()):
        print(f"{count:5} {injury}")  # noqa: T201
    print(  # noqa: T201
        f"seed={given.seed}: {outcome.cycles} injuries, {outcome.acknowledged} records acknowledged, "
        f"{outcome.lost} lost and told of, {len(outcome.violations)} violations"
    )
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    sys.exit(run_from_command_line())
