"""A stream of bytes cut into frames, as it arrives: of each frame, only a bounded beginning is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kbroker.wire.skimming import Skim

LENGTH_BYTES: Final = 4
# No broker takes more, by default 100 MiB; what TLS and HTTP begin with would be above it.
LARGEST_FRAME: Final = 256 << 20


class Frame:
    """A frame of which some has arrived."""

    __slots__ = ("arrived", "keep", "kept", "missing", "size", "skim", "tag")

    def __init__(self, size: int, keep: int) -> None:
        self.size = size  # without the length
        self.keep = keep  # how many bytes of it to keep
        self.kept = bytearray()
        self.arrived = 0
        self.missing = 0  # bytes that were never seen
        self.tag: Any = None  # for whoever follows the frame
        self.skim: Skim | None = None  # what reads it as it arrives

    def take(self, data: memoryview) -> None:
        self.arrived += len(data)
        if not self.missing and len(self.kept) < self.keep:
            self.kept += data[: self.keep - len(self.kept)]

    @property
    def is_whole(self) -> bool:
        return self.arrived >= self.size


class Part(NamedTuple):
    """Some bytes of the stream: of one frame, or (None) of what is no frame."""

    data: bytes  # as they came, a frame's length included
    frame: Frame | None
    began: bool
    ended: bool


class Framer:
    """`head` bytes of a frame arrive together, with its length, in one part: the part that begins it."""

    def __init__(self, head: int, keep: int) -> None:
        self._head = head
        self._keep = keep
        self._waiting = bytearray()  # a length and a head that are not whole
        self._frame: Frame | None = None
        self.position = 0  # of the next byte in the stream
        self.opaque = False  # no frames are looked for any more

    def feed(self, data: bytes) -> Iterator[Part]:
        view = memoryview(data)
        while view:
            if self.opaque:
                yield self._part(bytes(view), None)
                return
            if self._frame is None:
                part, view = self._begin(view)
                if part is not None:
                    yield part
                continue
            rest = self._frame.size - self._frame.arrived
            taken, view = view[:rest], view[rest:]
            self._frame.take(taken)
            yield self._part(bytes(taken), self._frame)

    def _begin(self, view: memoryview) -> tuple[Part | None, memoryview]:
        waiting = self._waiting
        wanted = LENGTH_BYTES
        while True:
            missing = wanted - len(waiting)
            if missing > 0:
                waiting += view[:missing]
                view = view[missing:]
            if len(waiting) < wanted:
                return None, view
            size = int.from_bytes(waiting[:LENGTH_BYTES], "big", signed=True)
            if not 0 <= size <= LARGEST_FRAME:
                self.opaque = True
                return self._part(self._taken(), None), view
            if wanted == (whole := LENGTH_BYTES + min(size, self._head)):
                break
            wanted = whole
        data = self._taken()
        self._frame = Frame(size, self._keep)
        self._frame.take(memoryview(data)[LENGTH_BYTES:])
        return self._part(data, self._frame, began=True), view

    def skip(self, count: int) -> tuple[bool, Frame | None]:
        """Bytes were lost: whether it is known where the next frame begins; the frame that ended with them.

        If it is not known, the framer begins anew: it is to be fed from a frame on.
        """
        self.position += count
        frame = self._frame
        if frame is None or frame.size - frame.arrived < count:
            self.begin_anew()
            return False, None
        frame.missing += count
        frame.arrived += count
        if not frame.is_whole:
            return True, None
        self._frame = None
        return True, frame

    def begin_anew(self) -> None:
        """What is fed next begins a frame."""
        self._frame = None
        self._waiting.clear()
        self.opaque = False

    def rest(self) -> bytes:
        """At the end of the stream: bytes that wait for the rest of a length or a head."""
        return self._taken()

    def unfinished(self) -> Frame | None:
        """At the end of the stream: the frame that did not arrive as a whole."""
        frame, self._frame = self._frame, None
        return frame

    def _taken(self) -> bytes:
        data = bytes(self._waiting)
        self._waiting.clear()
        return data

    def _part(self, data: bytes, frame: Frame | None, *, began: bool = False) -> Part:
        self.position += len(data)
        ended = frame is not None and frame.is_whole
        if ended:
            self._frame = None
        return Part(data, frame, began, ended)
