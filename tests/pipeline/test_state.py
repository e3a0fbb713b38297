from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.progress import Progress, lag
from kbroker.pipeline.state import State


def checkpoint(
    state: Path, query: str, batch: int, *offsets: object, committed: bool = True, watermark_ms: int = 0
) -> None:
    directory = state / query / "checkpoint"
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    metadata = json.dumps({"batchWatermarkMs": watermark_ms})
    lines = ["v1", metadata, *(json.dumps(each) if each is not None else "-" for each in offsets)]
    (directory / "offsets" / str(batch)).write_text("\n".join(lines))
    if committed:
        (directory / "commits" / str(batch)).write_text("v1\n{}")


def test_the_newest_batch_that_is_committed_counts(tmp_path: Path) -> None:
    checkpoint(tmp_path, "out", 0, {"orders": {"0": 5, "1": 7}})
    checkpoint(tmp_path, "out", 1, {"orders": {"0": 9, "1": 8}})
    checkpoint(tmp_path, "out", 2, {"orders": {"0": 20, "1": 20}}, committed=False)
    assert State(str(tmp_path)).committed("out") == (1, {"orders": {0: 9, 1: 8}})


def test_several_sources_and_those_without_offset(tmp_path: Path) -> None:
    checkpoint(tmp_path, "out", 0, {"a": {"0": 5}}, None, {"b": {"0": 1}}, {"a": {"0": 3}})
    assert State(str(tmp_path)).committed("out") == (0, {"a": {0: 3}, "b": {0: 1}})


def test_a_query_that_never_ran_has_nothing_committed(tmp_path: Path) -> None:
    assert State(str(tmp_path)).committed("out") is None


def test_only_one_process_holds_the_lock(tmp_path: Path) -> None:
    state, other = State(str(tmp_path)), State(str(tmp_path))
    with state.locked(), pytest.raises(PipelineError, match="running already"), other.locked():
        pass
    with other.locked():
        pass


def report(batch: int, rows: int, end: int, rejected: int = 0) -> dict[str, object]:
    return {
        "batchId": batch,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "numInputRows": rows,
        "processedRowsPerSecond": 10.0,
        "durationMs": {"latestOffset": 3, "addBatch": 50, "triggerExecution": 60},
        "sources": [{"endOffset": json.dumps({"t": {"0": end}}), "latestOffset": {"t": {"0": 30}}}],
        "observedMetrics": {"orders": {"rows": rows, "rejected": rejected}},
    }


def test_a_batch_is_counted_once_over_reports_and_restarts(tmp_path: Path) -> None:
    state = State(str(tmp_path))
    progress = Progress("out")
    assert progress.take([report(0, 10, 10, rejected=2), report(1, 5, 15)])
    assert not progress.take([report(0, 10, 10, rejected=2), report(1, 5, 15)])
    progress.save(state)
    again = Progress.load(state, "out")
    assert again.take([report(1, 5, 15), report(2, 5, 20, rejected=1)])
    assert (again.rows, again.rejected, again.batch, again.behind) == (20, 3, 2, 10)


def test_a_report_of_a_query_that_waits_does_not_stand_for_the_batch_that_comes_next() -> None:
    progress = Progress("out")
    waiting = {**report(1, 0, 10), "durationMs": {"latestOffset": 3, "triggerExecution": 4}}
    waiting["timestamp"] = "2026-01-01T00:00:10.000Z"
    assert progress.take([report(0, 10, 10)])
    assert progress.take([waiting]), "the query was heard of"
    assert not progress.take([waiting])
    assert (progress.batch, progress.timestamp) == (0, "2026-01-01T00:00:00.000Z")
    progress.take([{**report(1, 5, 15, rejected=1), "timestamp": "2026-01-01T00:00:20.000Z"}])
    assert (progress.rows, progress.rejected, progress.batch) == (15, 1, 1)


def test_late_rows_and_late_groups_are_counted_apart_and_kept(tmp_path: Path) -> None:
    progress = Progress("out")
    assert progress.late == ""
    operators = [
        {"operatorName": "dedupeWithinWatermark", "numRowsDroppedByWatermark": 1200},
        {"operatorName": "stateStoreSave", "numRowsDroppedByWatermark": 3},
    ]
    for _ in range(2):
        progress.take([{**report(0, 10, 10), "stateOperators": operators}])
    progress.save(State(str(tmp_path)))
    again = Progress.load(State(str(tmp_path)), "out")
    assert (again.late_rows, again.late_groups, again.late) == (1200, 3, "1,200 rows, 3 groups")


def test_a_batch_knows_its_records_and_the_watermark_of_the_one_before(tmp_path: Path) -> None:
    first = tmp_path / "out" / "checkpoint" / "sources" / "0" / "0"
    first.parent.mkdir(parents=True)
    first.write_bytes(b'\0v1\n{"t":{"0":2}}')
    for number, end in enumerate((5, 9)):
        checkpoint(tmp_path, "out", number, {"t": {"0": end}}, watermark_ms=1000 * number)
    checkpoint(tmp_path, "out", 2, {"t": {"0": 9, "1": 4}}, watermark_ms=5000)
    state = State(str(tmp_path))
    assert state.batch("out", 0) == (0, {"t": {0: 2}}, {"t": {0: 5}}, 0)
    assert state.batch("out", 2) == (2, {"t": {0: 9}}, {"t": {0: 9, 1: 4}}, 1000)
    assert state.batch("out", 4) is None, "the one before is gone"


def test_a_topic_that_a_query_reads_twice_is_as_far_as_its_slower_reader() -> None:
    progress = Progress("out")
    sources = [{"endOffset": {"t": {"0": 7, "1": 2}}}, {"endOffset": {"t": {"0": 5, "1": 3}}}]
    progress.take([{**report(0, 10, 10), "sources": sources}])
    assert progress.offsets == {"t": {0: 5, 1: 2}}


def test_an_empty_batch_keeps_the_last_speed() -> None:
    progress = Progress("out")
    progress.take([report(0, 10, 10), {**report(1, 0, 10), "processedRowsPerSecond": 0.0}])
    assert (progress.rows_per_second, progress.last_rows) == (10.0, 10)


def test_lag_counts_partitions_that_were_never_read() -> None:
    assert lag({"t": {0: 4}}, {"t": {0: 10, 1: 3}}) == 9


def test_progress_that_cannot_be_read_starts_anew(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "progress.json").write_text("{half")
    assert Progress.load(State(str(tmp_path)), "out").rows == 0
