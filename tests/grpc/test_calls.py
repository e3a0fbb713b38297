"""How calls go, whatever they are for: deadlines, cancellation, compression, sizes, statuses, a stop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2, status_pb2

from tests.support.grpc_client import EARLIEST, GrpcClient, compiled, pb
from tests.support.http2_client import Http2Client
from tests.support.server_process import ServerProcess, eventually


def test_a_deadline_ends_a_call_that_waits(client: GrpcClient) -> None:
    client.create("deadline")
    with pytest.raises(grpc.RpcError) as ended:
        client.Fetch(pb.FetchRequest(topic="deadline", max_wait_ms=60_000), timeout=0.2)
    assert ended.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_the_server_ends_it_too(server: ServerProcess) -> None:
    """gRPC's clients do not wait for what the server says of a deadline."""
    with Http2Client(server.grpc) as raw:
        waiting = pb.FetchRequest(topic="deadline-2", max_wait_ms=60_000)
        made = raw.call("CreateTopic", pb.CreateTopicRequest(name="deadline-2"))
        assert raw.status(made)[0] == 0
        assert raw.status(raw.call("Fetch", waiting, grpc_timeout="100m"))[0] == 4
        assert raw.status(raw.call("Fetch", waiting, grpc_timeout="1x"))[0] == 3
        assert raw.status(raw.call("Consume", end=False, grpc_timeout="100000u"))[0] == 4


def test_who_cancels_leaves_the_group(client: GrpcClient) -> None:
    client.create("cancelled")
    with client.consume("cancelled", group="leavers") as stream:
        stream.next("assigned")
    eventually(lambda: client.DescribeGroup(pb.DescribeGroupRequest(group="leavers")).state == "Empty")


def test_what_failed_is_told_to_programs(client: GrpcClient) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        client.DescribeTopic(pb.DescribeTopicRequest(name="nowhere"))
    details = dict(refused.value.trailing_metadata())["grpc-status-details-bin"]
    status = status_pb2.Status.FromString(details)
    assert (status.code, status.message) == (5, refused.value.details())
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == ("UNKNOWN_TOPIC_OR_PARTITION", "kbroker")
    assert dict(info.metadata) == {"error_code": "3", "retriable": "true"}


def test_a_text_that_is_not_ascii_arrives_whole(client: GrpcClient) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        client.CreateTopic(pb.CreateTopicRequest(name="t", configs={"größe%": "1"}))
    assert "größe%" in refused.value.details()


