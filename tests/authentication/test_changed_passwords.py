"""A changed password, or a deleted user, ends connections that are logged in with what is no longer valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.security.scram_credentials import salted
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess

from .sasl_client import Scram, is_in, plain

SCRAM_SHA_256 = 1
SALT = b"salt-of-a-test--"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    arguments = (
        *("--set", "listeners=SASL_PLAINTEXT://127.0.0.1:0"),
        *("--set", "sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN"),
        *("--set", f"kbroker.audit.log.file={tmp_path / 'audit.log'}"),
        *("--user", "admin:first"),
    )
    with ServerProcess("--in-memory", *arguments) as server:
        yield server


def put(client: RawClient, name: str, password: str) -> Any:
    hashed = salted("SCRAM-SHA-256", password, SALT, 4096)
    user = ScramCredentialUpsertion(name, SCRAM_SHA_256, 4096, SALT, hashed)
    return client.ask(AlterUserScramCredentialsRequest([], [user]), 0)


def has_ended(client: RawClient) -> bool:
    try:
        client.take(1)
    except (Closed, ConnectionError):
        return True
    return False


def admin_of(server: ServerProcess) -> RawClient:
    client = server.client()
    assert plain(client, "admin", "first").error_code == 0
    return client


def test_a_changed_password_ends_connections_and_what_they_wait_for(server: ServerProcess) -> None:
    with admin_of(server) as admin, server.client() as waiting, server.client() as idle:
        admin.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), 5)
        put(admin, "alice", "old")
        assert Scram("SCRAM-SHA-256", "alice", "old").log_in(waiting).error_code == 0
        assert plain(idle, "alice", "old").error_code == 0
        assert is_in(idle)
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic("t", partitions=[asked])]
        waiting.send(FetchRequest(max_wait_ms=300_000, min_bytes=1, max_bytes=1 << 20, topics=topics), 12)
        put(admin, "alice", "new")
        assert has_ended(waiting)
        assert has_ended(idle)
        assert is_in(admin)
        with server.client() as again:
            assert plain(again, "alice", "new").error_code == 0


def test_who_deletes_themselves_hears_that_it_worked(server: ServerProcess) -> None:
    with admin_of(server) as admin:
        put(admin, "alice", "pw")
    with server.client() as alice:
        assert plain(alice, "alice", "pw").error_code == 0
        gone = alice.ask(
            AlterUserScramCredentialsRequest([ScramCredentialDeletion("alice", SCRAM_SHA_256)], []), 0
        )
        assert [result.error_code for result in gone.results] == [0]
        assert has_ended(alice)


def test_a_stored_user_who_hides_one_given_at_the_start_ends_their_connections(server: ServerProcess) -> None:
    with admin_of(server) as admin, admin_of(server) as other:
        assert [result.error_code for result in put(admin, "admin", "second").results] == [0]
        assert has_ended(admin)
        assert has_ended(other)
    with server.client() as again:
        assert plain(again, "admin", "first").error_code != 0
    with server.client() as again:
        assert plain(again, "admin", "second").error_code == 0


def test_a_new_mechanism_of_a_user_ends_nothing(server: ServerProcess) -> None:
    with admin_of(server) as admin, server.client() as alice:
        put(admin, "alice", "pw")
        assert plain(alice, "alice", "pw").error_code == 0
        hashed = salted("SCRAM-SHA-512", "pw", SALT, 4096)
        user = ScramCredentialUpsertion("alice", 2, 4096, SALT, hashed)
        admin.ask(AlterUserScramCredentialsRequest([], [user]), 0)
        assert is_in(alice)


def test_logins_and_failures_are_in_the_audit_log(server: ServerProcess, tmp_path: Path) -> None:
    with admin_of(server) as admin:
        put(admin, "alice", "pw")
    with server.client() as stranger:
        assert plain(stranger, "alice", "wrong").error_code != 0
    server.stop()
    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    logins = [line for line in lines if line["event"] == "login"]
    assert [(each["outcome"], each["mechanism"]) for each in logins] == [
        ("success", "PLAIN"),
        ("failure", "PLAIN"),
    ]
    assert logins[0]["principal"] == "User:admin"
    assert "wrong" not in json.dumps(lines)
    assert [each["resource"] for each in lines if each["event"] == "change"] == ["alice"]
