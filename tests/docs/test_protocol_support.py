"""docs/protocol-support.md says what the API table says."""

from __future__ import annotations

from docs import protocol_support
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import API_NAMES, request_type
from kbroker.requests.apis import APIS


def test_the_page_is_up_to_date() -> None:
    assert protocol_support.TARGET.read_text() == protocol_support.text(), (
        "run python -m docs.protocol_support"
    )


def test_every_row_of_the_table_names_a_declared_message() -> None:
    for api in APIS:
        assert API_NAMES[api.key] == api.name
        first, last = schema_of(request_type(api.key)).versions
        assert first <= api.min_version <= api.max_version <= last
