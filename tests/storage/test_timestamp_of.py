"""The timestamp of the batch that holds an offset: what lag in seconds is made of."""

from __future__ import annotations

import pytest

from kbroker.pending import Pending
from kbroker.storage.errors import OffsetOutOfRange

from .support import NOW, Storage, batch


def test_each_offset_has_the_timestamp_of_its_batch(storage: Storage) -> None:
    log = storage.log(segment_bytes=600)
    for index in range(20):
        log.append_as_leader(batch("x" * 100, timestamp=NOW + index), NOW)
    assert len({log.timestamp_of(offset) for offset in range(20)}) == 20
    assert [log.timestamp_of(offset) for offset in (0, 7, 19)] == [NOW, NOW + 7, NOW + 19]


def test_an_offset_that_is_not_there_has_none(storage: Storage) -> None:
    log = storage.log()
    log.append_as_leader(batch("x", timestamp=NOW), NOW)
    with pytest.raises(OffsetOutOfRange):
        log.timestamp_of(5)


def test_a_batch_that_is_not_in_the_page_cache_is_waited_for(
    file_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = file_storage.log()
    log.append_as_leader(batch("x", timestamp=NOW), NOW)
    files = file_storage.directory._files  # type: ignore[attr-defined]
    monkeypatch.setattr(files, "_nowait", False)
    monkeypatch.setattr(files, "_never_waits", False)
    found = log.timestamp_of(0)
    assert isinstance(found, Pending)
    assert found.result() == NOW
    assert file_storage.directory.counts.cold_reads.count == 1
