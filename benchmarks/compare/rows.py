"""All rows of the comparison, in their order."""

from __future__ import annotations

from benchmarks.compare import group_rows, log_rows, process_rows, security_rows, share_rows, transaction_rows
from benchmarks.compare.measures import Row

ROWS: tuple[Row, ...] = (
    *process_rows.ROWS,
    *log_rows.ROWS,
    *security_rows.ROWS,
    *group_rows.ROWS,
    *share_rows.ROWS,
    *transaction_rows.ROWS,
)
