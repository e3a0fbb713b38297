"""gRPC and Kafka's own clients on the same topics and in the same groups."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaConsumer, KafkaProducer

from tests.support.grpc_client import EARLIEST, GrpcClient, pb
from tests.support.server_process import ServerProcess, eventually


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """On disk: there heartbeats and commits are answered later, when they are stored."""
    data = str(tmp_path_factory.mktemp("data"))
    arguments = ("--data", data, "--http-port", "off", "--grpc-port", "0")
    with ServerProcess(*arguments, "--set", "group.initial.rebalance.delay.ms=0") as process:
        yield process


def consumer(server: ServerProcess, topic: str, **config: object) -> KafkaConsumer:
    return KafkaConsumer(
        topic,
        bootstrap_servers=server.bootstrap,
        auto_offset_reset="earliest",
        **config,
        enable_auto_commit=False,
    )


def test_what_one_writes_the_other_reads(server: ServerProcess, client: GrpcClient) -> None:
    client.create("both")
    client.Publish(
        pb.PublishRequest(
            topic="both",
            records=[pb.NewRecord(key=b"k", value=b"by grpc", headers=[pb.Header(name="h", value=b"1")])],
            codec=pb.CODEC_GZIP,
        )
    )
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap, compression_type="gzip")) as producer:
        producer.send("both", b"by kafka", b"k", [("h", b"2")]).get(20)
    with closing(consumer(server, "both")) as kafka:
        first, second = next(kafka), next(kafka)
        assert (first.key, first.value, first.headers) == (b"k", b"by grpc", [("h", b"1")])
        assert second.value == b"by kafka"
    fetched = client.Fetch(pb.FetchRequest(topic="both")).records
    assert [each.value for each in fetched] == [b"by grpc", b"by kafka"]
    assert fetched[1].headers[0].value == b"2"


def test_a_group_goes_on_with_another_kind_of_client(server: ServerProcess, client: GrpcClient) -> None:
    client.create("handed-over")
    client.publish("handed-over", *[b"%d" % number for number in range(10)])
    with closing(consumer(server, "handed-over", group_id="relay", max_poll_records=4)) as kafka:
        batches = kafka.poll(20_000)
        assert sum(map(len, batches.values())) == 4
        kafka.commit()
    with client.consume("handed-over", group="relay", start=EARLIEST) as stream:
        assert stream.values(6) == [b"%d" % number for number in range(4, 10)]
        stream.commit(1, "handed-over", 0, 8)
        stream.next("committed")
    eventually(lambda: client.DescribeGroup(pb.DescribeGroupRequest(group="relay")).state == "Empty")
    with closing(consumer(server, "handed-over", group_id="relay")) as kafka:
        assert next(kafka).offset == 8


def test_members_of_both_kinds_share_a_group(server: ServerProcess, client: GrpcClient) -> None:
    client.create("mixed", 4)
    ended = threading.Event()
    seen: list[bytes] = []

    def poll() -> None:
        with closing(consumer(server, "mixed", group_id="mix")) as kafka:
            while not ended.is_set():
                for records in kafka.poll(100).values():
                    seen.extend(record.value for record in records)
                    kafka.commit()

    with client.consume("mixed", group="mix", start=EARLIEST) as stream:
        assert len(stream.next("assigned").partitions) == 4
        polling = threading.Thread(target=poll)
        polling.start()
        try:
            assert len(stream.next("assigned").partitions) == 2
            eventually(lambda: len(client.DescribeGroup(pb.DescribeGroupRequest(group="mix")).members) == 2)
            for partition in range(4):
                client.publish("mixed", b"%d" % partition, partition=partition)
            mine = stream.values(2)
            eventually(lambda: len(seen) == 2)
            assert sorted([*mine, *seen]) == [b"0", b"1", b"2", b"3"]
        finally:
            ended.set()
            polling.join(30)
