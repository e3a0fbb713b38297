"""Idempotent producers and transactions, on logs of both kinds; for files also across restarts."""

from __future__ import annotations

import pytest

from kbroker.storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kbroker.storage.interface import Log, ProducerState

from .support import NOW, Storage, batch, contents, idempotent, read, transactional

MAX_SEQUENCE = 2**31 - 1


def end(
    log: Log,
    *,
    commit: bool,
    producer_id: int = 7,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    **options: int,
) -> int:
    return log.append_control(
        producer_id,
        epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        now_ms=NOW,
        **options,
    ).base_offset


def test_a_batch_sent_again_is_answered_with_its_first_offset(log: Log) -> None:
    for sequence in range(0, 10, 2):
        log.append_as_leader(idempotent(sequence, count=2), NOW)
    for sequence in range(0, 10, 2):
        again = log.append_as_leader(idempotent(sequence, count=2), NOW)
        assert (again.base_offset, again.last_offset, again.duplicate) == (sequence, sequence + 1, True)
    assert log.log_end_offset == 10


def test_only_the_last_five_batches_are_remembered(log: Log) -> None:
    for sequence in range(6):
        log.append_as_leader(idempotent(sequence), NOW)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(idempotent(0), NOW)
    assert log.append_as_leader(idempotent(1), NOW).duplicate


def test_the_same_sequence_with_another_size_is_no_duplicate(log: Log) -> None:
    log.append_as_leader(idempotent(0, count=2), NOW)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(idempotent(0, count=3), NOW)


def test_a_gap_in_the_sequence_is_out_of_order(log: Log) -> None:
    log.append_as_leader(idempotent(0), NOW)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(idempotent(2), NOW)
    assert not log.append_as_leader(idempotent(1), NOW).duplicate


def test_an_unknown_producer_may_start_at_any_sequence(log: Log) -> None:
    log.append_as_leader(idempotent(55), NOW)
    assert not log.append_as_leader(idempotent(56), NOW).duplicate


def test_the_sequence_wraps_around(log: Log) -> None:
    log.append_as_leader(idempotent(MAX_SEQUENCE - 1, count=3), NOW)
    assert log.producers()[0].last_sequence == 0
    assert not log.append_as_leader(idempotent(1), NOW).duplicate
    assert log.append_as_leader(idempotent(MAX_SEQUENCE - 1, count=3), NOW).duplicate


def test_after_the_largest_sequence_comes_zero(log: Log) -> None:
    log.append_as_leader(idempotent(MAX_SEQUENCE), NOW)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(idempotent(1), NOW)
    assert not log.append_as_leader(idempotent(0), NOW).duplicate


def test_an_older_epoch_is_fenced(log: Log) -> None:
    log.append_as_leader(idempotent(0, epoch=3), NOW)
    with pytest.raises(InvalidProducerEpoch):
        log.append_as_leader(idempotent(1, epoch=2), NOW)


def test_a_new_epoch_starts_at_sequence_zero(log: Log) -> None:
    log.append_as_leader(idempotent(0), NOW)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(idempotent(1, epoch=1), NOW)
    assert not log.append_as_leader(idempotent(0, epoch=1), NOW).duplicate
    with pytest.raises(InvalidProducerEpoch):
        log.append_as_leader(idempotent(1, epoch=0), NOW)


def test_producers_do_not_disturb_each_other(log: Log) -> None:
    log.append_as_leader(idempotent(0, producer_id=1), NOW)
    log.append_as_leader(idempotent(0, producer_id=2), NOW)
    log.append_as_leader(idempotent(1, producer_id=1), NOW)
    assert {state.producer_id: state.last_sequence for state in log.producers()} == {1: 1, 2: 0}


def test_a_failed_append_changes_nothing_for_its_producer(storage: Storage) -> None:
    log = storage.log(segment_bytes=500)
    log.append_as_leader(idempotent(0), NOW)
    from kbroker.storage.errors import StorageError

    with pytest.raises(StorageError):
        log.append_as_leader(idempotent(1, "x" * 600), NOW)
    assert not log.append_as_leader(idempotent(1), NOW).duplicate


# transactions


def test_the_last_stable_offset_waits_for_the_open_transaction(log: Log) -> None:
    log.append_as_leader(batch("before"), NOW)
    log.append_as_leader(transactional(0, "a"), NOW)
    log.append_as_leader(batch("after"), NOW)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    assert contents(log, committed=True) == [(0, "before")]
    assert contents(log) == [(0, "before"), (1, "a"), (2, "after")]
    end(log, commit=True)
    assert log.last_stable_offset == 4
    assert contents(log, committed=True) == [(0, "before"), (1, "a"), (2, "after")]
    assert read(log, 0, committed=True).aborted == []


def test_aborted_transactions_are_named_to_committed_readers(log: Log) -> None:
    log.append_as_leader(transactional(0, "a", producer_id=1), NOW)
    log.append_as_leader(transactional(0, "b", producer_id=2), NOW)
    end(log, commit=False, producer_id=1)
    end(log, commit=True, producer_id=2)
    log.append_as_leader(transactional(1, "c", producer_id=1), NOW)
    end(log, commit=False, producer_id=1)
    assert read(log, 0, committed=True).aborted == [(1, 0), (1, 4)]
    assert read(log, 3, committed=True).aborted == [(1, 4)]
    assert read(log, 0).aborted in ([], ())


def test_an_abort_far_behind_its_data_is_found(storage: Storage) -> None:
    log = storage.log(segment_bytes=300)
    log.append_as_leader(transactional(0, "x" * 150), NOW)
    for _ in range(10):
        log.append_as_leader(batch("y" * 150), NOW)
    end(log, commit=False)
    assert read(log, 0, committed=True).aborted == [(7, 0)]
    assert read(log, 5, committed=True).aborted == [(7, 0)]


