"""File systems that fail: at one chosen operation, or by losing what was not synced."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kbroker.storage.files import Files, OpenFile
from kbroker.storage.interface import Buffer
from kbroker.storage.names import LOCK

T = TypeVar("T")


class Crash(BaseException):
    """The process was killed here."""


class QuickFiles(Files):
    """Files whose syncs cost nothing: whatever kills a test's broker, the operating system lives on."""

    def sync(self, file: OpenFile) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass

    def sync_file_system(self, directory: OpenFile) -> None:
        pass


class FaultyFiles(QuickFiles):
    """Counts what changes the disk, and lets one such operation go wrong.

    `fault`: "error" (EIO, nothing was done), "full" (ENOSPC, a write was cut short), "torn" (half of a write,
    then killed), "crash" (killed before it).
    """

    def __init__(self, target: int = -1, fault: str = "") -> None:
        super().__init__()
        self.target = target
        self.fault = fault
        self.operations: list[str] = []
        self.dead = False
        self.locks: list[OpenFile] = []

    def lock(self, path: str) -> OpenFile:
        file = super().lock(path)
        self.locks.append(file)
        return file

    def abandon(self) -> None:
        """The process is gone, and with it its locks."""
        for file in self.locks:
            file.close()

    def _do(
        self, name: str, path: str, action: Callable[[], T], torn: Callable[[], object] | None = None
    ) -> T:
        if self.dead:
            raise Crash
        number = len(self.operations)
        self.operations.append(f"{name} {os.path.basename(path)}")
        if number != self.target:
            return action()
        if self.fault in ("crash", "torn"):
            self.dead = True
            if self.fault == "torn" and torn is not None:
                torn()
            raise Crash
        if self.fault == "full":
            if torn is not None:
                torn()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
        return self._do("open", path, lambda: super(FaultyFiles, self).open(path, write=write, create=create))

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        half = memoryview(data)[: len(data) // 2]
        return self._do(
            "write",
            "",
            lambda: super(FaultyFiles, self).write_at(file, data, position),
            lambda: super(FaultyFiles, self).write_at(file, half, position) if half else None,
        )

    def write_many_at(self, file: OpenFile, parts: Sequence[Buffer], position: int) -> int:
        return self.write_at(file, b"".join(parts), position)

    def truncate(self, file: OpenFile, size: int) -> None:
        self._do("truncate", "", lambda: super(FaultyFiles, self).truncate(file, size))

    def sync(self, file: OpenFile) -> None:
        self._do("sync", "", lambda: super(FaultyFiles, self).sync(file))

    def sync_directory(self, path: str) -> None:
        self._do("sync_directory", path, lambda: super(FaultyFiles, self).sync_directory(path))

    def sync_file_system(self, directory: OpenFile) -> None:
        self._do("sync_file_system", "", lambda: super(FaultyFiles, self).sync_file_system(directory))

    def rename(self, source: str, target: str) -> None:
        self._do("rename", source, lambda: super(FaultyFiles, self).rename(source, target))

    def unlink(self, path: str) -> None:
        self._do("unlink", path, lambda: super(FaultyFiles, self).unlink(path))

    def make_directory(self, path: str) -> None:
        self._do("make_directory", path, lambda: super(FaultyFiles, self).make_directory(path))

    def remove_directory(self, path: str) -> None:
        self._do("remove_directory", path, lambda: super(FaultyFiles, self).remove_directory(path))


class TrackedFile(OpenFile):
    __slots__ = ("inode",)

    def __init__(self, fd: int, inode: Inode) -> None:
        super().__init__(fd)
        self.inode = inode


@dataclass
class Inode:
    synced: bytes = b""
    changes: list[tuple[int, bytes] | int] = field(default_factory=list)  # a write, or a new size

    def after_power_loss(self, chance: random.Random) -> bytes:
        """The synced contents with some of the later changes, each whole, torn or missing."""
        data = bytearray(self.synced)
        for change in self.changes:
            if chance.random() < 0.4:
                continue
            if isinstance(change, int):
                data = data[:change].ljust(change, b"\0")
                continue
            position, written = change
            if chance.random() < 0.3:
                written = written[: chance.randrange(len(written) + 1)]
            if written:
                data = data.ljust(position, b"\0")
                data[position : position + len(written)] = written
        return bytes(data)


class VolatileFiles(Files):
    """Remembers what was synced, to say what a power loss leaves.

    File contents are safe after `sync` of the file, names after `sync_directory` (and with them all earlier
    changes of names, as in a journal), everything after `sync_file_system`. Of the rest any part may be lost:
    of the changes of names a beginning stays, of the writes any, whole or torn.
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = str(root)
        self._inodes: dict[str, Inode] = {}
        self._journal: list[tuple[str, str, str | Inode | None]] = []
        self._safe_names: dict[str, Inode | None] = {}  # None: a directory
        self.locks: list[OpenFile] = []

    def lock(self, path: str) -> OpenFile:
        file = super().lock(path)
        self.locks.append(file)
        return file

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
        fresh = create and not os.path.exists(path)
        file = super().open(path, write=write, create=create)
        if fresh:
            self._inodes[path] = Inode()
            self._journal.append(("create", path, self._inodes[path]))
        fd, file.fd = file.fd, -1
        return TrackedFile(fd, self._inodes[path])

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        assert isinstance(file, TrackedFile)
        file.inode.changes.append((position, bytes(data)))
        return super().write_at(file, data, position)

    def write_many_at(self, file: OpenFile, parts: Sequence[Buffer], position: int) -> int:
        return self.write_at(file, b"".join(parts), position)

    def truncate(self, file: OpenFile, size: int) -> None:
        assert isinstance(file, TrackedFile)
        file.inode.changes.append(size)
        super().truncate(file, size)

    def sync(self, file: OpenFile) -> None:
        assert isinstance(file, TrackedFile)
        self._settle(file.inode)

    def _settle(self, inode: Inode) -> None:
        data = bytearray(inode.synced)
        for change in inode.changes:
            if isinstance(change, int):
                data = data[:change].ljust(change, b"\0")
            else:
                position, written = change
                data = data.ljust(position, b"\0")
                data[position : position + len(written)] = written
        inode.synced, inode.changes = bytes(data), []

    def sync_directory(self, path: str) -> None:
        self._replay(self._journal)
        self._journal.clear()

    def sync_file_system(self, directory: OpenFile) -> None:
        self.sync_directory("")
        for inode in self._inodes.values():
            self._settle(inode)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self._journal.append(("rename", source, target))
        for path in [path for path in self._inodes if path == source or path.startswith(source + "/")]:
            self._inodes[target + path[len(source) :]] = self._inodes.pop(path)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._journal.append(("unlink", path, None))
        self._inodes.pop(path, None)

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        self._journal.append(("mkdir", path, None))

    def remove_directory(self, path: str) -> None:
        super().remove_directory(path)
        self._journal.append(("rmdir", path, None))

    def _replay(self, journal: list[tuple[str, str, str | Inode | None]]) -> None:
        names = self._safe_names
        for operation, path, extra in journal:
            if operation == "create":
                assert isinstance(extra, Inode)
                names[path] = extra
            elif operation == "mkdir":
                names[path] = None
            elif operation == "rename":
                assert isinstance(extra, str)
                for old in [old for old in names if old == path or old.startswith(path + "/")]:
                    names[extra + old[len(path) :]] = names.pop(old)
            else:
                names.pop(path, None)

    def adopt(self) -> None:
        """What is there already is safe."""
        for directory, names, files in os.walk(self._root):
            for name in names:
                self._safe_names[os.path.join(directory, name)] = None
            for name in files:
                if name == LOCK:
                    continue  # it says which life of the machine this is
                path = os.path.join(directory, name)
                inode = Inode(synced=Path(path).read_bytes())
                self._inodes[path] = self._safe_names[path] = inode

    def lose_power(self, target: Path, chance: random.Random) -> None:
        """Write to `target` what the disk holds when the machine comes back."""
        for file in self.locks:
            file.close()
        self._replay(self._journal[: chance.randrange(len(self._journal) + 1)])
        target.mkdir(parents=True)
        for path, inode in sorted(self._safe_names.items(), key=lambda item: item[0]):
            place = target / os.path.relpath(path, self._root)
            if inode is None:
                place.mkdir(exist_ok=True, parents=True)
            elif place.parent.exists():
                place.write_bytes(inode.after_power_loss(chance))
