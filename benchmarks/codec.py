"""The compiled codec against construct: `python -m benchmarks.codec`.

Both decode the same bytes of the requests that a busy broker reads all day; construct's time is its own
parse, without making typed objects from what it returns. What first use costs is shown too: generating the
code of one decoder, and importing a message module.
"""

from __future__ import annotations

import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

from kbroker.protocol import reference
from kbroker.protocol.codec import decode, encode, encode_bytes
from kbroker.protocol.decoder_source import make_decoder
from kbroker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

ROUND_SECONDS = 0.02


class Case(NamedTuple):
    name: str
    message: Any
    version: int


class Times(NamedTuple):
    """Microseconds."""

    decode: float
    construct: float
    encode: float
    generate: float

    @property
    def ratio(self) -> float:
        return self.construct / self.decode


def produce_request(partitions: int) -> ProduceRequest:
    records = memoryview(bytes(1024))
    data = [PartitionProduceData(index=index, records=records) for index in range(partitions)]
    return ProduceRequest(
        acks=-1, timeout_ms=30000, topic_data=[TopicProduceData("orders", partition_data=data)]
    )


def fetch_request(partitions: int) -> FetchRequest:
    wanted = [
        FetchPartition(index, fetch_offset=10**6, partition_max_bytes=1 << 20) for index in range(partitions)
    ]
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic("orders", partitions=wanted)])


def fetch_response(partitions: int) -> FetchResponse:
    records = memoryview(bytes(1024))
    data = [PartitionData(index, high_watermark=10**6, records=records) for index in range(partitions)]
    return FetchResponse(responses=[FetchableTopicResponse("orders", partitions=data)])


CASES = [
    Case("ProduceRequest, 4 partitions", produce_request(4), 9),
    Case("ProduceRequest, 4 partitions", produce_request(4), 7),
    Case("FetchRequest, 8 partitions", fetch_request(8), 12),
    Case("FetchRequest, 8 partitions", fetch_request(8), 11),
    Case("FetchResponse, 8 partitions", fetch_response(8), 12),
]


def measure(case: Case) -> Times:
    cls, version = type(case.message), case.version
    data = encode_bytes(case.message, version)
    frame = memoryview(data)
    parse = reference.struct_for(cls, version).parse
    return Times(
        decode=fastest(lambda: decode(cls, version, frame)),
        construct=fastest(lambda: parse(data)),
        encode=fastest(lambda: encode(case.message, version)),
        generate=fastest(lambda: make_decoder(cls, version), loops=3),
    )


def fastest(run: Callable[[], Any], loops: int | None = None, rounds: int = 9) -> float:
    """Microseconds per run, of the fastest round: the rest is other people's noise."""
    timer = timeit.Timer(run)
    if loops is None:
        loops = max(1, int(ROUND_SECONDS / timer.timeit(10) * 10))
    return min(timer.repeat(rounds, loops)) / loops * 1e6


def import_time(module: str) -> float:
    """Microseconds that one message module adds to a process that has the machinery already."""
    program = (
        "import time, kbroker.protocol.codec, kbroker.protocol.message\n"
        f"start = time.perf_counter(); import {module}\n"
        "print((time.perf_counter() - start) * 1e6)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    print(f"{'':32}{'decode':>9}{'construct':>11}{'ratio':>7}{'encode':>9}{'generate':>10}   (µs)")
    for case in CASES:
        times = measure(case)
        print(
            f"{case.name + ' v' + str(case.version):32}{times.decode:9.2f}{times.construct:11.1f}"
            f"{times.ratio:6.0f}x{times.encode:9.2f}{times.generate:10.0f}"
        )
    for module in ("produce", "fetch", "streams_group_heartbeat"):
        print(f"import messages.{module}: {import_time(f'kbroker.protocol.messages.{module}') / 1000:.2f} ms")


if __name__ == "__main__":
    main()
