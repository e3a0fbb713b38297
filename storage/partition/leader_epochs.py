"""The history of leader epochs of a log: which epoch began at which offset, both strictly rising.

Kept in `leader-epoch-checkpoint`: a version line (0), a count line, then "epoch start-offset" lines.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from kbroker.storage.interface import EpochEndOffset

UNDEFINED = EpochEndOffset(-1, -1)


class LeaderEpochs:
    __slots__ = ("_epochs", "_starts", "changed")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or ()]
        self._starts = [start for _, start in entries or ()]
        self.changed = False  # since the checkpoint was written

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Batches of `epoch` begin at `start_offset`; what contradicts that gives way."""
        if epoch < 0:
            return
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.changed = True

    def epoch_for_offset(self, offset: int) -> int:
        """-1: the offset is older than the history."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else -1

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        if epoch < 0 or not self._epochs:
            return UNDEFINED
        if epoch == self._epochs[-1]:
            return EpochEndOffset(epoch, log_end_offset)
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return UNDEFINED
        return EpochEndOffset(self._epochs[higher - 1] if higher else epoch, self._starts[higher])

    def truncate_from_end(self, end_offset: int) -> None:
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self.changed = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended at or before `start_offset`; the one it lies in starts there now."""
        first = bisect_right(self._starts, start_offset) - 1
        if first < 0 or (first == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:first], self._starts[:first]
        self._starts[0] = start_offset
        self.changed = True

    def clear(self) -> None:
        self.truncate_from_end(-1)


def encode(epochs: LeaderEpochs) -> bytes:
    entries = epochs.entries()
    return "".join([f"0\n{len(entries)}\n", *(f"{epoch} {start}\n" for epoch, start in entries)]).encode()


def decode(data: bytes) -> LeaderEpochs:
    """Raises ValueError if this is not a checkpoint."""
    lines = data.decode("ascii").splitlines()
    if len(lines) < 2 or lines[0] != "0" or len(lines) - 2 != int(lines[1]):
        raise ValueError("not a leader epoch checkpoint")
    epochs = LeaderEpochs()
    for line in lines[2:]:
        epoch, start = line.split()
        epochs.assign(int(epoch), int(start))
    epochs.changed = False
    return epochs
