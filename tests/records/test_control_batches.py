"""Transaction markers."""

from __future__ import annotations

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord
from kafka.record.default_records import DefaultRecordBatch

from kbroker.protocol.records import (
    ControlType,
    InvalidRecord,
    Record,
    build_batch,
    build_control_batch,
    iter_records,
    parse_control,
    read_header,
    validate_batch,
    validate_stored_batch,
)
from tests.records.java_records import JavaRecords

MARKER = {
    "producer_id": 4000,
    "producer_epoch": 7,
    "coordinator_epoch": 3,
    "timestamp": 1_700_000_000_000,
    "base_offset": 99,
    "leader_epoch": 2,
}


@pytest.mark.parametrize("control_type", ControlType)
def test_a_marker_is_read_back(control_type: ControlType) -> None:
    batch = build_control_batch(control_type, **MARKER)
    header = validate_stored_batch(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 7, -1)
    assert (header.base_offset, header.next_offset) == (99, 100)
    assert parse_control(batch) == (control_type, 3)


@pytest.mark.java
@pytest.mark.parametrize("control_type", ControlType)
def test_markers_are_byte_for_byte_those_of_java(
    control_type: ControlType, java_records: JavaRecords
) -> None:
    assert build_control_batch(control_type, **MARKER) == java_records.marker(control_type.name, **MARKER)


def test_clients_recognise_markers() -> None:
    for control_type, aiokafka_marker in (
        (ControlType.ABORT, ABORT_MARKER),
        (ControlType.COMMIT, COMMIT_MARKER),
    ):
        batch = build_control_batch(control_type, **MARKER)
        (record,) = DefaultRecordBatch(batch)
        assert (record.abort, record.commit) == (control_type == 0, control_type == 1)
        (ours,) = iter_records(batch)
        assert ControlRecord.parse(ours.key) == aiokafka_marker


def test_clients_do_not_write_markers() -> None:
    with pytest.raises(InvalidRecord):
        validate_batch(build_control_batch(ControlType.COMMIT, **MARKER))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\1"),
        (b"\0\0\0", b"\0\0\0\0\0\1"),
        (b"\xff\xff\0\1", b"\0\0\0\0\0\1"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\1"),
    ],
)
def test_a_malformed_marker_is_invalid(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        parse_control(build_batch([Record(0, key, value)], control=True))


def test_a_marker_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    batch = build_batch([Record(0, b"\0\1\0\0more", b"\0\1\0\0\0\5more")], control=True)
    assert parse_control(batch) == (ControlType.ABORT, 5)


def test_a_control_record_of_another_kind_is_no_marker() -> None:
    assert parse_control(build_batch([Record(0, b"\0\0\0\2", b"")], control=True)) is None


def test_an_emptied_control_batch_has_no_marker() -> None:
    from kbroker.protocol.records import build_empty_batch

    header = read_header(build_control_batch(ControlType.COMMIT, **MARKER))
    with pytest.raises(InvalidRecord):
        parse_control(build_empty_batch(header))
