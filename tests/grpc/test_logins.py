"""Who may call where the listener asks for logins: users and tokens of Kafka clients, and their rights."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.authentication.provider import Provider
from tests.support.grpc_client import EARLIEST, GrpcClient, pb
from tests.support.server_process import ServerProcess, eventually

DELAY_MS = 250
UNAUTHENTICATED, DENIED = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED
USERS = ("admin", "alice", "bob")
RIGHTS = (
    ("alice", ("--producer", "--consumer", "--topic", "orders", "--group", "shop")),
    ("bob", ("--operation", "Describe", "--topic", "orders")),
)


def serve(*arguments: str, **settings: str) -> ServerProcess:
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0", *arguments, *given)


@pytest.fixture(scope="module")
def audit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def server(audit_file: Path) -> Iterator[ServerProcess]:
    users = [part for name in USERS for part in ("--user", f"{name}:{name}-pw")]
    with serve(
        *(*users, "--log-level", "trace"),
        **{
            "authorizer.class.name": "kbroker",
            "super.users": "User:admin",
            "kbroker.audit.log.file": str(audit_file),
            "connection.failed.authentication.delay.ms": str(DELAY_MS),
        },
    ) as process:
        with by(process, "admin") as admin:
            admin.create("orders")
            admin.create("payroll")
        for user, rights in RIGHTS:
            command = [
                sys.executable,
                "-m",
                "kbroker",
                "acl",
                "add",
                "--allow-principal",
                f"User:{user}",
                *rights,
            ]
            subprocess.run([*command, "-b", process.bootstrap, *LOGIN], check=True, timeout=60)
        yield process


LOGIN = (
    *("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=SCRAM-SHA-256"),
    *("-X", "sasl.username=admin", "-X", "sasl.password=admin-pw"),
)


def by(server: ServerProcess, user: str, password: str | None = None) -> GrpcClient:
    return GrpcClient(server.grpc, user=f"{user}:{password or user + '-pw'}")


def told(audit_file: Path, **wanted: str) -> list[dict[str, Any]]:
    """The events of the audit log with these fields."""
    lines = [json.loads(line) for line in audit_file.read_text().splitlines()]
    return [line for line in lines if wanted.items() <= line.items()]


def code_of(call: Callable[[], Any]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    code: grpc.StatusCode = refused.value.code()
    return code


def test_without_credentials_only_health_is_told(server: ServerProcess) -> None:
    with GrpcClient(server.grpc) as stranger:
        with pytest.raises(grpc.RpcError) as refused:
            stranger.ListTopics(pb.ListTopicsRequest())
        assert refused.value.code() is UNAUTHENTICATED
        assert "Basic" in refused.value.details()
        health = health_pb2_grpc.HealthStub(stranger.channel)
        assert health.Check(health_pb2.HealthCheckRequest()).status == 1


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", "x"), ("alice", "bob-pw")])
def test_who_is_wrong_hears_it_late(server: ServerProcess, name: str, password: str) -> None:
    with by(server, name, password) as client:
        began = time.monotonic()
        assert code_of(lambda: client.ListTopics(pb.ListTopicsRequest())) is UNAUTHENTICATED
        assert time.monotonic() - began >= DELAY_MS / 1000


def test_a_user_may_what_its_acls_say(server: ServerProcess) -> None:
    with by(server, "alice") as alice:
        assert [each.name for each in alice.ListTopics(pb.ListTopicsRequest()).topics] == ["orders"]
        assert alice.publish("orders", b"mine")[0].offset >= 0
        assert alice.Fetch(pb.FetchRequest(topic="orders")).records[0].value == b"mine"
        with alice.consume("orders", group="shop", start=EARLIEST) as stream:
            assert stream.values(1) == [b"mine"]
        assert code_of(lambda: alice.publish("payroll", b"v")) is DENIED
        assert code_of(lambda: alice.Fetch(pb.FetchRequest(topic="payroll"))) is DENIED
        assert code_of(lambda: alice.create("more")) is DENIED
        assert code_of(lambda: alice.DeleteTopic(pb.DeleteTopicRequest(name="orders"))) is DENIED
        assert code_of(lambda: alice.consume("orders", group="other").values(1)) is DENIED
        assert code_of(lambda: alice.GetOffsets(pb.GetOffsetsRequest(group="other"))) is DENIED


def test_a_user_that_may_only_look_reads_and_writes_nothing(server: ServerProcess) -> None:
    with by(server, "bob") as bob:
        assert bob.DescribeTopic(pb.DescribeTopicRequest(name="orders")).partitions == 1
        assert code_of(lambda: bob.publish("orders", b"v")) is DENIED
        assert code_of(lambda: bob.consume("orders").values(1)) is DENIED
        records = [pb.NewRecord(value=b"v")]
        batch = pb.ProduceRequest(batch=pb.PublishRequest(topic="orders", records=records))
        (answer,) = bob.Produce(iter([batch]))
        assert answer.error.name == "TOPIC_AUTHORIZATION_FAILED"


def test_the_audit_log_tells_logins_refusals_and_changes(server: ServerProcess, audit_file: Path) -> None:
    with by(server, "admin") as admin:
        admin.create("told")
    with by(server, "bob") as bob:
        code_of(lambda: bob.publish("payroll", b"v"))
    with by(server, "bob", "no") as wrong:
        code_of(lambda: wrong.ListTopics(pb.ListTopicsRequest()))
    login = {"listener": "GRPC", "mechanism": "Basic"}
    eventually(lambda: bool(told(audit_file, outcome="failure", **login)))
    assert told(audit_file, principal="User:bob", outcome="success", **login)
    assert told(audit_file, resource="told", principal="User:admin", api="kbroker.v1.Kbroker/CreateTopic")
    assert told(audit_file, resource="payroll", principal="User:bob", api="kbroker.v1.Kbroker/Publish")


def test_no_secret_and_no_payload_is_in_any_log(server: ServerProcess, audit_file: Path) -> None:
    with by(server, "alice") as alice:
        alice.Publish(
            pb.PublishRequest(
                topic="orders", records=[pb.NewRecord(key=b"in-the-key", value=b"in-the-value")]
            )
        )
        code_of(lambda: alice.Fetch(pb.FetchRequest(topic="in-the-topic-name/")))
    with by(server, "alice", "in-the-password") as wrong:
        code_of(lambda: wrong.publish("orders", b"in-the-value"))
    with GrpcClient(server.grpc, authorization="Bearer in-the-token", x_other="in-the-metadata") as wrong:
        code_of(lambda: wrong.publish("orders", b"in-the-value"))
    logged = server.log() + audit_file.read_text()
    assert "User:alice" in logged
    assert "/kbroker.v1.Kbroker/Publish" in logged
    for secret in (
        "in-the-key",
        "in-the-value",
        "in-the-password",
        "in-the-token",
        "in-the-metadata",
        "alice-pw",
    ):
        assert secret not in logged


def test_the_request_id_is_told_and_answered(server: ServerProcess) -> None:
    with GrpcClient(server.grpc, user="alice:alice-pw", x_request_id="mine-42") as alice:
        call = alice.ListTopics.func.with_call(pb.ListTopicsRequest(), metadata=alice.metadata)[1]
        assert dict(call.initial_metadata())["x-request-id"] == "mine-42"
    eventually(lambda: "mine-42" in server.log())


def test_a_stream_ends_with_the_session_it_began_with(tmp_path: Path) -> None:
    provider = Provider()
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.write(tmp_path / "jwks.json"),
        "sasl.oauthbearer.expected.audience": "kafka",
        "connections.max.reauth.ms": "1500",
    }
    with (
        serve(**settings) as server,
        GrpcClient(server.grpc, authorization=f"Bearer {provider.token()}") as joe,
        GrpcClient(server.grpc, authorization="Bearer x.y.z") as wrong,
    ):
        joe.create("t")
        with joe.consume("t") as stream, pytest.raises(grpc.RpcError) as ended:
            stream.values(1)
        assert ended.value.code() is UNAUTHENTICATED
        assert "connections.max.reauth.ms" in ended.value.details()
        assert code_of(lambda: wrong.ListTopics(pb.ListTopicsRequest())) is UNAUTHENTICATED
