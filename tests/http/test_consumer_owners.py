"""A consumer is its maker's own: nobody else reaches it, by whichever API, and all is done as they may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates import Certificates, as_arguments
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess

V2 = {"Content-Type": "application/vnd.kafka.v2+json", "Accept": "application/vnd.kafka.v2+json"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    found = Certificates(tmp_path_factory.mktemp("certificates"))
    for name in ("bob", "root"):
        found.store(name, found.authority.issue_client(name))
    return found


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> Iterator[ServerProcess]:
    settings = certificates.broker_settings(client_auth="required") | {
        "authorizer.class.name": "kbroker",
        "super.users": "User:CN=root",
    }
    with ServerProcess("--in-memory", "--http-port", "0", "--port", "0", *as_arguments(settings)) as process:
        yield process


def client(server: ServerProcess, certificates: Certificates, name: str) -> HttpClient:
    store: Path = certificates.directory / f"{name}.pem"
    return HttpClient(server.url, tls=certificates.client_context(store))


def allow(root: HttpClient, user: str, kind: str, name: str, operation: str) -> None:
    acl = {
        "resourceType": kind,
        "resourceName": name,
        "patternType": "LITERAL",
        "principal": f"User:CN={user}",
        "host": "*",
        "operation": operation,
        "permission": "ALLOW",
    }
    answer = root.post("/acls", {"acls": [acl]})
    assert answer.status in (200, 201), answer


def test_nobody_but_its_maker_reaches_a_consumer(server: ServerProcess, certificates: Certificates) -> None:
    with (
        client(server, certificates, "root") as root,
        client(server, certificates, "alice") as alice,
        client(server, certificates, "bob") as bob,
    ):
        assert root.post("/topics", {"name": "t", "partitions": 1}).status == 201
        for user in ("alice", "bob"):
            allow(root, user, "GROUP", "g", "READ")
            allow(root, user, "TOPIC", "t", "READ")
        made = alice.post("/groups/g/consumers", {"name": "c", "topics": ["t"]})
        assert made.status == 201, made
        path = made.headers["location"]
        instance = alice.ask("POST", "/consumers/g", '{"name": "i"}', V2)
        assert instance.status == 200, instance
        assert alice.get(f"{path}/records?maxWaitMs=0").status == 200
        for other in (bob, root):
            for method, rest in (
                ("GET", ""),
                ("DELETE", ""),
                ("GET", "/records"),
                ("POST", "/commit"),
                ("GET", "/positions"),
                ("POST", "/heartbeat"),
            ):
                assert other.ask(method, path + rest).status == 404
            assert other.get("/groups/g/consumers").json == {"consumers": []}
            refused = other.ask("GET", "/consumers/g/instances/i/records", None, {"Accept": V2["Accept"]})
            assert (refused.status, refused.json["error_code"]) == (404, 40403)
        assert len(alice.get("/groups/g/consumers").json["consumers"]) == 2


def test_everything_is_done_as_the_caller_may(server: ServerProcess, certificates: Certificates) -> None:
    with client(server, certificates, "root") as root, client(server, certificates, "bob") as bob:
        assert root.post("/topics", {"name": "secret", "partitions": 1}).status == 201

        def refused(answer: Any, code: str) -> None:
            assert answer.status == 403, answer
            assert answer.json["error"] == code

        refused(bob.post("/groups/other/consumers", {}), "GROUP_AUTHORIZATION_FAILED")
        refused(bob.get("/groups/other"), "GROUP_AUTHORIZATION_FAILED")
        refused(bob.get("/groups/other/lag"), "GROUP_AUTHORIZATION_FAILED")
        refused(bob.ask("DELETE", "/groups/other"), "GROUP_AUTHORIZATION_FAILED")
        reset = {"to": "latest", "topics": ["secret"]}
        refused(bob.post("/groups/other/reset", reset), "GROUP_AUTHORIZATION_FAILED")
        v2 = bob.ask("POST", "/consumers/other", "{}", V2)
        assert (v2.status, v2.json["error_code"]) == (403, 40301)
        allow(root, "bob", "GROUP", "other", "READ")
        refused(bob.post("/groups/other/consumers", {"topics": ["secret"]}), "TOPIC_AUTHORIZATION_FAILED")
        at = {"topic": "secret", "partition": 0}
        refused(bob.post("/groups/other/consumers", {"partitions": [at]}), "TOPIC_AUTHORIZATION_FAILED")
        refused(bob.post("/groups/other/reset", reset), "TOPIC_AUTHORIZATION_FAILED")
        answer = bob.post("/groups/other/offsets", {"offsets": [{**at, "offset": 0}]})
        assert [each["error"] for each in answer.json["refused"]] == ["TOPIC_AUTHORIZATION_FAILED"]
        assert bob.get("/groups/other/consumers").json == {"consumers": []}, "none is left behind"
