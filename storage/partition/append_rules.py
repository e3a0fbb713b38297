"""What is asked of a producer's batch before a log gives it offsets: whatever can be told from the batch, the
clock and the topic's configs alone.

Size, checksum, header, one batch from base offset 0, and the rules of the configs (validation.py). Nothing
here knows a log: a log that gives offsets later, or elsewhere, takes batches by the same rules.
"""

from __future__ import annotations

from kbroker.protocol.records import BatchHeader, InvalidRecord, validate_batch
from kbroker.protocol.records.batch import LOG_OVERHEAD
from kbroker.storage.errors import RecordTooLarge
from kbroker.storage.interface import LongCheck
from kbroker.storage.partition.validation import BatchRules


def accept(rules: BatchRules, records: memoryview, now_ms: int) -> tuple[memoryview, BatchHeader]:
    """The batch as it is to be appended: `records`, patched in place, or a new one.

    TakesLong: nothing has happened, and `accept_in_steps` is the way.
    """
    size = len(records)
    if size > rules.max_bytes:
        raise RecordTooLarge(f"a batch of {size} bytes, at most {rules.max_bytes} are allowed")
    header = validate_batch(records)
    if header.base_offset or header.batch_length + LOG_OVERHEAD != size:
        raise InvalidRecord(
            f"one batch from base offset 0 is expected: base offset {header.base_offset}, "
            f"batch of {header.size_bytes} bytes in {size}"
        )
    if rules.concern(header, now_ms):
        return rules.apply(records, header, now_ms)
    return records, header


def accept_in_steps(rules: BatchRules, records: memoryview, now_ms: int) -> LongCheck:
    """The same for a batch that `accept` found to take long."""
    return rules.applying(records, validate_batch(records), now_ms)
