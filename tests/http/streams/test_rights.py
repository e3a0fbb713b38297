"""Streams and commands over TLS, by who may and by who may not."""

from __future__ import annotations

import json
import ssl
from typing import Any

from websockets.sync.client import connect

from tests.http.streams.conftest import publish, values
from tests.http.test_consumer_owners import allow, certificates, client, server
from tests.support.certificates import Certificates
from tests.support.event_stream import EventStream
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess

__all__ = ["certificates", "server"]


def context(found: Certificates, name: str) -> ssl.SSLContext:
    return found.client_context(found.directory / f"{name}.pem")


def events(broker: ServerProcess, found: Certificates, name: str, path: str) -> EventStream:
    return EventStream(broker.url, path, tls=context(found, name))


def disallow(root: HttpClient, user: str, name: str) -> None:
    answer = root.ask(
        "DELETE",
        f"/acls?resourceType=TOPIC&resourceName={name}&patternType=LITERAL&principal=User:CN={user}"
        "&operation=READ&permission=ALLOW",
    )
    assert len(answer.json["acls"]) == 1, answer


def test_a_stream_needs_the_right_to_read_and_ends_when_that_is_lost(
    server: ServerProcess, certificates: Certificates
) -> None:
    path = "/topics/read/stream"
    with client(server, certificates, "root") as root:
        assert root.post("/topics", {"name": "read"}).status == 201
        with events(server, certificates, "bob", path) as stream:
            assert (stream.status, stream.problem()["error"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
        allow(root, "bob", "TOPIC", "read", "READ")
        with events(server, certificates, "bob", f"{path}?group=g") as stream:
            assert (stream.status, stream.problem()["error"]) == (403, "GROUP_AUTHORIZATION_FAILED")
        with events(server, certificates, "bob", path) as stream:
            stream.begun()
            publish(root, "read", 1)
            assert values(stream.records(1)) == [1]
            disallow(root, "bob", "read")
            publish(root, "read", 2)
            (end,) = list(stream.events())
            assert (end.name, end.json["error"]) == ("end", "TOPIC_AUTHORIZATION_FAILED")


def test_commands_are_executed_as_their_caller_may(server: ServerProcess, certificates: Certificates) -> None:
    with (
        client(server, certificates, "root") as root,
        connect(server.url.replace("https", "wss") + "/socket", ssl=context(certificates, "bob")) as socket,
    ):
        assert root.post("/topics", {"name": "written"}).status == 201

        def answer(**command: Any) -> Any:
            socket.send(json.dumps(command))
            return json.loads(socket.recv(timeout=20))

        produce = {"command": "produce", "topic": "written", "value": 1}
        assert answer(**produce)["problem"]["error"] == "TOPIC_AUTHORIZATION_FAILED"
        assert answer(command="create_topic", name="more")["problem"]["status"] == 403
        allow(root, "bob", "TOPIC", "written", "WRITE")
        assert answer(**produce)["result"]["offset"] == 0
        assert answer(command="fetch", topic="written", partition=0)["problem"]["status"] == 403


def test_a_reader_that_takes_its_time_loses_nothing(
    server: ServerProcess, certificates: Certificates
) -> None:
    with client(server, certificates, "root") as root:
        assert root.post("/topics", {"name": "large"}).status == 201
        with (
            events(server, certificates, "root", "/topics/large/stream") as stream,
            connect(
                server.url.replace("https", "wss") + "/topics/large/stream",
                ssl=context(certificates, "root"),
                max_size=None,
            ) as socket,
        ):
            stream.begun()
            socket.recv(timeout=20)
            for number in range(60):
                publish(root, "large", str(number) + "x" * 300_000)
            found = [json.loads(socket.recv(timeout=20))["offset"] for _ in range(60)]
            assert [record["offset"] for record in stream.records(60)] == found == list(range(60))
