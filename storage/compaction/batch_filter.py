"""What compaction leaves of one batch, by Kafka's rules.

    record, at or below the latest offset of the map
      with a key, of which a later record is there     goes
      a tombstone in a batch past its delete horizon   goes
      without a key (from before the topic was         goes
        compacted)
    any other record                                   stays
    data of an aborted transaction                     goes
    marker of a transaction that has nothing left      gets a delete horizon, and goes after it

A batch from which nothing stays goes too; but the one with a producer's last sequence number, and the last
one of the compacted range, stay without records. The first time that a tombstone is seen its batch gets a
delete horizon, now + delete.retention.ms, in the place of its base timestamp (KIP-534).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kbroker.protocol.records import (
    BatchHeader,
    build_empty_batch,
    iter_records,
    iter_spans,
    payload_of,
    replace_payload,
    replace_records,
)
from kbroker.storage.compaction.offset_map import OffsetMap
from kbroker.storage.compaction.transactions import CleanedTransactions


class LastOfProducer(NamedTuple):
    """Where a producer stands that the log knows."""

    last_data_offset: int  # -1: no data of its epoch
    producer_epoch: int


@dataclass(slots=True)
class Counts:
    records_read: int = 0
    records_kept: int = 0


class BatchFilter:
    def __init__(
        self,
        latest: OffsetMap,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastOfProducer],
        *,
        now_ms: int,
        delete_retention_ms: int,
        first_uncleanable_offset: int,
    ) -> None:
        self._latest = latest
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._new_horizon_ms = now_ms + delete_retention_ms
        self._first_uncleanable_offset = first_uncleanable_offset
        self.counts = Counts()

    def apply(self, header: BatchHeader, batch: memoryview) -> bytes | memoryview | None:
        """The batch that takes this one's place; None: none does. Batches come in the order of offsets."""
        self.counts.records_read += header.record_count
        keep_empty = self._keeps_empty(header)
        if header.is_control:
            return self._control(header, batch, keep_empty)
        if self._transactions.is_aborted(header):
            return build_empty_batch(header) if keep_empty else None
        return self._data(header, batch, keep_empty)

    def _keeps_empty(self, header: BatchHeader) -> bool:
        if header.next_offset == self._first_uncleanable_offset:
            return True
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _control(self, header: BatchHeader, batch: memoryview, keep_empty: bool) -> bytes | memoryview | None:
        needless = self._transactions.is_needless(header, batch)
        horizon_ms = header.delete_horizon_ms
        expired = needless and horizon_ms is not None and horizon_ms <= self._now_ms
        if expired or not header.record_count:
            return build_empty_batch(header) if keep_empty else None
        self.counts.records_kept += header.record_count
        if needless and horizon_ms is None:
            return replace_records(header, list(iter_records(batch)), delete_horizon_ms=self._new_horizon_ms)
        return batch

    def _data(self, header: BatchHeader, batch: memoryview, keep_empty: bool) -> bytes | memoryview | None:
        latest, base_offset = self._latest, header.base_offset
        latest_offset, get = latest.latest_offset, latest.get
        horizon_ms = header.delete_horizon_ms
        keep_tombstones = horizon_ms is None or self._now_ms < horizon_ms
        payload = payload_of(batch, header) if header.record_count else b""
        kept = []
        tombstones = False
        for span in iter_spans(payload, header):
            _, _, offset_delta, _, key, has_value = span
            offset = base_offset + offset_delta
            if offset <= latest_offset and (
                key is None or not (has_value or keep_tombstones) or offset < get(key)
            ):
                continue
            if not has_value:
                tombstones = True
            kept.append(span)
        if not kept:
            return build_empty_batch(header) if keep_empty else None
        self.counts.records_kept += len(kept)
        if tombstones and horizon_ms is None:
            deltas = {span.offset_delta for span in kept}
            records = [record for record in iter_records(batch) if record.offset_delta in deltas]
            return replace_records(header, records, delete_horizon_ms=self._new_horizon_ms)
        if len(kept) == header.record_count:
            return batch
        # The base timestamp stays, unlike Kafka's, so that the records need not be written anew.
        max_timestamp = header.max_timestamp
        if not header.timestamp_type:
            max_timestamp = header.base_timestamp + max(span.timestamp_delta for span in kept)
        return replace_payload(
            header._replace(record_count=len(kept), max_timestamp=max_timestamp),
            b"".join([payload[span.start : span.end] for span in kept]),
            header.codec,
        )