def test_interleaved_transactions_end_one_by_one(log: Log) -> None:
    log.append_as_leader(transactional(0, producer_id=1), NOW)
    log.append_as_leader(transactional(0, producer_id=2), NOW)
    end(log, commit=True, producer_id=2)
    assert log.last_stable_offset == 0
    end(log, commit=True, producer_id=1)
    assert log.last_stable_offset == 4


def test_a_marker_without_a_transaction_moves_nothing(log: Log) -> None:
    end(log, commit=False)
    assert (log.last_stable_offset, log.log_end_offset) == (1, 1)
    assert read(log, 0, committed=True).aborted == []


def test_a_marker_of_an_older_epoch_is_fenced(log: Log) -> None:
    log.append_as_leader(transactional(0, epoch=2), NOW)
    with pytest.raises(InvalidProducerEpoch):
        end(log, commit=True, epoch=1)


def test_from_transaction_version_2_a_marker_needs_a_higher_epoch(log: Log) -> None:
    log.append_as_leader(transactional(0, epoch=2), NOW)
    with pytest.raises(InvalidProducerEpoch):
        end(log, commit=True, epoch=2, transaction_version=2)
    end(log, commit=True, epoch=3, transaction_version=2)
    assert log.last_stable_offset == 2
    with pytest.raises(InvalidProducerEpoch):
        log.append_as_leader(transactional(1, epoch=2), NOW)


def test_a_marker_of_an_older_coordinator_is_fenced(log: Log) -> None:
    log.append_as_leader(transactional(0), NOW)
    end(log, commit=True, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFenced):
        end(log, commit=True, coordinator_epoch=4)


def test_a_plain_batch_within_a_transaction_is_refused(log: Log) -> None:
    log.append_as_leader(transactional(0), NOW)
    with pytest.raises(InvalidTransactionState):
        log.append_as_leader(idempotent(1), NOW)


def test_the_log_knows_who_has_an_open_transaction(log: Log) -> None:
    log.append_as_leader(transactional(0), NOW)
    assert log.has_ongoing_transaction(7, 0)
    assert not log.has_ongoing_transaction(7, 1)
    assert not log.has_ongoing_transaction(8, 0)
    assert log.producers() == [ProducerState(7, 0, 0, NOW, -1, 0)]
    end(log, commit=True, coordinator_epoch=3)
    assert not log.has_ongoing_transaction(7, 0)
    assert log.producers() == [ProducerState(7, 0, 0, NOW, 3, -1)]


def test_deleting_the_start_of_an_open_transaction_moves_the_last_stable_offset(log: Log) -> None:
    log.append_as_leader(transactional(0), NOW)
    log.append_as_leader(batch(), NOW)
    log.delete_records_before(1)
    assert (log.log_start_offset, log.last_stable_offset) == (1, 1)


def test_watchers_hear_of_the_last_stable_offset(log: Log) -> None:
    log.append_as_leader(transactional(0), NOW)
    seen: list[int] = []
    log.watch(lambda: seen.append(log.last_stable_offset))
    end(log, commit=True)
    assert seen == [2]


# across restarts


@pytest.fixture(params=["clean", "crash"])
def restart(request: pytest.FixtureRequest, file_storage: Storage) -> object:
    return file_storage.reopen if request.param == "clean" else file_storage.crash


def test_producers_are_known_again_after_a_restart(file_storage: Storage, restart: object) -> None:
    log = file_storage.log(segment_bytes=500)
    for sequence in range(12):
        log.append_as_leader(idempotent(sequence, "x" * 100), NOW)
    log.append_as_leader(transactional(0, producer_id=9), NOW)
    before = sorted(log.producers())
    restart()  # type: ignore[operator]
    log = file_storage.log(segment_bytes=500)
    assert sorted(log.producers()) == before
    assert log.append_as_leader(idempotent(11, "x" * 100), NOW).duplicate
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(idempotent(13, "x" * 100), NOW)
    assert not log.append_as_leader(idempotent(12, "x" * 100), NOW).duplicate
    assert log.last_stable_offset == 12


def test_aborted_transactions_are_known_again_after_a_restart(file_storage: Storage, restart: object) -> None:
    log = file_storage.log(segment_bytes=500)
    for round_ in range(10):
        log.append_as_leader(transactional(round_, "x" * 100), NOW)
        end(log, commit=bool(round_ % 2))
    before = read(log, 0, committed=True).aborted
    everywhere = [read(log, offset, committed=True).aborted for offset in range(20)]
    assert before
    restart()  # type: ignore[operator]
    log = file_storage.log(segment_bytes=500)
    assert [read(log, offset, committed=True).aborted for offset in range(20)] == everywhere


def test_idle_producers_expire(file_storage: Storage) -> None:
    log = file_storage.log()
    log.append_as_leader(idempotent(0, timestamp=NOW), NOW)
    log.append_as_leader(transactional(0, producer_id=8), NOW)
    day = file_storage.settings.producer_id_expiration_ms
    file_storage.directory.tick(NOW + day - 1)
    assert len(log.producers()) == 2
    file_storage.directory.tick(NOW + 2 * day)
    assert [state.producer_id for state in log.producers()] == [8]  # its transaction is still open


def test_producers_that_expired_while_the_broker_was_down_are_gone(
    file_storage: Storage, restart: object
) -> None:
    log = file_storage.log()
    log.append_as_leader(idempotent(0), NOW)
    file_storage.now_ms = NOW + file_storage.settings.producer_id_expiration_ms
    restart()  # type: ignore[operator]
    assert file_storage.log().producers() == []
