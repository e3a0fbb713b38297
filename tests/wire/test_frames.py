"""Frames are explained whatever they are: all messages, all versions, broken ones, any bytes."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.headers import RequestHeader, request_header_version, response_header_version
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import API_NAMES, request_type, response_type
from kbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kbroker.protocol.records import Record, build_batch
from kbroker.wire.fields import Shown, as_json, as_lines
from kbroker.wire.frames import Explained, explain_request, explain_response
from kbroker.wire.subjects import subjects
from tests.wire.golden import Exchange, exchange, exchanges

EVERYTHING = Shown(payloads=True, full=True)
VERSIONS = [
    pytest.param(key, version, id=f"{name}-v{version}")
    for key, name in API_NAMES.items()
    for version in range(
        schema_of(request_type(key)).versions[0], schema_of(request_type(key)).versions[1] + 1
    )
]


def request_frame(body: Any, version: int, client_id: str = "tester") -> bytes:
    key = schema_of(type(body)).api_key
    header = RequestHeader(key, version, 7, client_id)
    return encode_bytes(header, request_header_version(key, version)) + encode_bytes(body, version)


def response_frame(body: Any, version: int) -> bytes:
    tags = b"\0" * response_header_version(schema_of(type(body)).api_key or 0, version)
    return b"\0\0\0\7" + tags + encode_bytes(body, version)


def shown(explained: Explained, wanted: Shown = EVERYTHING) -> str:
    """All that is ever printed of it."""
    return "\n".join([json.dumps(as_json(explained, wanted)), *as_lines(explained, wanted, positions=True)])


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_every_message_is_explained_at_every_version(key: int, version: int) -> None:
    for explained in (
        explain_request(request_frame(request_type(key)(), version)),
        explain_response(response_frame(response_type(key)(), version), key, version),
    ):
        assert explained.problem is None
        assert explained.body is not None
        assert explained.body.end == len(explained.frame)
        cls = (request_type if explained.kind == "request" else response_type)(key)
        expected = {field.name for field in schema_of(cls) if field.present(version) and field.tag is None}
        assert as_json(explained, EVERYTHING).keys() == expected


@pytest.mark.parametrize("each", exchanges(), ids=lambda each: f"{API_NAMES[each.api_key]}-v{each.version}")
def test_frames_of_real_clients_and_a_real_kafka_are_explained(each: Exchange) -> None:
    request = explain_request(each.request)
    response = explain_response(each.response, each.api_key, each.version)
    assert (request.api_key, request.version) == (each.api_key, each.version)
    for explained in (request, response):
        assert explained.problem is None
        assert shown(explained)
        assert subjects(explained, {}) is not None


def test_a_truncated_frame_tells_the_byte_the_field_and_what_was_before() -> None:
    frame = exchange("Metadata", 12).response
    explained = explain_response(frame[:27], 3, 12)
    assert str(explained.problem) == (
        "byte 24, brokers[0].port: the frame ends: int32 takes 4 bytes, 3 are there"
    )
    (broker,) = as_json(explained, Shown())["brokers"]
    assert broker == {"node_id": 1, "host": "127.0.0.1", "port": None}
    lines = list(as_lines(explained, Shown(), positions=True))
    assert lines[-1].split() == ["24", "port:", "?"]


def test_text_and_values_that_are_cut_off_tell_how_much_is_there() -> None:
    frame = request_frame(SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"), 1)
    problem = explain_request(frame[:-3]).problem
    assert str(problem) == "byte 16, auth_bytes: the frame ends: the value has 12 bytes, 9 are there"
    frame = exchange("Metadata", 12).response
    problem = explain_response(frame[:20], 3, 12).problem
    assert str(problem) == "byte 14, brokers[0].host: the frame ends: the text has 9 bytes, 5 are there"


def test_every_cut_of_a_frame_is_a_problem_at_or_before_the_cut() -> None:
    for each in (exchange("Produce", 9), exchange("Fetch", 12), exchange("JoinGroup", 9)):
        for end in range(len(each.request)):
            explained = explain_request(each.request[:end])
            assert explained.problem is not None
            assert explained.problem.position <= end
            assert shown(explained)
        for end in range(len(each.response)):
            explained = explain_response(each.response[:end], each.api_key, each.version)
            assert explained.problem is not None
            assert explained.problem.position <= end


def test_bytes_behind_the_message_are_told() -> None:
    frame = exchange("Heartbeat", 4).request
    problem = explain_request(frame + b"abc").problem
    assert str(problem) == f"byte {len(frame)}: 3 bytes follow the message"


def test_an_unknown_api_and_an_unknown_version_keep_the_header() -> None:
    unknown = explain_request(struct.pack(">hhih3s", 1234, 5, 6, 3, b"abc"))
    assert (unknown.correlation_id, unknown.client_id) == (6, "abc")
    assert str(unknown.problem) == "byte 0, request_api_key: API key 1234 is not known here"
    newer = explain_request(struct.pack(">hhih3sxx", 3, 99, 6, 3, b"abc"))
    assert (newer.api, newer.client_id) == ("Metadata", "abc")
    assert str(newer.problem) == (
        "byte 2, request_api_version: Metadata is known in versions 0 to 13, not 99"
    )
    between = explain_request(struct.pack(">hhih3s", 52, 0, 6, 3, b"abc"))
    assert "Vote" in str(between.problem)


def test_unknown_tagged_fields_are_shown_as_such() -> None:
    frame = exchange("Metadata", 12).request
    assert frame[-1] == 0
    explained = explain_request(frame[:-1] + b"\x01\x63\x03abc")
    assert explained.problem is None
    assert as_json(explained, EVERYTHING)["unknown_tag_99"] == "abc"


def test_the_answer_to_an_unknown_version_of_api_versions_is_read_as_version_0() -> None:
    body = response_type(18)(error_code=35)
    explained = explain_response(b"\0\0\0\7" + encode_bytes(body, 0), 18, 9)
    assert (explained.problem, explained.version) == (None, 0)
    assert [error.name for error in subjects(explained, {}).errors] == ["UNSUPPORTED_VERSION"]


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_as_a_request(data: bytes) -> None:
    shown(explain_request(data))


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(VERSIONS), st.binary(max_size=300), st.booleans())
def test_any_bytes_as_the_body_of_any_message(case: Any, data: bytes, request: bool) -> None:
    key, version = case.values
    if request:
        explained = explain_request(struct.pack(">hhih", key, version, 1, -1) + data)
    else:
        explained = explain_response(data, key, version)
    assert shown(explained)
    subjects(explained, {})


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_damaged_real_frame(data: st.DataObject) -> None:
    each = data.draw(st.sampled_from(exchanges()))
    frame = bytearray(data.draw(st.sampled_from([each.request, each.response])))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    for explained in (
        explain_request(bytes(frame)),
        explain_response(bytes(frame), each.api_key, each.version),
    ):
        shown(explained)
        subjects(explained, {})


@pytest.mark.parametrize(
    "explained",
    [
        explain_request(request_frame(SaslAuthenticateRequest(auth_bytes=b"\0user\0hunter2"), 2)),
        explain_response(response_frame(SaslAuthenticateResponse(auth_bytes=b"hunter2"), 2), 36, 2),
        explain_request(
            request_frame(
                AlterUserScramCredentialsRequest(
                    upsertions=[ScramCredentialUpsertion("u", 1, 4096, b"hunter2", b"hunter2")]
                ),
                0,
            )
        ),
        explain_request(
            request_frame(
                IncrementalAlterConfigsRequest(
                    resources=[
                        AlterConfigsResource(4, "1", [AlterableConfig("ssl.keystore.password", 0, "hunter2")])
                    ]
                ),
                1,
            )
        ),
    ],
    ids=lambda explained: f"{explained.api} {explained.kind}",
)
def test_secrets_are_never_shown(explained: Explained) -> None:
    assert explained.problem is None
    text = shown(explained)
    assert "hunter2" not in text
    assert b"hunter2".hex() not in text
    assert "<hidden>" in text


def produce_request(batch: bytes) -> Explained:
    data = [TopicProduceData("orders", partition_data=[PartitionProduceData(3, memoryview(batch))])]
    return explain_request(request_frame(ProduceRequest(acks=-1, topic_data=data), 9))


def test_record_batches_are_summarised_and_payloads_shown_only_when_asked() -> None:
    records = [Record(1000 + n, b"key-%d" % n, b"value" * 40, (("h", b"\0\1"),)) for n in range(3)]
    batch = build_batch(
        records, codec=4, producer_id=9, producer_epoch=2, base_sequence=5, transactional=True
    )
    explained = produce_request(batch)
    (facts,) = as_json(explained, Shown())["topic_data"][0]["partition_data"][0]["records"]["batches"]
    assert facts == {
        "base_offset": 0,
        "last_offset": 2,
        "records": 3,
        "size": len(batch),
        "codec": "zstd",
        "leader_epoch": -1,
        "base_timestamp": 1000,
        "max_timestamp": 1002,
        "timestamp_type": "create",
        "producer_id": 9,
        "producer_epoch": 2,
        "base_sequence": 5,
        "transactional": True,
        "crc": "ok",
    }
    assert "key-1" not in shown(explained, Shown())
    shortened, full = shown(explained, Shown(payloads=True)), shown(explained, EVERYTHING)
    assert "key-1" in shortened
    assert "value" * 40 not in shortened
    assert "value" * 40 in full
    assert "0x0001" in full
    found = subjects(explained, {})
    assert (found.topics, found.records, found.wrong_batches) == ({"orders": [3]}, 3, 0)


def test_a_batch_with_a_wrong_checksum_is_told() -> None:
    batch = bytearray(build_batch([Record(0, None, b"v")]))
    batch[-2] ^= 1
    explained = produce_request(bytes(batch))
    assert subjects(explained, {}).wrong_batches == 1
    assert "crc wrong" in shown(explained)


def test_of_a_frame_whose_rest_is_not_kept_the_beginning_is_explained() -> None:
    batch = build_batch([Record(0, None, b"v" * 5000)])
    whole = produce_request(batch).frame
    explained = explain_request(whole[:1000], len(whole))
    assert explained.problem is None
    assert subjects(explained, {}).records == 1
    assert "crc not checked" in shown(explained)
