"""Every API can be refused at every version, and the code stands wherever the client looks for it."""

from __future__ import annotations

from typing import Any

import pytest

from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages import request_type, response_type
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kbroker.requests.apis import APIS
from kbroker.requests.refusals import refusal


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_an_empty_request_is_refused_at_every_version(api: Any) -> None:
    for version in range(api.min_version, api.max_version + 1):
        response = refusal(
            request_type(api.key)(), response_type(api.key), version, ErrorCode.UNKNOWN_SERVER_ERROR
        )
        encode_bytes(response, version)


def test_partitions_are_mirrored_with_their_topics() -> None:
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(partition_index=n) for n in (3, 5)])]
    response = _refused(ListOffsetsRequest(topics=topics), ListOffsetsResponse, 7)
    (topic,) = response.topics
    assert topic.name == "t"
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(3, -1), (5, -1)]


def test_plain_names_are_mirrored() -> None:
    response = _refused(DeleteGroupsRequest(groups_names=["a", "b"]), DeleteGroupsResponse, 2)
    assert [(result.group_id, result.error_code) for result in response.results] == [("a", -1), ("b", -1)]


def test_entries_keep_their_names() -> None:
    response = _refused(CreateTopicsRequest(topics=[CreatableTopic(name="x")]), CreateTopicsResponse, 7)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("x", -1)]


def _refused(request: Any, response: type[Any], version: int) -> Any:
    """Refused, and through the wire once."""
    made = refusal(request, response, version, ErrorCode.UNKNOWN_SERVER_ERROR)
    decoded, _ = decode(response, version, memoryview(encode_bytes(made, version)))
    return decoded
