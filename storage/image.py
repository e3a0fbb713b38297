"""An image: a data directory as it would be if the process had died at one moment, to be copied at leisure.

It lies within the data directory and takes no room: its files are hard links. That works because a log only
grows: what is behind the moment is left out by who copies (`offline/backup.py`), for whom it stands in
`image.json` where each log ended. Meanwhile appends go on. Retention, compaction and removal, which take
files away or put others in their place, wait while links are made: they are due in a tick of the directory.
Topics may be deleted, since their directories are renamed at first.

What recovery makes again anyway is not part of it: the indexes of the segments that were being written. So
the recovery points of an image lie where these segments begin.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pending import Pending
from kbroker.storage import names
from kbroker.storage.durability import checkpoints
from kbroker.storage.errors import ImageFailed, shortage

if TYPE_CHECKING:
    from kbroker.storage.files import Files
    from kbroker.storage.partition.log import PartitionLog
    from kbroker.storage.worker import Worker

FORMAT = 1
_TRIES = 100  # to list a directory in which nothing is renamed meanwhile

Key = tuple[str, int]


class Cut(NamedTuple):
    """Where a log ended: in the segment with this base offset, after so many bytes."""

    base_offset: int
    size_bytes: int


class Image:
    """One that is being made. The moment is when this object is."""

    def __init__(
        self,
        files: Files,
        worker: Worker,
        root: str,
        name: str,
        logs: Iterable[PartitionLog],
        closed: Iterable[Key],
        contents: Mapping[str, checkpoints.Offsets],
        now_ms: int,
        ended: Callable[[], None],
    ) -> None:
        """`logs`: those that are open. `contents`: of the checkpoints. `ended`: called when nothing need wait
        any more.
        """
        self.path = os.path.join(root, names.IMAGES, name)
        self._files = files
        self._worker = worker
        self._root = root
        self._contents = {name: dict(offsets) for name, offsets in contents.items()}
        self._now_ms = now_ms
        self._ended = ended
        self._keys = list(closed)
        self._cuts: dict[Key, Cut] = {}
        self._moved: dict[Key, str] = {}
        for log in logs:
            if log.on_disk:
                self._keys.append((log.topic, log.partition))
                self.opened(log)
        files.make_directories(self.path)

    def opened(self, log: PartitionLog) -> None:
        """A partition that was closed at the moment is opened, and may grow from now on."""
        key = (log.topic, log.partition)
        if key in self._cuts or not log.on_disk:
            return
        active = log.segments[-1]
        self._cuts[key] = Cut(active.base_offset, active.size_bytes)

    def moving(self, key: Key, target: str) -> None:
        """The directory of a deleted partition is about to be renamed."""
        self._moved[key] = target

    def finish(self) -> Pending[int]:
        """Make the links; returns how many partitions there are."""
        linked = self._worker.run(self._link)
        result: Pending[int] = Pending()

        def end(linked: Pending[None]) -> None:
            self._ended()
            written = self._worker.run(self._describe) if linked.succeeded else linked
            written.then(tell)

        def tell(written: Pending[None]) -> None:
            try:
                written.result()
            except OSError as error:
                short = shortage(error, self.path)
                result.fail(short or ImageFailed(f"no image can be made: {error.strerror or error}"))
            except Exception as error:
                result.fail(error)
            else:
                result.resolve(len(self._keys))

        linked.then(end)
        return result

    # in a thread

    def _link(self) -> None:
        for key in self._keys:
            self._link_partition(key)
        meta = os.path.join(self._root, names.META_PROPERTIES)
        if self._files.exists(meta):
            self._files.link(meta, os.path.join(self.path, names.META_PROPERTIES))

    def _link_partition(self, key: Key) -> None:
        directory = names.partition_directory(*key)
        target = os.path.join(self.path, directory)
        self._files.make_directory(target)
        for _ in range(_TRIES):
            source = self._moved.get(key) or os.path.join(self._root, directory)
            try:
                self._link_files(key, source, target)
                return
            except FileNotFoundError:
                continue  # it was renamed meanwhile, or an older snapshot removed
        raise ImageFailed(f"no image can be made: files of {directory} are not there")

    def _link_files(self, key: Key, source: str, target: str) -> None:
        linked = set(self._files.names(target))
        for name in self._files.names(source):
            if name not in linked and _belongs(name):
                self._files.link(os.path.join(source, name), os.path.join(target, name))
        if key not in self._cuts:  # it has not grown so far
            self._note_end(key, target)

    def _note_end(self, key: Key, target: str) -> None:
        segments = [
            Cut(offset, size)
            for name, size in self._files.sizes(target).items()
            if (offset := names.offset_of(name, names.LOG)) is not None
        ]
        if segments:
            self._cuts.setdefault(key, max(segments))

    def _describe(self) -> None:
        points, starts = self._contents[names.RECOVERY_POINTS], self._contents[names.LOG_STARTS]
        for key, cut in self._cuts.items():
            points[key] = max(min(points.get(key, 0), cut.base_offset), starts.get(key, 0))
        for name, offsets in self._contents.items():
            content = checkpoints.encoded(name, offsets)
            self._files.write_bytes(os.path.join(self.path, name), content, sync=False)
        document = {
            "format": FORMAT,
            "time_ms": self._now_ms,
            "ends": {names.partition_directory(*key): cut for key, cut in self._cuts.items()},
        }
        path = os.path.join(self.path, names.IMAGE)
        self._files.write_bytes(path, json.dumps(document).encode(), sync=False)


def remove_image(files: Files, path: str) -> None:
    """An image, or the directory of all of them."""
    if not files.exists(path):
        return
    for name in files.directories(path):
        remove_image(files, os.path.join(path, name))
    files.remove_tree(path)


def _belongs(name: str) -> bool:
    return name in (names.LEADER_EPOCHS, names.PARTITION_METADATA) or base_of(name) is not None


def base_of(name: str) -> int | None:
    """The offset in the name of a segment's file, or a snapshot's."""
    for suffix in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT):
        offset = names.offset_of(name, suffix)
        if offset is not None:
            return offset
    return None
