"""kio, a codec that nobody here wrote, reads what we write and writes what we read.

kio gives some fields richer types (error codes, durations, points in time), which not every integer fits:
values are limited to those that do.
"""

from __future__ import annotations

import io
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pkgutil import resolve_name
from typing import Any
from uuid import UUID as StandardUUID

import pytest
from declared_messages import CASES as ALL_CASES
from declared_messages import COORDINATOR_RECORDS, case_id
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from message_strategies import messages

from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.messages import module_name
from kbroker.protocol.types import INT16, INT64, ZERO_UUID

FEW = settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def kio_entity(cls: type[Any], version: int) -> str | None:
    """Where kio has this message at this version."""
    name = module_name(cls.__name__.removesuffix("Request").removesuffix("Response"))
    return schema_name_map.get(name, {}).get(version, {}).get(EntityType[schema_of(cls).kind])


CASES = [(cls, version) for cls, version in ALL_CASES if cls not in COORDINATOR_RECORDS]
KNOWN_TO_KIO = [(cls, version) for cls, version in CASES if kio_entity(cls, version)]


def test_kio_knows_nearly_everything():
    unknown = {cls.__name__ for cls, version in CASES} - {cls.__name__ for cls, version in KNOWN_TO_KIO}
    assert unknown == set()
    assert len(KNOWN_TO_KIO) > 0.9 * len(CASES)


@pytest.mark.parametrize(("cls", "version"), KNOWN_TO_KIO, ids=case_id)
def test_kio_and_we_read_each_other(cls, version):
    entity = resolve_name(kio_entity(cls, version))
    read, write = entity_reader(entity), entity_writer(entity)

    @FEW
    @given(messages(cls, version, what_kio_can_hold))
    def check(message):
        encoded = encode_bytes(message, version)
        theirs, size = read(encoded, 0)
        assert size == len(encoded)
        assert_same(message, theirs, version)
        written = io.BytesIO()
        write(written, theirs)
        assert decode(cls, version, memoryview(written.getvalue())) == (message, len(encoded))

    check()


def what_kio_can_hold(f: Field) -> st.SearchStrategy[Any] | None:
    if f.name.endswith("error_code") and f.type is INT16:
        return st.sampled_from([int(code) for code in ErrorCode])
    if f.type is INT64 and (f.name.endswith("_ms") or "timestamp" in f.name):
        return st.integers(0, 10**10).map((1000).__mul__)  # kio rounds some milliseconds
    return None


def assert_same(message: Any, theirs: Any, version: int) -> None:
    ours = [getattr(message, f.name) for f in schema_of(type(message)) if f.present(version)]
    for mine, other in zip(ours, [getattr(theirs, f.name) for f in fields(theirs)], strict=True):
        if isinstance(mine, list):
            for each, their_each in zip(mine, other, strict=True):
                assert_same_value(each, their_each, version)
        else:
            assert_same_value(mine, other, version)


def assert_same_value(mine: Any, other: Any, version: int) -> None:
    if hasattr(mine, "__schema__") and other is not None:
        assert_same(mine, other, version)
    elif isinstance(other, timedelta):
        assert mine == other // MILLISECOND
    elif isinstance(other, datetime):
        assert mine == (other - EPOCH) // MILLISECOND
    elif isinstance(other, StandardUUID):
        assert mine == other.bytes
    elif other is None:  # also what kio makes of a zero UUID and of an unset time
        assert mine in (None, ZERO_UUID, -1)
    else:
        assert mine == other
