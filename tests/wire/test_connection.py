"""Both directions of a connection: what goes on to the client, and what is told."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.headers import response_header_version
from kbroker.protocol.messages import request_type, response_type
from kbroker.protocol.messages.fetch import FetchResponse
from kbroker.protocol.messages.fetch import NodeEndpoint as FetchEndpoint
from kbroker.protocol.messages.produce import NodeEndpoint as ProduceEndpoint
from kbroker.protocol.messages.produce import ProduceRequest, ProduceResponse
from kbroker.wire.addresses import HELD_APIS, Address, rewrite
from kbroker.wire.connection import KEPT_BYTES, Connection, Event
from kbroker.wire.lines import Teller, Wanted, line
from tests.wire.golden import Exchange, exchange, exchanges, framed
from tests.wire.test_frames import request_frame

LOCAL = ("a.much.longer.host.name.than.before.example", 19092)
ADDRESSED = exchanges("Metadata", "FindCoordinator", "DescribeCluster")


def to_local(_: Address) -> Address:
    return LOCAL


def connection() -> Connection:
    return Connection(1, lambda key, version, frame: rewrite(key, version, frame, to_local), HELD_APIS)


def told(events: Iterator[Event]) -> list[str]:
    """Lines without their times."""
    teller = Teller(Wanted())
    return [line(teller.told(event)).split(" ", 2)[2] for event in events]


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    position = 0
    for size in [*sizes, len(data)]:
        yield data[position : position + size]
        position += size


SIZES = st.lists(st.integers(0, 40), max_size=30)


@settings(deadline=None)
@given(st.binary(max_size=400), st.binary(max_size=400), SIZES)
def test_any_bytes_leave_as_they_came(asked: bytes, answered: bytes, sizes: list[int]) -> None:
    passing = connection()
    got = b""
    for from_client, from_broker in itertools.zip_longest(cut(asked, sizes), cut(answered, sizes[1:])):
        passing.from_client(from_client or b"", 0.0)
        got += b"".join(passing.from_broker(from_broker or b"", 0.0))
    assert got + passing.rest_for_client() == answered
    list(passing.events())


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(exchanges()), min_size=1, max_size=4), SIZES, st.integers(0, 30))
def test_real_frames_leave_as_they_came_but_for_addresses(
    several: list[Exchange], sizes: list[int], missing: int
) -> None:
    passing = connection()
    asked = b"".join(framed(each.request) for each in several)
    answers = [each.request[4:8] + each.response[4:] for each in several]  # with the id of their own request
    answered = b"".join(map(framed, answers))
    for part in cut(asked, sizes):
        passing.from_client(part, 0.0)
    answered = answered[: len(answered) - missing]
    got = b"".join(b"".join(passing.from_broker(part, 0.0)) for part in cut(answered, sizes))
    got += passing.rest_for_client()
    expected = b"".join(
        framed(rewrite(each.api_key, each.version, answer, to_local))
        for each, answer in zip(several, answers, strict=True)
    )
    if not missing:
        assert got == expected
        assert len(list(passing.events())) == 2 * len(several)
    elif not any(each.api_key in HELD_APIS for each in several):
        assert got == answered


@pytest.mark.parametrize("each", ADDRESSED, ids=lambda each: f"{each.api_key}-v{each.version}")
def test_addresses_are_replaced_and_nothing_else(each: Exchange) -> None:
    cls = response_type(each.api_key)
    start = 4 + response_header_version(each.api_key, each.version)
    before, _ = decode(cls, each.version, memoryview(each.response), start)
    got = rewrite(each.api_key, each.version, each.response, to_local)
    after, end = decode(cls, each.version, memoryview(got), start)
    assert end == len(got)
    assert got[:start] == each.response[:start]
    places = getattr(after, "brokers", None) or getattr(after, "coordinators", None) or [after]
    found = {(place.host, place.port) for place in places}
    assert found <= {LOCAL, ("", -1)}
    for place in places:
        place.host, place.port = "127.0.0.1", 0
    for place in getattr(before, "brokers", None) or getattr(before, "coordinators", None) or [before]:
        place.host, place.port = "127.0.0.1", 0
    assert after == before


@pytest.mark.parametrize("arrived", [1, 6, 60])
def test_what_is_held_of_a_response_goes_on_when_the_client_turns_out_not_to_speak_kafka(
    arrived: int,
) -> None:
    passing = connection()
    each = exchange("Metadata", 12)
    answer = framed(each.response)
    passing.from_client(framed(each.request), 0.0)
    got = b"".join(passing.from_broker(answer[:arrived], 0.0))
    passing.from_client(b"GET / HTTP/1.1\r\n", 0.0)
    got += b"".join(passing.from_broker(answer[arrived:], 0.0))
    assert got + passing.rest_for_client() == answer


def test_the_real_answers_have_addresses() -> None:
    changed = {
        each.api_key for each in ADDRESSED if rewrite(*each[:2], each.response, to_local) != each.response
    }
    assert changed == {3, 10, 60}


@pytest.mark.parametrize(
    ("key", "version", "answer"),
    [
        (0, 10, ProduceResponse(node_endpoints=[ProduceEndpoint(3, "kafka-3", 9092, "rack")])),
        (1, 16, FetchResponse(node_endpoints=[FetchEndpoint(n, f"kafka-{n}", 9092) for n in range(9)])),
    ],
    ids=["Produce", "Fetch"],
)
def test_node_endpoints_of_produce_and_fetch_are_replaced(key: int, version: int, answer: object) -> None:
    """Their tagged field grows from one byte of size to two."""
    frame = b"\0\0\0\7\0" + encode_bytes(answer, version)
    got, _ = decode(type(answer), version, memoryview(rewrite(key, version, frame, to_local)), 5)
    assert {(each.host, each.port) for each in got.node_endpoints} == {LOCAL}
    assert [each.node_id for each in got.node_endpoints] == [each.node_id for each in answer.node_endpoints]


def test_unknown_tagged_fields_survive_the_rewriting() -> None:
    frame = exchange("Metadata", 12).response
    assert frame[-1] == 0
    more = frame[:-1] + b"\x01\x63\x03abc"
    assert rewrite(3, 12, more, to_local).endswith(b"\x01\x63\x03abc")


def test_an_answer_that_cannot_be_read_is_left_as_it_is() -> None:
    frame = exchange("Metadata", 12).response
    for broken in (frame[:16], frame[:4] + b"\xff" * 40):
        assert rewrite(3, 12, broken, to_local) == broken
    assert rewrite(3, 99, frame, to_local) == frame


def test_request_and_response_belong_together() -> None:
    passing = connection()
    each = exchange("Heartbeat", 4)
    passing.from_client(framed(each.request), 10.0)
    passing.from_broker(framed(each.response), 10.25)
    request, response = passing.events()
    assert request.explained is not None
    assert response.explained is not None
    assert response.latency_ms == 250
    assert response.explained.api == "Heartbeat"
    assert response.explained.client_id == request.explained.client_id


def test_a_produce_without_acks_has_no_response_and_the_next_one_still_fits() -> None:
    passing = connection()
    silent = request_frame(ProduceRequest(acks=0), 9)
    asked = exchange("Heartbeat", 4)
    passing.from_client(framed(silent) * 3 + framed(asked.request), 0.0)
    passing.from_broker(framed(asked.response), 1.0)
    assert [event.explained.api for event in passing.events() if event.explained] == [
        *["Produce"] * 3,
        "Heartbeat",
        "Heartbeat",
    ]


def test_an_answer_to_nothing_is_told_and_goes_on() -> None:
    passing = connection()
    answer = framed(b"\0\0\0\x63rest")
    assert b"".join(passing.from_broker(answer, 0.0)) == answer
    (text,) = told(passing.events())
    assert "no request with this correlation id was seen" in text
    assert b"".join(passing.from_broker(answer * 100, 0.0)) == answer * 100
    assert len(told(passing.events())) == 3


def test_sasl_tokens_without_a_header_are_told_by_their_size_only() -> None:
    passing = connection()
    handshake = exchange("SaslHandshake", 0)
    asked = exchange("Metadata", 12)
    passing.from_client(framed(handshake.request), 0.0)
    passing.from_broker(framed(handshake.response), 0.1)
    passing.from_client(framed(b"\0user\0hunter2"), 0.2)
    assert passing.from_broker(framed(b""), 0.3) == [framed(b"")]
    passing.from_client(framed(asked.request), 0.4)
    passing.from_broker(framed(asked.response), 0.5)
    lines = told(passing.events())
    assert lines[2:4] == ["→ SASL token 13 B", "← SASL token 0 B 100.0 ms"]
    assert [text.split()[1] for text in lines[4:]] == ["Metadata", "Metadata"]
    assert "hunter2" not in "".join(lines)


@pytest.mark.parametrize(
    ("sent", "guess"),
    [
        (bytes.fromhex("16030100c8010000c40303") + bytes(100), ", but TLS"),
        (b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", ", but HTTP"),
        (struct.pack(">ihhi", 40, 12345, 1, 1) + bytes(32), ""),
        (struct.pack(">i", 3) + bytes(32), ""),
    ],
    ids=["TLS", "HTTP", "no API", "too short"],
)
def test_what_is_not_kafka_costs_one_line(sent: bytes, guess: str) -> None:
    passing = connection()
    for part in cut(sent * 3, [5, 9, 1]):
        passing.from_client(part, 0.0)
    got = b"".join(b"".join(passing.from_broker(part, 0.0)) for part in cut(sent, [3, 3]))
    assert got == sent
    (text,) = told(passing.events())
    assert text == f"-- what the client sends is not Kafka's protocol{guess}: its bytes go on unexplained"


def test_of_a_large_frame_only_the_beginning_is_kept_and_it_goes_on_as_it_arrives() -> None:
    passing = connection()
    asked = request_frame(request_type(1)(), 12)
    passing.from_client(framed(asked), 0.0)
    size = 5 << 20
    head = struct.pack(">ii", size, 7)
    assert b"".join(passing.from_broker(head, 0.1)) == head
    chunk = bytes(1 << 16)
    sent = 4
    while sent < size:
        part = chunk[: size - sent]
        assert b"".join(passing.from_broker(part, 0.2)) == part
        sent += len(part)
    _, response = passing.events()
    assert response.explained is not None
    assert response.explained.size == size
    assert len(response.explained.frame) == KEPT_BYTES
