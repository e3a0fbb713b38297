"""The one module that touches the file system: every open, read, write, sync, rename, truncate and unlink.

Tests put a `Files` in its place that fails, tears or stops any single one of these. Errors are OSError, as
the kernel reports them; who calls decides what they mean.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from kbroker.storage.interface import Buffer

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
TEMPORARY_SUFFIX = ".tmp"
_READ_BYTES = 1 << 20


class OpenFile:
    """An open descriptor, closed when nobody refers to it any more: a reader that still holds it finishes."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class WouldBlock(Exception):
    """The bytes are not in the page cache: read them on a worker, then try again."""

    def __init__(self, file: OpenFile, size: int, position: int) -> None:
        super().__init__(size, position)
        self.file = file
        self.size = size
        self.position = position

    def load(self, files: Files) -> None:
        """What a worker does, so that the next try goes further."""
        files.load_pages(self.file, self.size, self.position)


class Files:
    """The real file system."""

    def __init__(self) -> None:
        # Whether a read may be tried without waiting for the disk; where it may not, every read counts as
        # cold, except on tmpfs, which never waits.
        self._nowait = hasattr(os, "RWF_NOWAIT")
        self._never_waits = False
        self._nowhere: OpenFile | None = None

    def probe(self, directory: str) -> None:
        """Learn how the file system of `directory` reads."""
        self._never_waits = file_system_type(directory) in ("tmpfs", "ramfs")

    # files

    def open_directory(self, path: str) -> OpenFile:
        return OpenFile(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
        flags = os.O_CLOEXEC | (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return OpenFile(os.open(path, flags, 0o644))

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        return os.pwrite(file.fd, data, position)

    def write_many_at(self, file: OpenFile, parts: Sequence[Buffer], position: int) -> int:
        """Several buffers, one behind the other."""
        return os.pwritev(file.fd, parts, position)

    def write_all(self, file: OpenFile, data: Buffer, position: int) -> None:
        view = memoryview(data)
        while view:
            written = self.write_at(file, view, position)
            view = view[written:]
            position += written

    def truncate(self, file: OpenFile, size: int) -> None:
        os.ftruncate(file.fd, size)

    def size(self, file: OpenFile) -> int:
        return os.fstat(file.fd).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def read_at(self, file: OpenFile, size: int, position: int) -> bytes:
        """Up to `size` bytes, waiting for the disk."""
        return os.pread(file.fd, size, position)

    def read_cached(self, file: OpenFile, size: int, position: int) -> Buffer:
        """Up to `size` bytes if the page cache has at least the first of them; else WouldBlock."""
        if self._never_waits:
            return os.pread(file.fd, size, position)
        if not self._nowait:
            raise WouldBlock(file, size, position)
        buffer = _unfilled(None, size)
        try:
            count = os.preadv(file.fd, (buffer,), position, os.RWF_NOWAIT)
        except BlockingIOError:
            raise WouldBlock(file, size, position) from None
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self._nowait = False
            raise WouldBlock(file, size, position) from None
        return buffer if count == size else memoryview(buffer)[:count]

    def load_pages(self, file: OpenFile, size: int, position: int) -> None:
        """Wait until the page cache has these bytes; the kernel then fetches those behind them, too."""
        end = position + size
        nowhere = self._nowhere
        if nowhere is None:
            nowhere = self._nowhere = OpenFile(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
        # Nobody looks at the bytes on their way: the first look is what a read from the disk costs most.
        while position < end and (sent := os.sendfile(nowhere.fd, file.fd, position, end - position)):
            position += sent

    def send(self, descriptor: int, file: OpenFile, size: int, position: int) -> int:
        """Have the kernel send up to `size` bytes to a socket that does not block; returns how many."""
        return os.sendfile(descriptor, file.fd, position, size)

    @property
    def answers_from_cache(self) -> bool:
        """False: it is never known whether a read would wait, so that a warmed one must be waited for."""
        return self._nowait or self._never_waits

    # durability

    def sync(self, file: OpenFile) -> None:
        os.fdatasync(file.fd)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_file_system(self, directory: OpenFile) -> None:
        """Everything on the file system of an open directory, in one call."""
        _syncfs(directory.fd)

    def lock(self, path: str) -> OpenFile:
        """Hold the lock file of a directory, against other processes (a Kafka among them) and in this one."""
        file = OpenFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file

    def lock_note(self, lock: OpenFile) -> str:
        """What the last holder of a lock left in its file."""
        return os.pread(lock.fd, 256, 0).decode(errors="replace")

    def leave_lock_note(self, lock: OpenFile, note: str) -> None:
        os.ftruncate(lock.fd, 0)
        os.pwrite(lock.fd, note.encode(), 0)

    def boot_id(self) -> str:
        """The same until the machine goes down; empty where it cannot be told."""
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""

    def lock_holder(self, path: str) -> int | None:
        """The process that holds a lock file, where the kernel tells."""
        try:
            status = os.stat(path)
            with open("/proc/locks", encoding="ascii") as file:
                locks = [line.split() for line in file]
        except OSError:
            return None
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
        for lock in locks:  # 4: FLOCK ADVISORY WRITE 9238 fe:00:10305568 0 EOF
            if len(lock) > 5 and lock[5] == f"{device}:{status.st_ino}" and lock[4].isdecimal():
                return int(lock[4]) or None
        return None

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume."""
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    # names

    def names(self, path: str) -> list[str]:
        return os.listdir(path)

    def sizes(self, path: str) -> dict[str, int]:
        """The files of a directory and their sizes."""
        with os.scandir(path) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def directories(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def link(self, source: str, target: str) -> None:
        """A second name for a file."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.mkdir(path, 0o755)

    def make_directories(self, path: str) -> None:
        """With all above it; none of them need to be missing."""
        if not self.exists(path):
            self.make_directories(os.path.dirname(path))
            self.make_directory(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    # made of the above

    def read_bytes(self, path: str) -> bytes:
        file = self.open(path)
        try:
            data = self.read_at(file, _READ_BYTES, 0)
            if len(data) < _READ_BYTES:
                return data
            parts = [data]
            while data := self.read_at(file, _READ_BYTES, len(parts) * _READ_BYTES):
                parts.append(data)
        finally:
            file.close()
        return b"".join(parts)

    def write_bytes(self, path: str, data: Buffer, *, sync: bool) -> None:
        """Write a whole new file."""
        file = self.open(path, write=True, create=True)
        try:
            self.truncate(file, 0)
            self.write_all(file, data, 0)
            if sync:
                self.sync(file)
        finally:
            file.close()

    def replace_bytes(self, path: str, data: Buffer) -> None:
        """Replace a file's contents: afterwards, also after a power loss, it has the old or the new ones."""
        temporary = path + TEMPORARY_SUFFIX
        try:
            self.write_bytes(temporary, data, sync=True)
        except OSError:
            with contextlib.suppress(OSError):
                self.unlink_if_exists(temporary)  # a part of it takes room that may be needed
            raise
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def unlink_if_exists(self, path: str) -> bool:
        try:
            self.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def remove_tree(self, path: str) -> None:
        """A directory and the files in it."""
        for name in self.names(path):
            self.unlink_if_exists(os.path.join(path, name))
        self.remove_directory(path)

    def sync_all(self, files: Iterable[OpenFile], directories: Iterable[str]) -> None:
        for file in files:
            self.sync(file)
        for directory in directories:
            self.sync_directory(directory)


def file_system_type(path: str) -> str:
    """Its name, such as ext4; empty where it cannot be told."""
    try:
        device = os.stat(path).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                mount, _, filesystem = line.partition(" - ")
                if mount.split(" ", 3)[2] == number:
                    return filesystem.split(" ", 1)[0]
    except OSError:
        pass
    return ""


def _buffers_without_zeros() -> Callable[[None, int], bytearray]:
    """Python fills a new bytearray with zeros: a tenth and more of what it costs to read and send it."""
    make = ctypes.pythonapi.PyByteArray_FromStringAndSize
    make.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)
    make.restype = ctypes.py_object
    return make


_unfilled = _buffers_without_zeros()


def _syncfs(fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(fd) != 0:
        _raise(ctypes.get_errno())


def _raise(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))
