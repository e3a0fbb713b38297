"""What of a log is written, but not known to be on disk: ended segments, small files, new names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbroker.storage.segments.file_segment import FileSegment


class Taken(NamedTuple):
    segments: list[FileSegment]
    paths: list[str]
    directories: list[str]


class Unsynced:
    __slots__ = ("_directories", "_paths", "_segments")

    def __init__(self) -> None:
        self._segments: list[FileSegment] = []
        self._paths: dict[str, None] = {}
        self._directories: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._segments or self._paths or self._directories)

    def add_segment(self, segment: FileSegment) -> None:
        self._segments.append(segment)

    def add_paths(self, *paths: str) -> None:
        self._paths.update(dict.fromkeys(paths))

    def add_directories(self, *paths: str) -> None:
        self._directories.update(dict.fromkeys(paths))

    def forget(self, segments: Iterable[FileSegment] = (), paths: Iterable[str] = ()) -> None:
        """These are no longer part of the log."""
        for segment in segments:
            if segment in self._segments:
                self._segments.remove(segment)
            for path in segment.paths():
                self._paths.pop(path, None)
        for path in paths:
            self._paths.pop(path, None)

    def put_back(self, taken: Taken) -> None:
        """The sync did not come about."""
        self._segments = [segment for segment in taken.segments if not segment.given_up] + self._segments
        self.add_paths(*taken.paths)
        self.add_directories(*taken.directories)

    def take(self) -> Taken:
        """All of it: a sync begins."""
        taken = Taken(self._segments, list(self._paths), list(self._directories))
        self._segments, self._paths, self._directories = [], {}, {}
        return taken
