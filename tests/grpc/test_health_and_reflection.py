"""Health checks and reflection, with gRPC's own clients for them."""

from __future__ import annotations

import os
import signal

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from kbroker.grpc.messages import SERVICE, message
from tests.support.grpc_client import GrpcClient
from tests.support.server_process import ServerProcess

SERVING, NOT_SERVING, UNKNOWN = 1, 2, 3


def test_the_broker_and_its_service_are_healthy(client: GrpcClient) -> None:
    health = health_pb2_grpc.HealthStub(client.channel)
    for service in ("", SERVICE):
        assert health.Check(health_pb2.HealthCheckRequest(service=service)).status == SERVING
    with pytest.raises(grpc.RpcError) as unknown:
        health.Check(health_pb2.HealthCheckRequest(service="no.such"))
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    watched = health.Watch(health_pb2.HealthCheckRequest(service="no.such"))
    assert next(watched).status == UNKNOWN
    watched.cancel()
    assert health.List(health_pb2.HealthListRequest()).statuses[SERVICE].status == SERVING


def test_who_watches_is_told_of_a_stop() -> None:
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as server:
        with GrpcClient(server.grpc) as client:
            watched = health_pb2_grpc.HealthStub(client.channel).Watch(health_pb2.HealthCheckRequest())
            assert next(watched).status == SERVING
            os.kill(server.pid, signal.SIGTERM)
            assert [each.status for each in watched] == [NOT_SERVING]
        assert server.wait() == 0


def test_a_client_that_knows_nothing_learns_all_by_reflection(client: GrpcClient) -> None:
    client.create("reflected")
    database = ProtoReflectionDescriptorDatabase(client.channel)
    assert SERVICE in database.get_services()
    pool = descriptor_pool.DescriptorPool(database)
    (create,) = (each for each in pool.FindServiceByName(SERVICE).methods if each.name == "DescribeTopic")
    request = message_factory.GetMessageClass(create.input_type)(name="reflected")
    call = client.channel.unary_unary(
        f"/{SERVICE}/DescribeTopic",
        request_serializer=lambda each: each.SerializeToString(),
        response_deserializer=message_factory.GetMessageClass(create.output_type).FromString,
    )
    assert call(request).partitions == 1


def test_the_newer_version_tells_the_same(client: GrpcClient) -> None:
    request = message("grpc.reflection.v1.ServerReflectionRequest")
    response = message("grpc.reflection.v1.ServerReflectionResponse")
    ask = client.channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=lambda each: each.SerializeToString(),
        response_deserializer=response.FromString,
    )
    asked = [
        request(list_services=""),
        request(file_containing_symbol="kbroker.v1.Kbroker.Publish"),
        request(file_by_filename="google/protobuf/any.proto"),
        request(file_containing_symbol="no.such.Symbol"),
        request(file_by_filename="no/such.proto"),
        request(all_extension_numbers_of_type="kbroker.v1.Record"),
    ]
    services, *files, symbol, name, extension = ask(iter(asked))
    assert len(services.list_services_response.service) == 4
    names = [
        FileDescriptorProto.FromString(each.file_descriptor_response.file_descriptor_proto[0]).name
        for each in files
    ]
    assert names == ["kbroker.proto", "google/protobuf/any.proto"]
    assert {each.error_response.error_code for each in (symbol, name, extension)} == {5}


def test_reflection_ends_with_its_client(client: GrpcClient) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
    requests = iter([reflection_pb2.ServerReflectionRequest(list_services="")] * 3)
    assert len(list(stub.ServerReflectionInfo(requests))) == 3
