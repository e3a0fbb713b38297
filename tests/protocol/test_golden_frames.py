"""Frames captured from a real Apache Kafka 4.3.1 and clients decode, and encode to the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbroker.protocol import reference
from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kbroker.protocol.messages import API_NAMES, module_name, request_type, response_type

GOLDEN = Path(__file__).parent / "golden"
NOT_ADVERTISED = {71, 72}  # client telemetry: Kafka has it only with a receiver configured

FRAMES = [
    pytest.param(api_key, exchange["version"], kind, bytes.fromhex(exchange[kind]), id=f"{name}-{n}-{kind}")
    for api_key, name in API_NAMES.items()
    if api_key not in NOT_ADVERTISED
    for n, exchange in enumerate(json.loads((GOLDEN / f"{module_name(name)}.json").read_text()))
    for kind in ("request", "response")
]


@pytest.mark.parametrize(("api_key", "version", "kind", "frame"), FRAMES)
def test_a_captured_frame_decodes_and_encodes_to_itself(api_key, version, kind, frame):
    if kind == "request":
        header_type, header_version = RequestHeader, request_header_version(api_key, version)
        body_type = request_type(api_key)
    else:
        header_type, header_version = ResponseHeader, response_header_version(api_key, version)
        body_type = response_type(api_key)
    header, position = decode(header_type, header_version, memoryview(frame))
    body, end = decode(body_type, version, memoryview(frame), position)
    assert end == len(frame)
    assert encode_bytes(header, header_version) + encode_bytes(body, version) == frame
    assert reference.decode(body_type, version, frame, position) == (body, end)
    assert reference.encode(body, version) == frame[position:]


def test_every_advertised_version_was_captured_but_the_produce_versions_that_kafka_refuses():
    answer = next(param.values[3] for param in FRAMES if param.values[:3] == (18, 3, "response"))
    advertised, _ = decode(response_type(18), 3, memoryview(answer), 4)
    expected = {
        (row.api_key, version)
        for row in advertised.api_keys
        for version in range(row.min_version, row.max_version + 1)
    }
    captured = {tuple(param.values[:2]) for param in FRAMES}
    assert expected - captured == {(0, 0), (0, 1), (0, 2)}
