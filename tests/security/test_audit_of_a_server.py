"""The audit log of a real broker."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat.harness.tls import librdkafka_configs
from kbroker.protocol.errors import ErrorCode
from tests.support.certificates import Certificates, as_arguments
from tests.support.raw_topics import create, delete, produce, read
from tests.support.server_process import ServerProcess, eventually
from tests.support.small_disk import small_disk


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_happened_last_is_written_before_the_broker_ends(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "audit.log"
    with ServerProcess("--in-memory", "--set", f"kbroker.audit.log.file={path}") as server:
        with server.client() as client:
            create(client, "t", 1)
            delete(client, "t")
        assert server.stop() == 0
    assert [(line["api"], line["resource"]) for line in lines(path)] == [
        ("CreateTopics", "t"),
        ("DeleteTopics", "t"),
    ]


def test_a_broker_without_an_audit_log_loads_nothing_of_it(tmp_path: Path) -> None:
    with ServerProcess("--in-memory") as server, server.client() as client:
        assert create(client, "t", 1) == ErrorCode.NONE
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_of_the_audit_log_does_not_stop_the_broker(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        path = disk.path / "audit.log"
        disk.fill()
        with ServerProcess("--in-memory", "--set", f"kbroker.audit.log.file={path}") as server:
            with server.client() as client:
                for number in range(20):
                    assert create(client, f"t{number}", 1) == ErrorCode.NONE
                assert produce(client, "t0", 0, b"value") == ErrorCode.NONE
                assert read(client, "t0", 0) == [b"value"]
                eventually(lambda: "the audit log cannot be written" in server.log())
                assert not path.exists() or path.stat().st_size == 0
                disk.empty()
                eventually(lambda: path.exists() and len(lines(path)) == 20)
            assert server.stop() == 0
        assert [line["resource"] for line in lines(path)] == [f"t{number}" for number in range(20)]


def failed_handshake(reason: str) -> dict[str, object]:
    return {
        "event": "login",
        "principal": "unknown",
        "address": "127.0.0.1",
        "listener": "SSL",
        "mechanism": "TLS",
        "outcome": "failure",
        "reason": reason,
    }


@pytest.mark.parametrize(
    ("trusts", "shows", "reason"),
    [
        ("own", "", "it shows no certificate, and ssl.client.auth=required"),
        (
            "own",
            "strangers",
            "its certificate is not accepted: unable to get local issuer certificate",
        ),
        ("strangers", "own", "it does not trust this broker's certificate"),
    ],
    ids=["no certificate", "a stranger's certificate", "trusts a stranger"],
)
def test_a_client_whose_tls_handshake_fails_is_told_of_as_a_refused_login(
    tmp_path: Path, trusts: str, shows: str, reason: str
) -> None:
    path = tmp_path / "audit.log"
    authorities = {name: Certificates(tmp_path / name, name) for name in ("own", "strangers")}
    settings = authorities["own"].broker_settings(client_auth="required")
    settings["kbroker.audit.log.file"] = str(path)
    store = authorities[shows].client if shows else None
    with ServerProcess("--in-memory", *as_arguments(settings)) as server:
        producer = Producer(
            {
                **librdkafka_configs(authorities[trusts], store),
                "bootstrap.servers": server.bootstrap,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )

        def told() -> bool:
            producer.poll(0)
            return path.exists() and len(lines(path)) > 0

        eventually(told)
    first = lines(path)[0]
    assert failed_handshake(reason).items() <= first.items()


def test_handshakes_that_fail_again_and_again_fill_no_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    settings = Certificates(tmp_path).broker_settings() | {"kbroker.audit.log.file": str(path)}
    reason = "it does not speak TLS; its listener has security.protocol=SSL"
    with ServerProcess("--in-memory", *as_arguments(settings)) as server:
        for _ in range(500):
            with server.client() as client, contextlib.suppress(ConnectionResetError):
                client.socket.sendall(bytes(100))
                while client.socket.recv(100):
                    pass
        assert server.log().count(reason) == 10
        assert server.stop() == 0
    first, repeated = lines(path)
    assert failed_handshake(reason).items() <= first.items()
    assert repeated == {**first, "time": repeated["time"], "repeated": 499}
