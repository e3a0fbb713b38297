"""Which files are open: at most `capacity` of all logs together, the ones used last.

The capacity is the logs' share of what the process may open; the rest is for connections and all else.

A `LazyFile` is a path that is opened when it is needed. Using it sets `touched`; when room is needed, files
not touched since the last search give their descriptor up (second chance: a use costs one assignment).
"""

from __future__ import annotations

import resource

from kbroker.storage.errors import NO_DESCRIPTORS
from kbroker.storage.files import Files, OpenFile

_MOST = 1 << 16


class LazyFile:
    __slots__ = ("handle", "path", "touched")

    def __init__(self, path: str) -> None:
        self.path = path
        self.handle: OpenFile | None = None
        self.touched = False


class Descriptors:
    def __init__(self, files: Files, capacity: int | None = None) -> None:
        self._files = files
        self._capacity = capacity if capacity is not None else default_capacity()
        self._open: dict[LazyFile, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def capacity(self) -> int:
        return self._capacity

    def open(self, file: LazyFile, *, create: bool = False) -> OpenFile:
        """The descriptor of a file, opened now if it is not."""
        file.touched = True
        if file.handle is None:
            while len(self._open) >= self._capacity:
                self._evict()
            try:
                file.handle = self._files.open(file.path, write=True, create=create)
            except OSError as error:
                if error.errno not in NO_DESCRIPTORS or not self._open:
                    raise
                for _ in range((len(self._open) + 1) // 2):  # others have more than their share, for now
                    self._evict()
                file.handle = self._files.open(file.path, write=True, create=create)
            self._open[file] = None
        return file.handle

    def close(self, file: LazyFile) -> None:
        """Give the descriptor up; whoever reads from it at this moment keeps it until then."""
        file.handle = None
        self._open.pop(file, None)

    def _evict(self) -> None:
        while True:
            file = next(iter(self._open))
            if not file.touched:
                self.close(file)
                return
            file.touched = False
            del self._open[file]
            self._open[file] = None


def default_capacity() -> int:
    """A third of what the process may open, as far as that makes sense: a connection may take two."""
    return min(max(16, process_limit() // 3), _MOST)


def process_limit() -> int:
    """How many descriptors the process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft
