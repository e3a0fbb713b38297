"""Both codecs give equal bytes for equal values, and each reads back what either wrote."""

from __future__ import annotations

import pytest
from declared_messages import each_message_and_version
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_strategies import messages

from kbroker.protocol import reference
from kbroker.protocol.codec import (
    ProtocolError,
    decode,
    decode_in_steps,
    encode,
    encode_bytes,
    encode_in_steps,
)
from kbroker.protocol.messages.api_versions import ApiVersionsResponse
from kbroker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FEW = settings(
    max_examples=12,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@each_message_and_version
def test_both_codecs_agree_on_any_value(cls, version):
    @FEW
    @given(messages(cls, version))
    def check(message):
        encoded = encode_bytes(message, version)
        assert reference.encode(message, version) == encoded
        assert decode(cls, version, memoryview(encoded)) == (message, len(encoded))
        assert reference.decode(cls, version, encoded) == (message, len(encoded))
        assert _end(decode_in_steps(cls, version, memoryview(encoded))) == (message, len(encoded))
        assert b"".join(_end(encode_in_steps(message, version))) == encoded

    check()


def _end(steps):
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def test_a_codec_in_steps_pauses_within_long_lists():
    request = MetadataRequest(topics=[MetadataRequestTopic(name=f"t{n}") for n in range(1000)])
    encoded = encode_bytes(request, 12)
    assert len(list(decode_in_steps(MetadataRequest, 12, memoryview(encoded)))) == 1000 // 64
    sizes = list(encode_in_steps(request, 12))
    assert len(sizes) == 1000 // 8
    assert sizes == sorted(sizes)
    assert sizes[-1] <= len(encoded)


def test_a_codec_in_steps_refuses_what_the_other_refuses():
    encoded = encode_bytes(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    with pytest.raises(ProtocolError, match="the frame ends inside"):
        _end(decode_in_steps(MetadataRequest, 12, memoryview(encoded)[:-2]))
    with pytest.raises(ProtocolError, match="cannot be encoded"):
        _end(encode_in_steps(MetadataRequest(topics=[MetadataRequestTopic(name=7)]), 12))


@each_message_and_version
def test_an_unset_message_round_trips(cls, version):
    encoded = encode_bytes(cls(), version)
    assert decode(cls, version, memoryview(encoded)) == (cls(), len(encoded))
    assert reference.encode(cls(), version) == encoded


@settings(deadline=None)
@given(st.binary(max_size=20), st.binary(max_size=20))
def test_a_message_is_read_at_its_position(before, after):
    request = MetadataRequest(topics=None)
    encoded = encode_bytes(request, 12)
    buf = memoryview(before + encoded + after)
    assert decode(MetadataRequest, 12, buf, len(before)) == (request, len(before) + len(encoded))


def test_records_are_slices_of_the_frame():
    records = bytes(range(200))
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=records)])]
    )
    frame = bytearray(encode_bytes(request, 9))
    decoded, _ = decode(ProduceRequest, 9, memoryview(frame))
    found = decoded.topic_data[0].partition_data[0].records
    assert isinstance(found, memoryview)
    frame[frame.index(records)] = 99
    assert found[0] == 99


@pytest.mark.parametrize("version", [4, 12])
def test_records_are_parts_of_their_own_and_not_copied(version):
    mapped, recent = memoryview(b"x" * 1000), bytearray(b"y" * 500)
    partitions = [
        PartitionData(partition_index=0, records=mapped),
        PartitionData(partition_index=1, records=[mapped, recent]),
        PartitionData(partition_index=2, records=None),
        PartitionData(partition_index=3, records=b""),
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = encode(response, version)
    assert [part for part in parts if part is mapped or part is recent] == [mapped, mapped, recent]
    assert b"".join(parts) == reference.encode(response, version)


def test_a_prefix_becomes_the_start_of_the_first_part():
    prefix = bytearray(b"size and header")
    parts = encode(FetchResponse(), 12, prefix)
    assert parts[0] is prefix
    assert prefix == b"size and header" + encode_bytes(FetchResponse(), 12)


def test_a_field_that_the_version_lacks_must_be_unset_or_ignorable():
    assert encode_bytes(FetchRequest(rack_id="ignorable"), 10) == encode_bytes(FetchRequest(), 10)
    with pytest.raises(ProtocolError, match="transactional_id"):
        encode(ProduceRequest(transactional_id="t"), 2)
    with pytest.raises(ProtocolError, match="transactional_id"):
        reference.encode(ProduceRequest(transactional_id="t"), 2)
    partition = PartitionData(current_leader=LeaderIdAndEpoch(1, 2))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    with pytest.raises(ProtocolError, match="current_leader"):
        encode(response, 11)


@pytest.mark.parametrize("codec", [encode, reference.encode])
@pytest.mark.parametrize(
    "message",
    [
        MetadataResponse(brokers=None),
        MetadataResponse(throttle_time_ms=2**31),
        MetadataResponse(cluster_id="x" * 0x8000),
        MetadataResponse(cluster_id="\ud800"),
        FetchRequest(topics=[FetchTopic(topic=None)]),
    ],
    ids=["null array", "integer too large", "string too long", "lone surrogate", "null string"],
)
@pytest.mark.parametrize("version", [8, 12])
def test_a_value_that_the_type_cannot_hold_is_refused(codec, message, version):
    with pytest.raises(ProtocolError):
        codec(message, version)


def test_an_unknown_version_is_refused():
    for version in (-1, 19):
        with pytest.raises(ProtocolError, match="versions 0 to 18"):
            decode(FetchRequest, version, memoryview(bytes(100)))
        with pytest.raises(ProtocolError, match="versions 0 to 18"):
            encode(FetchRequest(), version)


def test_unknown_tagged_fields_are_skipped():
    plain = encode_bytes(MetadataRequest(topics=[]), 12)
    assert plain[-1] == 0
    tagged = plain[:-1] + b"\x02\x05\x03abc\xe8\x07\x00"
    assert decode(MetadataRequest, 12, memoryview(tagged)) == (MetadataRequest(topics=[]), len(tagged))
    assert reference.decode(MetadataRequest, 12, tagged)[0] == MetadataRequest(topics=[])

    response = ApiVersionsResponse(finalized_features_epoch=7, zk_migration_ready=True)
    encoded = encode_bytes(response, 3)
    position = encoded.index(b"\x02\x01\x08")  # two tagged fields: tag 1, eight bytes
    more = encoded[:position] + b"\x03\x01\x08" + encoded[position + 3 :] + b"\x63\x02ab"
    assert decode(ApiVersionsResponse, 3, memoryview(more)) == (response, len(more))
