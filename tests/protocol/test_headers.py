"""Which header version goes with which API version, and how headers look on the wire."""

from __future__ import annotations

import pytest
from declared_messages import versions_of
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import schema_name_map

from kbroker.protocol.codec import ProtocolError, decode, encode_bytes
from kbroker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kbroker.protocol.messages import API_NAMES, module_name, request_type, response_type


@pytest.mark.parametrize("api_key", API_NAMES, ids=API_NAMES.get)
def test_header_versions_are_those_of_kio(api_key):
    known = schema_name_map[module_name(API_NAMES[api_key])]
    for version in set(versions_of(request_type(api_key))) & set(known):
        request, response = load_request_schema(api_key, version), load_response_schema(api_key, version)
        assert request_header_version(api_key, version) == request.__header_schema__.__version__
        assert response_header_version(api_key, version) == response.__header_schema__.__version__


def test_the_response_to_api_versions_never_has_a_flexible_header():
    assert [response_header_version(18, version) for version in (0, 2, 3, 4, 99)] == [0, 0, 0, 0, 0]
    assert [request_header_version(18, version) for version in (0, 2, 3, 4, 99)] == [1, 1, 2, 2, 2]


def test_the_client_id_keeps_its_old_length_in_the_flexible_header():
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=7, client_id="me")
    encoded = encode_bytes(header, 2)
    assert encoded == b"\x00\x12\x00\x03\x00\x00\x00\x07\x00\x02me\x00"
    assert decode(RequestHeader, 2, memoryview(encoded)) == (header, len(encoded))
    assert encode_bytes(ResponseHeader(correlation_id=7), 1) == b"\x00\x00\x00\x07\x00"


def test_an_unknown_api_key_is_refused():
    for find in (request_type, response_type):
        with pytest.raises(ProtocolError, match="unknown API key 4"):
            find(4)
