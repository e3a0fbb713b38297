"""The ring of spans: it keeps the newest, whatever happens to the process."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from kbroker.observability.traces.ring import Ring

SIZE = 64 << 10
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ring")


def contents(ring: Ring) -> list[bytes]:
    return [data for _, data in ring.entries()]


def test_the_newest_entries_are_there_in_their_order(path: str) -> None:
    ring = Ring.open(path, SIZE)
    chance = random.Random(7)
    written = [chance.randbytes(chance.randrange(1, 400)) for _ in range(5000)]
    positions = [ring.append(each) for each in written]
    kept = contents(ring)
    assert kept == written[-len(kept) :]
    assert SIZE * 0.8 < sum(map(len, kept)) < SIZE
    assert [ring.read(position) for position in positions[-len(kept) :]] == kept
    assert ring.read(positions[0]) is None
    assert os.path.getsize(path) == SIZE + PAGE


def test_it_is_found_again_after_any_stop(path: str) -> None:
    ring = Ring.open(path, SIZE)
    for number in range(3000):
        ring.append(b"%d" % number * 10)
    kept = list(ring.entries())
    again = Ring.open(path, SIZE)  # the first one was not closed, as after a kill
    assert list(again.verified()) == list(again.entries()) == kept


@pytest.mark.parametrize("at", [0, 8, 16, 24, PAGE, PAGE + 4, PAGE + 20, PAGE + 3000, PAGE + SIZE // 2])
def test_whatever_is_damaged_it_opens_and_goes_on(path: str, at: int) -> None:
    ring = Ring.open(path, SIZE)
    for number in range(700):
        ring.append(b"%4d" % number * 20)
    whole = contents(ring)
    ring.close()
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(os.urandom(16))
    again = Ring.open(path, SIZE)
    kept = [data for _, data in again.verified()]
    assert kept == whole[: len(kept)] or set(kept) <= set(whole)
    for number in range(2000):
        again.append(b"new %d" % number)
    assert contents(again)[-1] == b"new 1999"


def test_another_size_begins_anew(path: str) -> None:
    Ring.open(path, SIZE).append(b"old")
    ring = Ring.open(path, 2 * SIZE)
    assert contents(ring) == []
    ring.append(b"new")
    assert contents(Ring.open(path, 2 * SIZE)) == [b"new"]


def test_what_is_too_large_is_left_out() -> None:
    ring = Ring.in_memory(SIZE)
    assert ring.append(bytes(SIZE // 4 + 1)) == -1
    assert ring.append(b"small") == 0


def test_a_reader_in_the_middle_goes_on_with_what_is_left() -> None:
    ring = Ring.in_memory(SIZE)
    for number in range(100):
        ring.append(b"%d" % number)
    entries = ring.entries()
    assert next(entries)[1] == b"0"
    for number in range(100, 10_000):
        ring.append(b"%d" % number)
    rest = [int(data) for _, data in entries]
    assert rest == list(range(rest[0], 10_000))
