"""Every API can be refused at every version, and the code stands wherever the client looks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import request_type, response_type
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kbroker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kbroker.requests.apis import APIS
from kbroker.requests.context import Peer
from kbroker.requests.refusals import refusal
from kbroker.requests.request import parse
from tests.protocol.sample_messages import full

PEER = Peer("PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 54321))
REFUSED = ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_an_empty_request_is_refused_at_every_version(api: Any) -> None:
    for version in range(api.min_version, api.max_version + 1):
        request = request_type(api.key)()
        response = _through_the_wire(api, version, request)
        assert set(_codes(response, version)) <= {REFUSED}
        if _has_own_code(response, version):
            assert response.error_code == REFUSED


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_the_code_stands_wherever_a_response_has_room_for_one(api: Any) -> None:
    for version in range(api.min_version, api.max_version + 1):
        response = _through_the_wire(api, version, full(request_type(api.key), version))
        codes = list(_codes(response, version))
        assert set(codes) == ({REFUSED} if _can_say_codes(response_type(api.key), version) else set())


def test_partitions_are_mirrored_with_their_topics() -> None:
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(partition_index=n) for n in (3, 5)])]
    response = _refused(ListOffsetsRequest(topics=topics), ListOffsetsResponse, 7)
    (topic,) = response.topics
    assert topic.name == "t"
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(3, -1), (5, -1)]


def test_plain_names_are_mirrored() -> None:
    response = _refused(DeleteGroupsRequest(groups_names=["a", "b"]), DeleteGroupsResponse, 2)
    assert [(result.group_id, result.error_code) for result in response.results] == [("a", -1), ("b", -1)]


def test_a_name_is_not_taken_for_the_reason() -> None:
    for version in range(7):
        response = _refused(DescribeGroupsRequest(groups=["a", "b"]), DescribeGroupsResponse, version)
        assert [(group.group_id, group.error_code) for group in response.groups] == [("a", -1), ("b", -1)]


def test_entries_keep_their_names() -> None:
    response = _refused(CreateTopicsRequest(topics=[CreatableTopic(name="x")]), CreateTopicsResponse, 7)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("x", -1)]


def _refused(request: Any, response: type[Any], version: int) -> Any:
    """Refused, and through the wire once."""
    made = refusal(request, response, version, ErrorCode.UNKNOWN_SERVER_ERROR)
    decoded, _ = decode(response, version, memoryview(encode_bytes(made, version)))
    return decoded


def _through_the_wire(api: Any, version: int, body: Any) -> Any:
    """What a client reads when its request is refused."""
    header = RequestHeader(api.key, version, correlation_id=1, client_id="c")
    header_bytes = encode_bytes(header, request_header_version(api.key, version))
    request = parse(memoryview(header_bytes + encode_bytes(body, version)), PEER, now_ms=0)
    response = request.refused(ErrorCode(REFUSED))
    decoded, _ = decode(response_type(api.key), version, memoryview(encode_bytes(response, version)))
    return decoded


def _codes(message: Any, version: int) -> Iterator[int]:
    """Every error code in a message."""
    for field in schema_of(type(message)).fields:
        value = getattr(message, field.name)
        if not field.present(version):
            continue
        if field.name == "error_code":
            yield value
        elif isinstance(value, list):
            for each in value:
                if hasattr(each, "__schema__"):
                    yield from _codes(each, version)


def _has_own_code(message: Any, version: int) -> bool:
    return any(field.name == "error_code" and field.present(version) for field in schema_of(type(message)))


def _can_say_codes(cls: type[Any], version: int) -> bool:
    return any(_codes(full(cls, version), version))
