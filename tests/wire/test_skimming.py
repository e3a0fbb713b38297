"""Large frames are skimmed: all fields stay, records are shortened, and addresses at their end are hidden."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from kbroker.wire.connection import KEPT_BYTES
from kbroker.wire.frames import request_parts, response_parts
from kbroker.wire.lines import Teller, Wanted
from kbroker.wire.skimming import Skim
from kbroker.wire.subjects import subjects
from tests.wire.golden import exchanges, framed
from tests.wire.test_connection import SIZES, connection, cut, told
from tests.wire.test_frames import request_frame

BATCH = build_batch([Record(0, None, b"v" * 700_000)])


def fetch_response(version: int, **more: object) -> bytes:
    partitions = [PartitionData(partition_index=n, records=BATCH) for n in range(4)]
    partitions.append(PartitionData(partition_index=9, error_code=6))
    answer = FetchResponse(responses=[FetchableTopicResponse("orders", partitions=partitions)], **more)
    if version > 12:
        answer.responses[0].topic_id = b"0123456789abcdef"
    return b"\0\0\0\7" + b"\0" * (version >= 12) + encode_bytes(answer, version)


@settings(deadline=None)
@given(st.sampled_from([each for each in exchanges() if each.api_key != 18]), st.booleans(), SIZES)
def test_a_message_without_long_records_is_kept_as_it_is(
    each: object, request: bool, sizes: list[int]
) -> None:
    frame = each.request if request else each.response  # type: ignore[attr-defined]
    parts = (request_parts if request else response_parts)(each.api_key, each.version)  # type: ignore[attr-defined]
    assert parts is not None
    skim = Skim(parts, 1 << 20)
    for part in cut(frame, sizes):
        skim.feed(part)
    assert not skim.is_broken
    assert skim.position == len(frame)
    assert bytes(skim.kept) == frame


@settings(deadline=None)
@given(st.sampled_from([(0, 9), (1, 4), (1, 12), (78, 1)]), st.binary(max_size=300), st.booleans(), SIZES)
def test_any_bytes_are_skimmed_or_given_up(
    api: tuple[int, int], data: bytes, request: bool, sizes: list[int]
) -> None:
    parts = (request_parts if request else response_parts)(*api)
    assert parts is not None
    skim = Skim(parts, 1000)
    for part in cut(data, sizes):
        skim.feed(part)
    assert len(skim.kept) <= 1000


@pytest.mark.parametrize("version", [11, 12, 16])
@pytest.mark.parametrize("chunk", [1000, 65536, 1 << 22])
def test_an_error_behind_megabytes_of_records_is_found(version: int, chunk: int) -> None:
    passing = connection()
    passing.from_client(framed(request_frame(FetchRequest(), version)), 0.0)
    answer = framed(fetch_response(version))
    parts = [answer[start : start + chunk] for start in range(0, len(answer), chunk)]
    assert b"".join(b"".join(passing.from_broker(part, 0.0)) for part in parts) == answer
    _, event = passing.events()
    assert event.explained is not None
    assert event.explained.problem is None
    assert len(event.explained.frame) <= KEPT_BYTES
    found = subjects(event.explained, {})
    assert [error.name for error in found.errors] == ["NOT_LEADER_OR_FOLLOWER"]
    assert found.records == 4
    assert "records=4+" in " ".join(Teller(Wanted()).lines(Teller(Wanted()).told(event)))


def test_a_large_produce_tells_all_its_partitions() -> None:
    passing = connection()
    data = [PartitionProduceData(n, memoryview(BATCH)) for n in range(3)]
    request = request_frame(
        ProduceRequest(acks=1, topic_data=[TopicProduceData("orders", partition_data=data)]), 9
    )
    passing.from_client(framed(request), 0.0)
    (event,) = passing.events()
    assert event.explained is not None
    assert subjects(event.explained, {}).topics == {"orders": [0, 1, 2]}


@pytest.mark.parametrize("chunk", [1000, 65536, 1 << 22])
def test_addresses_in_a_response_that_is_too_large_to_hold_are_hidden_from_the_client(chunk: int) -> None:
    frame = fetch_response(16, node_endpoints=[NodeEndpoint(3, "kafka-3", 9092)])
    passing = connection()
    passing.from_client(framed(request_frame(FetchRequest(), 16)), 0.0)
    answer = framed(frame)
    got = b"".join(
        b"".join(passing.from_broker(answer[start : start + chunk], 0.0))
        for start in range(0, len(answer), chunk)
    )
    before, _ = decode(FetchResponse, 16, memoryview(frame), 5)
    after, end = decode(FetchResponse, 16, memoryview(got), 9)
    assert (end, len(got)) == (len(got), len(answer))
    assert after.node_endpoints == []
    assert after.responses == before.responses
    assert any("addresses in a large response are hidden" in text for text in told(passing.events()))