@pytest.mark.parametrize("size", [10, 2000, 3_000_000])
def test_gzip_goes_both_ways(client: GrpcClient, size: int) -> None:
    topic = f"gzip-{size}"
    client.create(topic, **{"max.message.bytes": "10000000"})
    records = [pb.NewRecord(value=os.urandom(size // 2) + bytes(size // 2))]
    request = pb.PublishRequest(topic=topic, records=records)
    client.Publish(request, compression=grpc.Compression.Gzip)
    fetched = client.Fetch(pb.FetchRequest(topic=topic), compression=grpc.Compression.Gzip)
    assert fetched.records[0].value == records[0].value


def test_a_message_that_is_too_large_is_refused_and_others_go_on(client: GrpcClient) -> None:
    client.create("large")
    with pytest.raises(grpc.RpcError) as refused:
        client.publish("large", bytes(5_000_000))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    with pytest.raises(grpc.RpcError) as refused:
        client.publish("large", bytes(2_000_000))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT, "max.message.bytes"
    assert client.publish("large", bytes(900_000))[0].offset == 0


def test_many_large_messages_go_through_the_windows(client: GrpcClient) -> None:
    client.create("windows")
    batch = pb.PublishRequest(topic="windows", records=[pb.NewRecord(value=os.urandom(700_000))] * 4)
    answers = list(client.Produce(pb.ProduceRequest(id=number, batch=batch) for number in range(20)))
    assert answers[-1].records[-1].offset == 79
    with client.consume("windows", start=EARLIEST, max_bytes=2_000_000) as stream:
        assert len(stream.values(80)) == 80


def test_an_unknown_method_is_unimplemented(client: GrpcClient) -> None:
    call = client.channel.unary_unary("/kbroker.v1.Kbroker/Nothing")
    with pytest.raises(grpc.RpcError) as refused:
        call(b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_bytes_that_are_no_message_are_an_invalid_argument(client: GrpcClient) -> None:
    call = client.channel.unary_unary("/kbroker.v1.Kbroker/Publish")
    with pytest.raises(grpc.RpcError) as refused:
        call(b"\xff\xff\xff")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_hundred_calls_at_a_time_and_more_are_served(client: GrpcClient) -> None:
    client.create("crowd")
    waiting = [client.Fetch.func.future(pb.FetchRequest(topic="crowd", max_wait_ms=300)) for _ in range(300)]
    assert {each.result(60).next_offset for each in waiting} == {0}


def test_many_calls_that_are_taken_back_disturb_nobody(client: GrpcClient) -> None:
    client.create("fickle")
    for _ in range(3):
        request = pb.FetchRequest(topic="fickle", max_wait_ms=30_000)
        waiting = [client.Fetch.func.future(request) for _ in range(300)]
        for each in waiting:
            each.cancel()
    assert client.publish("fickle", b"v")[0].offset == 0


def test_asyncio_clients_are_served_too(server: ServerProcess) -> None:
    async def talk() -> list[bytes]:
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            stub = compiled()[1].KbrokerStub(channel)
            await stub.CreateTopic(pb.CreateTopicRequest(name="aio"))
            producing = stub.Produce()
            for number in range(5):
                records = [pb.NewRecord(value=b"%d" % number)]
                await producing.write(
                    pb.ProduceRequest(id=number, batch=pb.PublishRequest(topic="aio", records=records))
                )
                assert (await producing.read()).id == number
            await producing.done_writing()
            consuming = stub.Consume()
            await consuming.write(
                pb.ConsumeRequest(subscribe=pb.Subscribe(topics=["aio"], group="aio", start=EARLIEST))
            )
            found: list[bytes] = []
            async for response in consuming:
                found += [each.value for each in response.batch.records]
                if len(found) == 5:
                    consuming.cancel()
                    return found
        return found

    assert asyncio.run(talk()) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_stop_does_not_wait_for_who_waits() -> None:
    with (
        ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as server,
        GrpcClient(server.grpc) as client,
    ):
        client.create("t")
        waiting = client.Fetch.func.future(pb.FetchRequest(topic="t", max_wait_ms=60_000))
        with client.consume("t", group="g") as stream:
            stream.next("assigned")
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 8, "after 10 seconds connections are closed"
        assert waiting.code() is grpc.StatusCode.UNAVAILABLE
        assert "stops" in waiting.details()


def test_a_stop_lets_calls_end_and_loses_nothing() -> None:
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as server:
        with GrpcClient(server.grpc) as client:
            client.create("t")
            answered: list[Any] = []
            sent = threading.Event()

            def batches() -> Any:
                for number in range(1_000_000):
                    records = [pb.NewRecord(value=b"%d" % number)]
                    yield pb.ProduceRequest(id=number, batch=pb.PublishRequest(topic="t", records=records))
                    if number == 100:
                        sent.set()
                    time.sleep(0)

            with client.consume("t", start=EARLIEST) as stream:
                stream.next("assigned")
                producing = client.Produce(batches())

                def collect() -> None:
                    try:
                        answered.extend(producing)
                    except grpc.RpcError as error:
                        answered.append(error)

                collecting = threading.Thread(target=collect)
                collecting.start()
                assert sent.wait(30)
                os.kill(server.pid, signal.SIGTERM)
                with pytest.raises(grpc.RpcError) as ended:
                    stream.values(2_000_000)
                assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
                assert "stops" in ended.value.details()
                collecting.join(30)
            assert answered[-1].code() is grpc.StatusCode.UNAVAILABLE
            assert "stops" in answered[-1].details()
            assert [each.id for each in answered[:-1]] == list(range(len(answered) - 1))
        assert server.wait() == 0
