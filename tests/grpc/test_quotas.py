"""Quotas of clients that come by gRPC: those of Kafka's clients."""

from __future__ import annotations

import time
from collections.abc import Iterator

import grpc
import pytest

from tests.support.grpc_client import EARLIEST, GrpcClient, pb
from tests.support.raw_quotas import set_quotas
from tests.support.server_process import ServerProcess

RATE = 50_000  # bytes per second
PART = b"x" * 10_000
ANONYMOUS = {"user": "ANONYMOUS"}
WINDOWS = ("quota.window.num=2", "controller.quota.window.num=2")  # of a second each


def serve(most_ms: int) -> ServerProcess:
    settings = (*WINDOWS, f"kbroker.http.max.throttle.ms={most_ms}")
    given = [part for each in settings for part in ("--set", each)]
    return ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0", *given)


@pytest.fixture
def patient() -> Iterator[ServerProcess]:
    """Holds calls back for as long as it must."""
    with serve(60_000) as process:
        yield process


def give(server: ServerProcess, entity: dict[str, str | None], **quotas: float | None) -> None:
    with server.client() as client:
        set_quotas(client, entity, **quotas)


def test_who_publishes_too_much_waits(patient: ServerProcess) -> None:
    give(patient, ANONYMOUS, producer_byte_rate=RATE)
    with GrpcClient(patient.grpc) as client:
        client.create("t")
        began = time.monotonic()
        for _ in range(20):
            client.publish("t", PART)
        # Of 200,000 bytes what two windows allow at once is at most 100,000.
        assert time.monotonic() - began >= 2


def test_a_stream_of_batches_is_held_back_in_its_midst(patient: ServerProcess) -> None:
    give(patient, ANONYMOUS, producer_byte_rate=RATE)
    with GrpcClient(patient.grpc) as client:
        client.create("t")
        batch = pb.PublishRequest(topic="t", records=[pb.NewRecord(value=PART)])
        began = time.monotonic()
        assert len(list(client.Produce(pb.ProduceRequest(batch=batch) for _ in range(20)))) == 20
        assert time.monotonic() - began >= 2


def test_who_reads_too_much_waits(patient: ServerProcess) -> None:
    with GrpcClient(patient.grpc) as client:
        client.create("t")
        client.publish("t", *[PART] * 20)
        give(patient, ANONYMOUS, consumer_byte_rate=RATE)
        began = time.monotonic()
        with client.consume("t", start=EARLIEST, max_bytes=10_000) as stream:
            assert len(stream.values(20)) == 20
        assert time.monotonic() - began >= 1


def test_who_would_wait_too_long_is_told_when_to_come_again() -> None:
    with serve(0) as strict, GrpcClient(strict.grpc) as client:
        client.create("t")
        give(strict, ANONYMOUS, producer_byte_rate=1000)
        client.publish("t", PART)
        with pytest.raises(grpc.RpcError) as refused:
            client.publish("t", PART)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        details = dict(refused.value.trailing_metadata())["grpc-status-details-bin"]
        assert b"google.rpc.RetryInfo" in details
        assert client.ListTopics(pb.ListTopicsRequest()).topics, "what publishes nothing is served"


def test_a_client_id_has_quotas_of_its_own() -> None:
    with serve(0) as strict:
        give(strict, {"client-id": "greedy"}, producer_byte_rate=1000)
        with GrpcClient(strict.grpc, x_client_id="greedy") as greedy, GrpcClient(strict.grpc) as other:
            other.create("t")
            greedy.publish("t", PART)
            other.publish("t", PART)
            with pytest.raises(grpc.RpcError) as refused:
                greedy.publish("t", PART)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            other.publish("t", PART)


def test_partitions_that_come_count() -> None:
    with serve(0) as strict, GrpcClient(strict.grpc) as client:
        give(strict, ANONYMOUS, controller_mutation_rate=1)
        client.create("many", 10)
        with pytest.raises(grpc.RpcError) as refused:
            client.create("more", 10)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
