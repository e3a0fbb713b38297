"""Captures are explained: all formats and links, and what networks and captures do to packets."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.wire.capture import Capture
from kbroker.wire.connection import Event
from kbroker.wire.pcap import NoCapture, packets
from tests.wire.captures import ETHERNET, NULL, RAW, SLL, SLL2, Talk, pcap, pcapng
from tests.wire.golden import Exchange, exchange, exchanges, framed

API_EXCHANGES = [
    exchange("ApiVersions", 3),
    exchange("Metadata", 12),
    exchange("Fetch", 12),
    exchange("Heartbeat", 4),
]


def explained(file: bytes, ports: frozenset[int] = frozenset()) -> list[Event]:
    return list(Capture(ports).events(packets(io.BytesIO(file))))


def frames(events: list[Event]) -> list[tuple[str, str]]:
    """Kind and API of those that could be read as a whole."""
    return [
        (event.explained.kind, event.explained.api)
        for event in events
        if event.explained is not None and event.explained.problem is None and not event.explained.is_cut
    ]


def remarks(events: list[Event]) -> list[str]:
    return [event.remark for event in events if event.remark is not None and not event.routine]


def with_ids(several: list[Exchange]) -> list[Exchange]:
    """With correlation ids that count, as on a real connection."""
    numbered = []
    for number, each in enumerate(several, 100):
        correlation = number.to_bytes(4, "big")
        request = each.request[:4] + correlation + each.request[8:]
        numbered.append(each._replace(request=request, response=correlation + each.response[4:]))
    return numbered


def talk(
    several: list[Exchange] = API_EXCHANGES, size: int = 1400, opened: bool = True, **options: object
) -> Talk:
    made = Talk(**options)  # type: ignore[arg-type]
    if opened:
        made.open()
    for each in with_ids(several):
        made.send("client", framed(each.request), size)
        made.send("broker", framed(each.response), size)
    return made


EXPECTED = [
    (kind, api)
    for api in ("ApiVersions", "Metadata", "Fetch", "Heartbeat")
    for kind in ("request", "response")
]


@pytest.mark.parametrize("link_type", [ETHERNET, NULL, RAW, SLL, SLL2])
@pytest.mark.parametrize(
    "write",
    [
        pcap,
        lambda packets, link: pcap(packets, link, ">"),
        lambda packets, link: pcap(packets, link, nano=True),
        pcapng,
        lambda packets, link: pcapng(packets, link, ">"),
        lambda packets, link: gzip.compress(pcap(packets, link)),
    ],
    ids=[
        "pcap",
        "pcap of a big-endian machine",
        "pcap of nanoseconds",
        "pcapng",
        "pcapng, big-endian",
        "gzip",
    ],
)
@pytest.mark.parametrize("hosts", [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")], ids=["IPv4", "IPv6"])
def test_every_format_and_link(
    write: Callable[[list[bytes], int], bytes], link_type: int, hosts: tuple[str, str]
) -> None:
    made = talk(client=(hosts[0], 40000), broker=(hosts[1], 9092))
    events = explained(write(made.packets, link_type))
    assert frames(events) == EXPECTED
    assert int(events[-1].time) == 1_700_000_000 + len(made.packets) - 2  # an ACK follows the last
    assert remarks(events) == []


@settings(deadline=None, max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(1, 200))
def test_segments_out_of_order_and_sent_again(shuffler: random.Random, size: int) -> None:
    """Each segment a few places from where it belongs, and many of them twice."""
    made = talk(exchanges("Metadata")[-3:], size)
    syn, data = made.packets[:3], [packet for packet in made.packets[3:] if len(packet) > 40]
    turns = [list(turn) for _, turn in itertools.groupby(data, key=lambda packet: packet[12:16])]  # by sender
    data = []
    for turn in turns:
        places = {packet: place + shuffler.randint(0, 6) for place, packet in enumerate(turn)}
        data += sorted(turn, key=places.__getitem__)
        data += shuffler.sample(data, len(turn) // 2)
    assert sorted(frames(explained(pcap(syn + data)))) == sorted(
        [("request", "Metadata"), ("response", "Metadata")] * 3
    )


def test_several_connections_at_a_time() -> None:
    talks = [talk(client=("10.0.0.1", 40000 + n)) for n in range(3)]
    mixed = [packet for several in zip(*(each.packets for each in talks), strict=True) for packet in several]
    events = explained(pcap(mixed))
    for number in (1, 2, 3):
        assert frames([event for event in events if event.connection == number]) == EXPECTED


def test_the_same_ports_again_are_another_connection() -> None:
    events = explained(pcap(talk().packets + talk(first_sequence=77).packets))
    assert frames([event for event in events if event.connection == 1]) == EXPECTED
    assert frames([event for event in events if event.connection == 2]) == EXPECTED


def test_a_handshake_that_is_sent_again_is_of_the_same_connection() -> None:
    made = talk()
    syn, answer = made.packets[:2]
    events = explained(pcap([syn, syn, answer, *made.packets[2:6], answer, *made.packets[6:]]))
    assert frames(events) == EXPECTED
    assert {event.connection for event in events} == {1}


def test_a_capture_that_begins_within_a_frame_goes_on_with_the_next_and_says_so() -> None:
    made = talk(size=40)
    begin = next(n for n, packet in enumerate(made.packets) if n > 5 and len(packet) > 40)
    events = explained(pcap(made.packets[begin:]))
    assert frames(events) == EXPECTED[2:]
    assert any("skipped: the next frame begins behind them" in text for text in remarks(events))


def test_a_connection_that_began_before_the_capture_needs_no_syn() -> None:
    events = explained(pcap(talk(opened=False).packets))
    assert frames(events) == EXPECTED
    assert remarks(events) == []


def test_lost_bytes_within_a_frame_cost_that_frame_only() -> None:
    made = talk(size=100)
    large = [n for n, packet in enumerate(made.packets) if len(packet) == 140]
    lost = large[len(large) // 2]  # in the middle of the Fetch response
    events = explained(pcap(made.packets[:lost] + made.packets[lost + 1 :]))
    assert len(frames(events)) == len(EXPECTED) - 1
    (hit,) = [event.explained for event in events if event.explained and event.explained.is_cut]
    assert hit.api == "Fetch"
    assert hit.problem is None


def test_lost_bytes_to_the_very_end_of_a_frame_cost_that_frame_only() -> None:
    made = talk()
    fetch = max(range(len(made.packets)), key=lambda number: len(made.packets[number]))
    end = next(n for n in range(fetch + 1, len(made.packets)) if len(made.packets[n]) > 40)
    assert made.packets[end][12:16] == made.packets[fetch][12:16]  # the rest of the response, from the broker
    events = explained(pcap(made.packets[:end] + made.packets[end + 1 :]))
    assert len(frames(events)) == len(EXPECTED) - 1
    assert remarks(events) == []


@settings(deadline=None, max_examples=60)
@given(st.randoms(use_true_random=False), st.sampled_from([60, 300, 1400]))
def test_whatever_is_lost_only_whole_frames_are_told_as_such(shuffler: random.Random, size: int) -> None:
    """Segments are missing anywhere: what is told without a problem is what was sent."""
    several = with_ids([shuffler.choice(exchanges()) for _ in range(8)])
    made = talk(several, size)
    kept = [packet for packet in made.packets if len(packet) == 40 or shuffler.random() > 0.1]
    sent = {each.request for each in several} | {each.response for each in several}
    for event in explained(pcap(kept)):
        found = event.explained
        if found is not None and found.problem is None and not found.is_cut and found.api_key is not None:
            assert found.frame in sent


def test_lost_bytes_over_the_end_of_a_frame_are_told_and_the_next_is_found() -> None:
    several = [exchange("Metadata", 12)] * 6
    made = talk(several, size=30)
    requests = [n for n, packet in enumerate(made.packets) if len(packet) > 40 and n > 3]
    lost = set(requests[4:7])
    events = explained(pcap([packet for n, packet in enumerate(made.packets) if n not in lost]))
    assert len(frames(events)) >= 6
    assert remarks(events)


def test_packets_that_were_not_captured_whole() -> None:
    """`tcpdump -s 200`: sizes are known, the bytes are not."""
    events = explained(pcap(talk().packets, cut=200))
    read = frames(events)
    assert ("request", "Heartbeat") in read
    assert ("response", "Heartbeat") in read
    cut = [event.explained.api for event in events if event.explained and event.explained.is_cut]
    assert "Fetch" in cut


def test_a_broker_on_another_port_is_recognised_by_what_clients_send() -> None:
    file = pcap(talk(broker=("10.0.0.2", 29092)).packets)
    assert frames(explained(file)) == EXPECTED
    assert frames(explained(file, frozenset({29092}))) == EXPECTED
    assert frames(explained(file, frozenset({9092}))) == []


def test_what_is_not_kafka_is_passed_over() -> None:
    web = Talk(broker=("10.0.0.3", 80))
    web.open()
    web.send("client", b"GET / HTTP/1.1\r\n\r\n")
    web.send("broker", b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100_000))
    events = explained(pcap(web.packets + talk().packets))
    assert frames(events) == EXPECTED


def test_a_file_that_is_no_capture_or_damaged() -> None:
    with pytest.raises(NoCapture, match="neither pcap nor pcapng"):
        explained(b"hello, world")
    with pytest.raises(NoCapture, match="damaged"):
        explained(pcap(talk().packets)[:24] + b"\xff" * 100)
    whole = pcap(talk().packets)
    assert frames(explained(whole[:-60])) == EXPECTED
    assert frames(explained(gzip.compress(whole)[:-20]))


@settings(deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([pcap, pcapng]),
    st.sampled_from([ETHERNET, NULL, RAW, SLL, SLL2]),
)
def test_any_bytes_as_packets(
    data: bytes, write: Callable[[list[bytes], int], bytes], link_type: int
) -> None:
    made = talk()
    made.packets[5] = data or b"\x45"
    explained(write(made.packets, link_type))
    with contextlib.suppress(NoCapture):
        explained(write(made.packets, link_type)[:100] + data)


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="there is no tcpdump here")
def test_tcpdump_reads_what_the_tests_write(tmp_path: Path) -> None:
    file = tmp_path / "capture.pcap"
    file.write_bytes(pcap(talk().packets))
    done = subprocess.run(
        ["tcpdump", "-nr", str(file)], capture_output=True, text=True, check=True, timeout=30
    )
    assert "10.0.0.1.40000 > 10.0.0.2.9092" in done.stdout
