"""Streams by WebSocket: what comes, what ends it, and who may open one."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from socket import SHUT_RDWR
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.http.streams.conftest import publish, values
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess


def opened(server: ServerProcess, path: str, **options: Any) -> AbstractContextManager[ClientConnection]:
    return connect(server.url.replace("http", "ws") + path, **options)


def received(socket: ClientConnection) -> Any:
    return json.loads(socket.recv(timeout=20))


def records(socket: ClientConnection, count: int) -> list[Any]:
    """The next ones, whatever stands between them."""
    found: list[Any] = []
    while len(found) < count:
        message = received(socket)
        if "offset" in message:
            found.append(message)
    return found


def refusal(server: ServerProcess, path: str, **options: Any) -> Any:
    with pytest.raises(InvalidStatus) as refused, opened(server, path, **options):
        pass
    response = refused.value.response
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.headers["X-Request-Id"]
    problem = json.loads(response.body)
    assert problem["status"] == response.status_code
    return problem


def test_each_record_is_a_message(server: ServerProcess, http: HttpClient, topic: str) -> None:
    with opened(server, f"/topics/{topic}/stream") as socket:
        assert received(socket)["position"].startswith("0,0~")
        for number in range(3):
            publish(http, topic, {"n": number}, key="ada", headers={"h": "v"})
            message = received(socket)
            assert (message["topic"], message["partition"], message["offset"]) == (topic, 0, number)
            assert (message["key"], message["value"]) == ("ada", {"n": number})
            assert message["headers"] == [{"key": "h", "value": "v"}]


def test_several_records_come_in_one_message_if_asked_for(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, *range(10))
    with opened(server, f"/topics/{topic}/stream?offset=earliest&batch=true") as socket:
        assert "position" in received(socket)
        message = received(socket)
        assert values(message["records"]) == list(range(10))
        assert message["position"].startswith("10,0~")
        publish(http, topic, "next")
        assert values(received(socket)["records"]) == ["next"]


def test_a_stream_goes_on_at_the_position_of_another(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, *range(4))
    with opened(server, f"/topics/{topic}/stream?lastEventId=0:2") as socket:
        assert values(records(socket, 2)) == [2, 3]


def test_the_long_path_and_the_short_one_are_the_same(server: ServerProcess, topic: str) -> None:
    for path in (f"/api/v1/topics/{topic}/stream", "/api/v1/socket", "/socket"):
        with opened(server, path) as socket:
            socket.send('{"id": 1, "command": "heartbeat"}')
            while "id" not in (answer := received(socket)):
                pass
            assert answer == {"id": 1, "result": {}}


def test_a_stream_with_an_end_is_closed_at_it(server: ServerProcess, http: HttpClient, topic: str) -> None:
    publish(http, topic, *range(4))
    with opened(server, f"/topics/{topic}/stream?offset=earliest&maxRecords=3") as socket:
        assert values(records(socket, 3)) == [0, 1, 2]
        with pytest.raises(ConnectionClosed) as closed:
            received(socket)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000


def test_a_deleted_topic_ends_the_stream_and_says_so(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    with opened(server, f"/topics/{topic}/stream") as socket:
        received(socket)
        assert http.ask("DELETE", f"/topics/{topic}").status == 200
        end = received(socket)["end"]
        assert (end["status"], end["detail"]) == (404, f"The topic {topic} was deleted.")
        with pytest.raises(ConnectionClosed) as closed:
            received(socket)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4404, f"The topic {topic} was deleted.")


def test_what_was_deleted_before_it_was_read_is_told(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, *range(4))
    assert http.ask("DELETE", f"/topics/{topic}/partitions/0/records?before=3").status == 200
    with opened(server, f"/topics/{topic}/stream?offset=1&partition=0") as socket:
        received(socket)
        assert received(socket) == {"gap": {"topic": topic, "partition": 0, "offset": 1, "nextOffset": 3}}
        assert values(records(socket, 1)) == [3]


def test_what_cannot_be_streamed_is_refused_before_the_upgrade(server: ServerProcess, topic: str) -> None:
    assert refusal(server, "/topics/nothing/stream")["status"] == 404
    assert refusal(server, f"/topics/{topic}/stream?offset=x")["status"] == 400
    assert refusal(server, f"/topics/{topic}/stream?offset=7")["status"] == 416
    assert refusal(server, "/no/such/path")["status"] == 404
    assert refusal(server, "/topics")["status"] == 405


def test_a_plain_request_for_a_websocket_is_told_so(http: HttpClient) -> None:
    answer = http.get("/socket")
    assert (answer.status, answer.headers["Upgrade"]) == (426, "websocket")


def test_a_page_from_elsewhere_may_not_open_one(server: ServerProcess, topic: str) -> None:
    path = f"/topics/{topic}/stream"
    for origin in ("http://evil.example", "null", server.url.replace("127.0.0.1", "localhost")):
        assert refusal(server, path, origin=origin)["status"] == 403
    with opened(server, path, origin=server.url) as socket:
        assert "position" in received(socket)


def test_every_handshake_has_a_request_id(server: ServerProcess) -> None:
    with opened(server, "/socket", additional_headers={"X-Request-Id": "mine-7"}) as socket:
        assert socket.response is not None
        assert socket.response.headers["X-Request-Id"] == "mine-7"


def test_nothing_is_logged_of_those_that_come_and_go() -> None:
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        with HttpClient(server.url) as http:
            http.post("/topics", {"name": "t"})
        for _ in range(3):
            with opened(server, "/topics/t/stream") as socket:
                received(socket)
        refusal(server, "/topics/nothing/stream")
        with opened(server, "/topics/t/stream") as socket:
            socket.socket.shutdown(SHUT_RDWR)
        assert server.stop() == 0
        assert server.log().count("\n") <= 1, server.log()


def test_a_client_that_says_goodbye_is_answered(server: ServerProcess, topic: str) -> None:
    with opened(server, f"/topics/{topic}/stream") as socket:
        socket.close(code=1000, reason="done")
        assert socket.close_code == 1000
