"""Bytes that are no message give ProtocolError, never anything else, and never much memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from declared_messages import CASES, each_message_and_version
from sample_messages import TEXT, full

from kbroker.protocol import reference
from kbroker.protocol.codec import ProtocolError, decode, encode_bytes
from kbroker.protocol.consumer_protocol import read_assignment, read_subscription
from kbroker.protocol.headers import RequestHeader
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.offset_delete import OffsetDeleteRequest
from kbroker.protocol.messages.produce import ProduceRequest
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest

LARGEST_INT32 = b"\x7f\xff\xff\xff"
LARGEST_VARINT = b"\xff\xff\xff\xff\x0f"


@each_message_and_version
def test_a_message_cut_off_anywhere_is_refused(cls, version):
    encoded = memoryview(encode_bytes(full(cls, version), version))
    assert decode(cls, version, encoded)[1] == len(encoded)
    for end in range(len(encoded)):
        with pytest.raises(ProtocolError):
            decode(cls, version, encoded[:end])


@each_message_and_version
def test_a_huge_length_anywhere_costs_no_memory(cls, version):
    huge = LARGEST_VARINT if schema_of(cls).is_flexible(version) else LARGEST_INT32
    encoded = encode_bytes(full(cls, version), version)
    step = len(encoded) // 150 + 1
    frames = [encoded[:at] + huge + encoded[at + len(huge) :] for at in range(0, len(encoded), step)]
    decode(cls, version, memoryview(encoded))
    tracemalloc.start()
    try:
        for frame in frames:
            accepts(decode, cls, version, memoryview(frame))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(encoded) + 50_000


@each_message_and_version
def test_both_codecs_accept_the_same_of_what_is_changed_at_random(cls, version):
    chance = random.Random(f"{cls.__name__} {version}")
    encoded = encode_bytes(full(cls, version), version)
    for _ in range(12):
        frame = bytearray(encoded)
        for _ in range(chance.randint(1, 3)):
            if frame:
                frame[chance.randrange(len(frame))] = chance.choice(
                    (0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256))
                )
        compiled = accepts(decode, cls, version, memoryview(frame))
        defined = accepts(reference.decode, cls, version, bytes(frame))
        assert compiled == defined


def accepts(codec, cls, version, frame):
    """The decoded message in its canonical bytes and where it ended; None if it was refused."""
    try:
        message, end = codec(cls, version, frame)
    except ProtocolError:
        return None
    return encode_bytes(message, version), end


def test_strings_that_are_not_utf_8_are_refused():
    good, bad = TEXT.encode(), b"\xff" * len(TEXT.encode())
    for cls, version in CASES:
        encoded = encode_bytes(full(cls, version), version)
        if good in encoded:
            with pytest.raises(ProtocolError, match="not UTF-8"):
                decode(cls, version, memoryview(encoded.replace(good, bad)))


@pytest.mark.parametrize("codec", [decode, reference.decode])
@pytest.mark.parametrize(
    ("cls", "version", "frame"),
    [
        (MetadataRequest, 0, b"\xff\xff\xff\xff"),
        (MetadataRequest, 0, b"\x80\x00\x00\x00"),
        (MetadataRequest, 0, b"\x00\x00\x00\x01\xff\xff"),
        (OffsetDeleteRequest, 0, b"\xff\xff\x00\x00\x00\x00"),
        (SaslAuthenticateRequest, 0, b"\xff\xff\xff\xff"),
        (SaslAuthenticateRequest, 2, b"\x00\x00"),
        (ApiVersionsRequest, 3, b"\x00\x02x\x00"),
        (AddOffsetsToTxnRequest, 3, b"\x00" * 20),
        (MetadataRequest, 9, b"\x80\x80\x80\x80\x80\x00"),
        (MetadataRequest, 9, b"\x80\x80\x80\x80\x10"),
        (ApiVersionsRequest, 3, b"\x81\x80\x80\x80\x80\x80\x80\x80\x01" + b"x" * 100),
        (ApiVersionsRequest, 3, b"\x80\x80\x04" + b"x" * 0x10000),
        (ApiVersionsRequest, 3, b"\x02x\x02y\xff\xff\xff\xff\x0f"),
        (ApiVersionsRequest, 3, b"\x02x\x02y\x01\x07\xff\xff\xff\xff\x0f"),
        (ApiVersionsResponse, 3, b"\x00\x00\x01\x00\x00\x00\x00\x01\x01\x07" + bytes(8)),
        (ApiVersionsResponse, 3, b"\x00\x00\x01\x00\x00\x00\x00\x01\x01\x09" + bytes(9)),
        (ProduceRequest, 3, b"\xff\xff" + bytes(6) + b"\x7f\xff\xff\xff" + bytes(1000)),
        (RequestHeader, 2, b"\x00\x12\x00\x03\x00\x00\x00\x01\x7f\xffx\x00"),
    ],
    ids=[
        "a null array",
        "a very negative count",
        "a null string in an array",
        "a null string",
        "null bytes",
        "null compact bytes",
        "a null compact string",
        "nothing but zeros",
        "a varint of six bytes",
        "a varint of 33 bits",
        "a varint of nine bytes",
        "a compact string of 65535 bytes",
        "2^32 - 1 tagged fields",
        "a tagged field of 2^32 - 1 bytes",
        "a tagged field that is larger than its size",
        "a tagged field that is smaller than its size",
        "2^31 - 1 topics",
        "a client id longer than the frame",
    ],
)
def test_known_kinds_of_malformed_bytes_are_refused(codec, cls, version, frame):
    with pytest.raises(ProtocolError):
        codec(cls, version, memoryview(frame) if codec is decode else frame)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"\x00\x00\x7f\xff\xff\xff"])
def test_malformed_consumer_protocol_bytes_are_refused(data):
    for read in (read_subscription, read_assignment):
        with pytest.raises(ProtocolError):
            read(data)
