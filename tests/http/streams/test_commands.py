"""Commands over a WebSocket: what each does, and what becomes of those that are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.http.streams.conftest import publish, values
from tests.http.streams.test_sockets import opened, received, records
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess


@pytest.fixture
def socket(server: ServerProcess) -> Iterator[ClientConnection]:
    with opened(server, "/socket") as connection:
        yield connection


def answer(socket: ClientConnection, **command: Any) -> Any:
    """To this command; what else comes meanwhile is passed over."""
    socket.send(json.dumps({"id": "x", **command}))
    while (message := received(socket)).get("id") != command.get("id", "x"):
        pass
    return message


def result(socket: ClientConnection, **command: Any) -> Any:
    message = answer(socket, **command)
    assert "result" in message, message
    return message["result"]


def problem(socket: ClientConnection, **command: Any) -> Any:
    message = answer(socket, **command)
    assert {"type", "title", "status", "detail"} <= message["problem"].keys(), message
    return message["problem"]


def test_a_topic_is_created_written_and_read(socket: ClientConnection, topic: str) -> None:
    name = f"{topic}-new"
    created = result(socket, command="create_topic", name=name, partitions=3)
    assert (created["name"], created["partitions"]) == (name, 3)
    one = result(socket, command="produce", topic=name, key="ada", value={"n": 1}, partition=2)
    assert (one["topic"], one["partition"], one["offset"]) == (name, 2, 0)
    many = result(
        socket, command="produce", topic=name, records=[{"value": n, "partition": 2} for n in (2, 3)]
    )
    assert [each["offset"] for each in many["records"]] == [1, 2]
    found = result(socket, command="fetch", topic=name, partition=2, offset=1, value="text")
    assert [each["valueText"] for each in found["records"]] == ["2", "3"]
    assert found["nextOffset"] == 3


def test_the_topic_of_the_stream_need_not_be_named(server: ServerProcess, topic: str) -> None:
    with opened(server, f"/topics/{topic}/stream") as socket:
        assert result(socket, command="produce", value=1, partition=1)["topic"] == topic
        (record,) = records(socket, 1)
        assert (record["partition"], record["value"]) == (1, 1)
        assert result(socket, command="fetch", partition=1, offset=0)["nextOffset"] == 1


def test_what_was_produced_with_the_same_key_is_not_written_again(
    socket: ClientConnection, topic: str
) -> None:
    command = {"command": "produce", "topic": topic, "value": 1, "partition": 0, "idempotencyKey": "k-1"}
    first = result(socket, **command)
    assert result(socket, **command) == first
    assert problem(socket, **{**command, "value": 2})["status"] == 422


def test_commands_are_executed_in_their_order(socket: ClientConnection, topic: str) -> None:
    for number in range(200):
        socket.send(
            json.dumps({"id": number, "command": "produce", "topic": topic, "partition": 0, "value": number})
        )
    answers = [received(socket) for _ in range(200)]
    assert [each["id"] for each in answers] == list(range(200))
    assert [each["result"]["offset"] for each in answers] == list(range(200))


def test_a_fetch_that_waits_keeps_no_other_command_waiting(
    socket: ClientConnection, http: HttpClient, topic: str
) -> None:
    waiting = {"command": "fetch", "topic": topic, "partition": 0, "offset": "latest", "maxWaitMs": 60_000}
    for number in range(8):
        socket.send(json.dumps({"id": number, **waiting}))
    assert result(socket, id="now", command="heartbeat") == {}
    publish(http, topic, "there")
    answers = [received(socket) for _ in range(8)]
    assert sorted(each["id"] for each in answers) == list(range(8))
    assert all(values(each["result"]["records"]) == ["there"] for each in answers)


def test_a_group_is_told_how_far_it_is(socket: ClientConnection, http: HttpClient, topic: str) -> None:
    publish(http, topic, 1, 2)
    group = f"g-{topic}"
    offsets = [{"topic": topic, "partition": 0, "offset": 2}]
    assert result(socket, command="commit", group=group, offsets=offsets) == {"refused": []}
    found = http.get(f"/groups/{group}/offsets").json["offsets"]
    assert [(each["partition"], each["offset"]) for each in found] == [(0, 2)]


def test_a_stream_is_paused_and_goes_on(server: ServerProcess, http: HttpClient, topic: str) -> None:
    with opened(server, f"/topics/{topic}/stream") as socket:
        received(socket)
        assert result(socket, command="pause") == {}
        publish(http, topic, 1, 2)
        for _ in range(3):  # nothing of the stream comes between these
            socket.send(json.dumps({"id": "x", "command": "fetch", "partition": 0, "offset": 0}))
            assert received(socket)["id"] == "x"
        assert result(socket, command="resume") == {}
        assert values(records(socket, 2)) == [1, 2]


def test_a_seek_lets_the_stream_go_on_elsewhere(server: ServerProcess, http: HttpClient, topic: str) -> None:
    for number in range(5):
        publish(http, topic, number, timestamp=1_700_000_000_000 + number)
    with opened(server, f"/topics/{topic}/stream") as socket:
        received(socket)
        for wanted, expected in (
            ({"offset": 2}, [2, 3, 4]),
            ({"offset": "earliest"}, [0, 1, 2, 3, 4]),
            ({"timestamp": 1_700_000_000_003}, [3, 4]),
        ):
            sought = result(socket, command="seek", partition=0, **wanted)
            assert sought == {"partition": 0, "offset": expected[0]}
            assert values(records(socket, len(expected))) == expected
        assert result(socket, command="seek", partition=0, offset="latest")["offset"] == 5
        publish(http, topic, "new")
        assert values(records(socket, 1)) == ["new"]
        assert problem(socket, command="seek", partition=7, offset=0)["status"] == 404


def test_a_stream_of_a_group_is_committed_by_command(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    publish(http, topic, *range(4))
    group = f"g-{topic}"
    path = f"/topics/{topic}/stream?group={group}&offset=earliest&autoCommit=false"
    with opened(server, path) as socket:
        assert values(records(socket, 4)) == [0, 1, 2, 3]
        member = result(socket, command="heartbeat")
        assert (member["groupId"], len(member["assignment"])) == (group, 2)
        committed = result(socket, command="commit", offsets=[{"partition": 0, "offset": 2}])
        assert committed == {"refused": []}
        stale = result(socket, command="commit", offsets=[{"topic": "other", "partition": 0, "offset": 2}])
        assert stale["refused"][0]["topic"] == "other"
        assert result(socket, command="seek", partition=0, offset=1) == {"partition": 0, "offset": 1}
        assert values(records(socket, 3)) == [1, 2, 3]
    with opened(server, path) as socket:
        assert values(records(socket, 2)) == [2, 3]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ("{}", "needs the member 'command'"),
        ('{"command": 7}', "'command' in a command must be a string"),
        ('{"command": "fly"}', "There is no command 'fly', but commit, create_topic, fetch"),
        ("[" * 100_000, "not JSON"),
        ("[" * 20_000, "not JSON"),
    ],
)
def test_what_is_no_command_is_answered_and_the_socket_stays(
    socket: ClientConnection, text: str, detail: str
) -> None:
    socket.send(text)
    told = received(socket)
    assert told["id"] is None
    assert told["problem"]["status"] == 400
    assert detail in told["problem"]["detail"]
    assert result(socket, command="heartbeat") == {}


def test_a_binary_message_is_refused_and_the_socket_stays(socket: ClientConnection) -> None:
    socket.send(b'{"command": "heartbeat"}')
    told = received(socket)
    assert (told["id"], told["problem"]["status"]) == (None, 415)
    assert result(socket, command="heartbeat") == {}


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ({"command": "produce", "topic": "a/b", "value": 1}, 400),
        ({"command": "produce", "topic": "nothing"}, 400),
        ({"command": "produce", "value": 1}, 400),
        ({"command": "produce", "topic": "nothing", "value": 1, "acks": "2"}, 400),
        ({"command": "produce", "topic": "nothing", "value": 1, "colour": "red"}, 400),
        ({"command": "fetch", "topic": "nothing", "partition": 0}, 404),
        ({"command": "fetch", "topic": "nothing", "partition": "x"}, 400),
        ({"command": "fetch", "topic": "nothing", "partition": {}}, 400),
        ({"command": "fetch", "topic": "nothing", "partition": 0, "raw": True}, 400),
        ({"command": "fetch", "topic": "../..", "partition": 0}, 404),
        ({"command": "create_topic", "name": "a/b"}, 400),
        ({"command": "commit", "offsets": []}, 409),
        ({"command": "commit", "group": "g", "offsets": {}}, 400),
        ({"command": "pause"}, 409),
        ({"command": "resume"}, 409),
        ({"command": "seek", "partition": 0, "offset": 0}, 409),
        ({"command": "heartbeat", "more": 1}, 400),
    ],
)
def test_a_command_that_fails_is_told_why(
    socket: ClientConnection, command: dict[str, Any], status: int
) -> None:
    assert problem(socket, **command)["status"] == status


@pytest.mark.parametrize(
    "wanted",
    [{}, {"offset": 1, "timestamp": 1}, {"offset": -1}, {"offset": "x"}, {"timestamp": "x"}, {"offset": 1.5}],
)
def test_a_seek_to_nowhere_is_refused(server: ServerProcess, topic: str, wanted: dict[str, Any]) -> None:
    with opened(server, f"/topics/{topic}/stream") as socket:
        assert problem(socket, command="seek", partition=0, **wanted)["status"] == 400


@pytest.mark.parametrize("given", ["7", 7, 1.5, "ü", ""])
def test_an_answer_has_the_id_of_its_command(socket: ClientConnection, given: Any) -> None:
    assert answer(socket, id=given, command="heartbeat") == {"id": given, "result": {}}


@pytest.mark.parametrize("given", [None, True, [1], {"a": 1}, "x" * 1000])
def test_an_id_that_is_none_is_null(socket: ClientConnection, given: Any) -> None:
    socket.send(json.dumps({"id": given, "command": "heartbeat"}))
    assert received(socket) == {"id": None, "result": {}}


def test_a_message_that_is_too_long_ends_the_socket() -> None:
    arguments = ("--in-memory", "--http-port", "0", "--set", "kbroker.http.max.request.bytes=10000")
    with ServerProcess(*arguments) as server, opened(server, "/socket") as socket:
        assert result(socket, command="heartbeat", id="x" * 200) == {}
        socket.send("x" * 20_000)
        with pytest.raises(ConnectionClosed) as closed:
            received(socket)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
