"""What gRPC costs the broker: `python -m benchmarks.grpc`.

Records of 100 bytes by calls of gRPC's own client, with data in memory: one record a call, one after the
other and 50 calls at a time, and streams of batches. Microseconds are of the broker's processor. Then what
the port costs who does not use it, and what the first call costs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from statistics import median
from typing import Any, NamedTuple

import grpc

from benchmarks.compare.brokers import Meter, Usage
from tests.support.grpc_client import EARLIEST, GrpcClient, pb
from tests.support.server_process import ServerProcess

ROUNDS = 3
VALUE = bytes(range(256))[:100]
MANY = 100  # records of a batch
STORED = 20_000  # of a topic that is read
AT_A_TIME = 50
MIB = 2**20
_RECORD = pb.NewRecord(value=VALUE, partition=0)


class Load(NamedTuple):
    name: str
    run: Callable[[GrpcClient, str, int], int]
    """With a topic, so many times; returns how many records went through."""
    times: int


def publish_one(client: GrpcClient, topic: str, times: int) -> int:
    request = pb.PublishRequest(topic=topic, records=[_RECORD])
    for _ in range(times):
        client.Publish(request)
    return times


def publish_at_a_time(client: GrpcClient, topic: str, times: int) -> int:
    request = pb.PublishRequest(topic=topic, records=[_RECORD])
    under_way: list[Future[Any]] = []
    for _ in range(times):
        if len(under_way) == AT_A_TIME:
            under_way.pop(0).result()
        under_way.append(client.Publish.func.future(request))
    for each in under_way:
        each.result()
    return times


def publish_many(client: GrpcClient, topic: str, times: int) -> int:
    request = pb.PublishRequest(topic=topic, records=[_RECORD] * MANY)
    for _ in range(times):
        client.Publish(request)
    return times * MANY


def produce(client: GrpcClient, topic: str, times: int) -> int:
    request = pb.ProduceRequest(batch=pb.PublishRequest(topic=topic, records=[_RECORD] * MANY))
    return sum(len(answer.records) for answer in client.Produce(request for _ in range(times)))


def consume(client: GrpcClient, topic: str, times: int) -> int:
    """What lies in the topic, again and again."""
    for _ in range(times):
        with client.consume(topic, start=EARLIEST) as stream:
            stream.values(STORED)
    return times * STORED


def fetch(client: GrpcClient, topic: str, times: int) -> int:
    return sum(len(client.Fetch(pb.FetchRequest(topic=topic)).records) for _ in range(times))


LOADS = (
    Load("Publish, 1 record", publish_one, 5_000),
    Load(f"Publish, 1 record, {AT_A_TIME} at a time", publish_at_a_time, 10_000),
    Load(f"Publish, {MANY} records", publish_many, 2_000),
    Load(f"Produce, batches of {MANY}", produce, 3_000),
    Load("Fetch, 1,000 records", fetch, 300),
    Load(f"Consume, {STORED:,} records", consume, 10),
)


def measure(
    load: Load, server: ServerProcess, client: GrpcClient, scale: float
) -> tuple[float, float, float]:
    """Calls and records a second, and microseconds of the broker's processor of a record."""
    topic = f"t{time.time_ns()}"
    client.create(topic)
    if load.run in (fetch, consume):
        publish_many(client, topic, STORED // MANY)
    times = max(5, int(load.times * scale))
    load.run(client, topic, max(2, times // 10))
    meter = Meter(server)
    records = load.run(client, topic, times)
    cpu, wall = meter.cpu_seconds, meter.wall_seconds
    client.DeleteTopic(pb.DeleteTopicRequest(name=topic))
    return times / wall, records / wall, cpu / records * 1e6


def start(*arguments: str) -> tuple[float, float, float]:
    """Seconds until it listens; anonymous memory in MB before and after a first call, if there is a port."""
    began = time.perf_counter()
    with ServerProcess("--in-memory", "--http-port", "off", *arguments) as server:
        seconds = time.perf_counter() - began
        before = Usage.of(server.pid).rss_anon_bytes / MIB
        if server.grpc:
            with GrpcClient(server.grpc) as client:
                client.ListTopics(pb.ListTopicsRequest())
        return seconds, before, Usage.of(server.pid).rss_anon_bytes / MIB


def first_call() -> float:
    with (
        ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as server,
        grpc.insecure_channel(server.grpc) as channel,
    ):
        began = time.perf_counter()
        grpc.channel_ready_future(channel).result(60)
        return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the loads (0.01: does it run at all)"
    )
    scale = parser.parse_args().scale
    rounds = ROUNDS if scale >= 1 else 1
    print("| load | calls/s | records/s | broker CPU µs/record |\n|---|---|---|---|")
    with (
        ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as server,
        GrpcClient(server.grpc) as client,
    ):
        for load in LOADS:
            found = [measure(load, server, client, scale) for _ in range(rounds)]
            calls, records, cpu = (median(each) for each in zip(*found, strict=True))
            print(f"| {load.name} | {calls:,.0f} | {records:,.0f} | {cpu:.1f} |", flush=True)
    print("\n| a broker | ready after s | RssAnon MB | after a first call |\n|---|---|---|---|")
    for name, arguments in (("without the port", ()), ("with the port", ("--grpc-port", "0"))):
        starts = [start(*arguments) for _ in range(rounds)]
        seconds, before, after = (median(each) for each in zip(*starts, strict=True))
        print(f"| {name} | {seconds:.2f} | {before:.1f} | {after:.1f} |", flush=True)
    print(f"\nThe first connection is ready after {median(first_call() for _ in range(rounds)):.2f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
