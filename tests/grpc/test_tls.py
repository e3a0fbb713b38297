"""gRPC within TLS: the certificates, names and settings of Kafka's listeners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.support.certificates import Certificates, as_arguments
from tests.support.grpc_client import GrpcClient, pb
from tests.support.server_process import ServerProcess, eventually


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def serve(settings: dict[str, str], *arguments: str) -> ServerProcess:
    ports = ("--http-port", "off", "--grpc-port", "0", "--port", "0")
    return ServerProcess("--in-memory", *ports, *arguments, *as_arguments(settings))


@pytest.fixture(scope="module")
def audit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def strict(certificates: Certificates, audit_file: Path) -> Iterator[ServerProcess]:
    """Lets in who shows a certificate."""
    settings = certificates.broker_settings(
        client_auth="required",
        ssl_principal_mapping_rules="RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        kbroker_audit_log_file=str(audit_file),
    )
    with serve(settings) as process:
        yield process


def credentials(certificates: Certificates, name: str = "") -> grpc.ChannelCredentials:
    ca = certificates.ca.read_bytes()
    if not name:
        return grpc.ssl_channel_credentials(ca)
    own = certificates.directory / name
    return grpc.ssl_channel_credentials(
        ca, own.with_suffix(".key").read_bytes(), own.with_suffix(".crt").read_bytes()
    )


def test_who_shows_a_certificate_is_who_it_says(
    strict: ServerProcess, certificates: Certificates, audit_file: Path
) -> None:
    with GrpcClient(strict.grpc, credentials(certificates, "alice")) as alice:
        alice.create("by-alice")
        alice.publish("by-alice", *[b"x" * 1000] * 500)
        assert len(alice.Fetch(pb.FetchRequest(topic="by-alice")).records) == 500

    def is_told() -> bool:
        text = audit_file.read_text() if audit_file.exists() else ""
        return any('"by-alice"' in line and '"User:alice"' in line for line in text.splitlines())

    eventually(is_told)


def test_who_shows_none_is_not_let_in(strict: ServerProcess, certificates: Certificates) -> None:
    with (
        GrpcClient(strict.grpc, credentials(certificates)) as stranger,
        pytest.raises(grpc.RpcError) as refused,
    ):
        stranger.ListTopics(pb.ListTopicsRequest(), timeout=20)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_passwords_go_within_tls(certificates: Certificates) -> None:
    settings = certificates.broker_settings() | {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with serve(settings, "--user", "ada:secret") as server:
        tls = credentials(certificates)
        with GrpcClient(server.grpc, tls, user="ada:secret") as ada:
            ada.create("t")
            with ada.consume("t") as stream:
                stream.next("assigned")
                ada.publish("t", b"v")
                assert stream.values(1) == [b"v"]
        with GrpcClient(server.grpc, tls, user="ada:wrong") as wrong, pytest.raises(grpc.RpcError) as refused:
            wrong.ListTopics(pb.ListTopicsRequest(), timeout=20)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_grpc_may_be_protected_in_another_way_than_kafka(certificates: Certificates) -> None:
    settings = certificates.broker_settings() | {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GRPC:SSL",
    }
    with serve(settings) as server, GrpcClient(server.grpc, credentials(certificates)) as client:
        assert not client.ListTopics(pb.ListTopicsRequest(), timeout=20).topics
