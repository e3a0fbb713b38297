"""Thousands of mutated frames of every API: no traceback, no harm, and others are served meanwhile."""

from __future__ import annotations

import itertools
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.requests.apis import APIS
from tests.server.fuzz_frames import Frames
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess

SEED = 20_240_607
FRAMES = 8_000  # a number, not a time: the test is the same on every machine
ANSWER_SECONDS = 0.1  # a request that waits for others is given up
TRACEBACK = re.compile(r"Traceback.*?^\S*(?:Error|Exception|Warning)\b.*?$", re.DOTALL | re.MULTILINE)
MIB = 1 << 20


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[ServerProcess]:
    settings = {
        "kbroker.telemetry.directory": str(tmp_path / "telemetry"),
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1",
    }
    flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    with ServerProcess("--in-memory", *flags) as process:
        yield process


class Bystander:
    """An ordinary client that writes and reads its own topic."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._written = 0
        self.create("bystander")

    def create(self, *names: str) -> list[bytes]:
        topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
        response = self._client.ask(CreateTopicsRequest(topics=topics), 7)
        assert [topic.error_code for topic in response.topics] == [0] * len(names)
        return [topic.topic_id for topic in response.topics]

    def works(self) -> None:
        batch = build_batch([Record(1_700_000_000_000, None, b"value")])
        data = TopicProduceData(name="bystander", partition_data=[PartitionProduceData(0, batch)])
        response = self._client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
        (result,) = response.responses[0].partition_responses
        assert (result.error_code, result.base_offset) == (0, self._written)
        partition = FetchPartition(partition=0, fetch_offset=self._written, partition_max_bytes=MIB)
        fetch = FetchRequest(
            max_wait_ms=1000,
            min_bytes=1,
            max_bytes=MIB,
            topics=[FetchTopic(topic="bystander", partitions=[partition])],
        )
        (answer,) = self._client.ask(fetch, 12).responses[0].partitions
        assert (answer.error_code, answer.high_watermark) == (0, self._written + 1)
        self._written += 1


class Attacker:
    """Sends a frame and waits a moment for the answer; a closed or silent connection is replaced."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._client = server.client(ANSWER_SECONDS)
        self.answered = self.closed = 0

    def send(self, frame: bytes) -> None:
        try:
            self._client.socket.sendall(frame)
            self._take(struct.unpack(">i", self._take(4))[0])
            self.answered += 1
        except (TimeoutError, ConnectionError):
            self.close()
            self._client = self._server.client(ANSWER_SECONDS)
            self.closed += 1

    def close(self) -> None:
        # Gone at once, so that thousands of them leave no port behind.
        self._client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._client.close()

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._client.socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError
            data += part
        return bytes(data)


@pytest.mark.slow
def test_mutated_frames_of_every_api_do_no_harm(fuzzed: ServerProcess) -> None:
    with fuzzed.client() as client:
        bystander = Bystander(client)
        frames = Frames(SEED, bystander.create("fuzz-a", "fuzz-b", "fuzz-c"))
        attacker = Attacker(fuzzed)
        pairs = [(api, version) for api in APIS for version in range(api.min_version, api.max_version + 1)]
        for count, (api, version) in zip(range(FRAMES), itertools.cycle(pairs), strict=False):
            body = frames.valid(api, version)
            attacker.send(frames.framed(body if count % 4 == 0 else frames.mutated(body)))
            if count % 100 == 0:
                bystander.works()
        attacker.close()
        bystander.works()
        tracebacks = TRACEBACK.findall(fuzzed.log())
        assert not tracebacks, f"{len(tracebacks)} tracebacks, the first: {tracebacks[0]}"
        assert "unforeseen" not in fuzzed.log()
        assert fuzzed.memory_bytes() < 200 * MIB
        # Most frames are refused, and yet enough get through to the handlers.
        assert attacker.answered > count // 4
        assert attacker.closed > count // 10
    assert fuzzed.stop() == 0
