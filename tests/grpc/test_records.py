"""Records published, produced and fetched with gRPC's own client."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from tests.support.grpc_client import EARLIEST, GrpcClient, pb


def test_what_is_published_is_fetched_as_it_was(client: GrpcClient) -> None:
    client.create("whole", 2)
    given = pb.NewRecord(
        key=b"k",
        value=b"\x00\xff",
        headers=[pb.Header(name="h", value=b"1"), pb.Header(name="none")],
        timestamp=1_700_000_000_000,
        partition=1,
    )
    tombstone = pb.NewRecord(key=b"", partition=1)
    answer = client.Publish(pb.PublishRequest(topic="whole", records=[given, tombstone]))
    assert [(each.partition, each.offset) for each in answer.records] == [(1, 0), (1, 1)]
    fetched = client.Fetch(pb.FetchRequest(topic="whole", partition=1))
    first, second = fetched.records
    assert (first.key, first.value, first.timestamp) == (b"k", b"\x00\xff", 1_700_000_000_000)
    assert [(each.name, each.HasField("value")) for each in first.headers] == [("h", True), ("none", False)]
    assert second.HasField("key")
    assert not second.HasField("value")
    assert (fetched.next_offset, fetched.high_watermark) == (2, 2)


def test_the_key_says_which_partition(client: GrpcClient) -> None:
    client.create("keyed", 3)
    records = [pb.NewRecord(key=b"k%d" % number, value=b"v") for number in range(20)]
    places = [
        each.partition for each in client.Publish(pb.PublishRequest(topic="keyed", records=records)).records
    ]
    again = [
        each.partition for each in client.Publish(pb.PublishRequest(topic="keyed", records=records)).records
    ]
    assert places == again
    assert set(places) == {0, 1, 2}


@pytest.mark.parametrize("codec", ["NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"])
def test_every_codec_is_written_and_read(client: GrpcClient, codec: str) -> None:
    topic = f"codec-{codec}"
    client.create(topic)
    client.publish(topic, b"x" * 100_000, codec=getattr(pb, f"CODEC_{codec}"))
    assert client.Fetch(pb.FetchRequest(topic=topic)).records[0].value == b"x" * 100_000


def test_one_record_that_is_refused_refuses_no_other(client: GrpcClient) -> None:
    client.create("partly")
    good, bad = client.publish("partly", b"v")[0], None
    records = [pb.NewRecord(value=b"v", partition=0), pb.NewRecord(value=b"v", partition=7)]
    good, bad = client.Publish(pb.PublishRequest(topic="partly", records=records)).records
    assert (good.offset, good.HasField("error")) == (1, False)
    assert bad.error.name == "UNKNOWN_TOPIC_OR_PARTITION"
    with pytest.raises(grpc.RpcError) as refused:
        client.publish("partly", b"v", partition=7)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_all_or_nothing_writes_nothing_when_one_is_refused(client: GrpcClient) -> None:
    client.create("atomic", 2)
    records = [pb.NewRecord(value=b"v", partition=partition) for partition in (0, 1, 9)]
    with pytest.raises(grpc.RpcError):
        client.Publish(pb.PublishRequest(topic="atomic", records=records, atomic=True))
    told = client.Publish(pb.PublishRequest(topic="atomic", records=records[:2], atomic=True)).records
    assert [(each.partition, each.offset) for each in told] == [(0, 0), (1, 0)]


def test_who_expects_an_offset_that_is_taken_is_told_the_next(client: GrpcClient) -> None:
    client.create("expected")
    client.publish("expected", b"a", expected_offset=0)
    with pytest.raises(grpc.RpcError) as refused:
        client.publish("expected", b"b", expected_offset=0)
    assert refused.value.code() is grpc.StatusCode.ABORTED
    assert b"next_offset" in dict(refused.value.trailing_metadata())["grpc-status-details-bin"]
    assert client.publish("expected", b"b", expected_offset=1)[0].offset == 1


def test_what_an_origin_sends_again_is_not_written_again(client: GrpcClient) -> None:
    client.create("origins")
    origin = pb.Origin(id="sensor-1", sequence=0)
    places = [client.publish("origins", b"a", b"b", origin=origin)[0].offset for _ in range(3)]
    assert places == [0, 0, 0]
    assert client.Fetch(pb.FetchRequest(topic="origins")).high_watermark == 2


def test_batches_of_a_stream_are_answered_in_their_order(client: GrpcClient) -> None:
    client.create("stream")

    def batches() -> object:
        for number in range(50):
            topic = "stream" if number != 20 else "no such/topic"
            records = [pb.NewRecord(value=b"%d" % number)] * 10
            yield pb.ProduceRequest(id=number, batch=pb.PublishRequest(topic=topic, records=records))

    answers = list(client.Produce(batches(), timeout=60))
    assert [each.id for each in answers] == list(range(50))
    assert [each.id for each in answers if each.HasField("error")] == [20]
    assert answers[20].error.name == "INVALID_TOPIC_EXCEPTION"
    assert answers[49].records[9].offset == 489


def test_a_fetch_waits_for_a_first_record(client: GrpcClient) -> None:
    client.create("waits")
    request = pb.FetchRequest(topic="waits", start=EARLIEST, max_wait_ms=60_000)
    with ThreadPoolExecutor() as pool:
        fetching = pool.submit(lambda: client.Fetch(request, timeout=30))
        client.publish("waits", b"now")
        assert [each.value for each in fetching.result(30).records] == [b"now"]
    began = time.monotonic()
    empty = client.Fetch(pb.FetchRequest(topic="waits", start=pb.Start(offset=1), max_wait_ms=50))
    assert not empty.records
    assert time.monotonic() - began >= 0.05


def test_a_fetch_begins_at_a_time_or_at_an_end(client: GrpcClient) -> None:
    client.create("moments")
    for moment in (1000, 2000, 3000):
        client.Publish(
            pb.PublishRequest(topic="moments", records=[pb.NewRecord(value=b"v", timestamp=moment)])
        )
    at_time = client.Fetch(pb.FetchRequest(topic="moments", start=pb.Start(timestamp=1500)))
    assert [each.offset for each in at_time.records] == [1, 2]
    latest = pb.Start(position=pb.POSITION_LATEST)
    assert client.Fetch(pb.FetchRequest(topic="moments", start=latest)).next_offset == 3
    with pytest.raises(grpc.RpcError) as refused:
        client.Fetch(pb.FetchRequest(topic="moments", start=pb.Start(offset=99)))
    assert refused.value.code() is grpc.StatusCode.OUT_OF_RANGE


def test_a_fetch_is_bounded_by_records_and_by_bytes(client: GrpcClient) -> None:
    client.create("bounded")
    client.publish("bounded", *[b"x" * 1000] * 100)
    assert len(client.Fetch(pb.FetchRequest(topic="bounded", max_records=7)).records) == 7
    assert len(client.Fetch(pb.FetchRequest(topic="bounded", max_bytes=5000)).records) == 5


@pytest.mark.parametrize(
    "request_",
    [
        pb.PublishRequest(topic="t"),
        pb.PublishRequest(topic="t", records=[pb.NewRecord()], codec=99),
        pb.PublishRequest(topic="t", records=[pb.NewRecord()], acks=99),
        pb.PublishRequest(topic="t", records=[pb.NewRecord(timestamp=-5)]),
        pb.PublishRequest(topic="t", records=[pb.NewRecord()], expected_offset=-1),
        pb.PublishRequest(topic="t", records=[pb.NewRecord()], atomic=True, acks=pb.ACKS_NONE),
    ],
)
def test_what_makes_no_sense_is_an_invalid_argument(client: GrpcClient, request_: object) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        client.Publish(request_)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
