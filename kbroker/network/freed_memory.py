"""What becomes of memory that the process has freed: it is kept for the next answer, and given back later.

Left alone, glibc gives the end of its heap back whenever more than some megabytes are free there. Whether
that happens with every answer depends on what happens to lie where; if it does, every page of the next one is
faulted in anew, which costs more than reading and sending it (adr/0018). So it is told to keep what is freed,
and asked from time to time to give it back.

These are settings of the whole process, for one that is a broker and nothing else. Without glibc nothing is
done.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from typing import Final

GIVE_BACK_SECONDS = 3
_PAUSE_PER_SECOND = 1000  # nobody is served while memory is given back: at most a thousandth of the time

# Of malloc.h.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

_VARIABLES: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")

_KEPT_BYTES = 64 * 1024 * 1024  # more than this is given back at once
_LARGEST_KEPT_BYTES = 32 * 1024 * 1024  # of a single block; glibc takes no more
_WORTH_PAGES = 256
_WORTH_BYTES = 1024 * 1024


class _MallInfo(ctypes.Structure):
    """struct mallinfo2"""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks")),
        *((name, ctypes.c_size_t) for name in ("fsmblks", "uordblks", "fordblks", "keepcost")),
    )


class FreedMemory:
    def __init__(self) -> None:
        self._libc = _glibc()
        self._faults = 0
        self._left_free = 0
        self.pause_seconds: float = GIVE_BACK_SECONDS  # until it should be asked again

    def keep(self) -> None:
        """Before threads are started. Who has set glibc up otherwise, by its variables, keeps that."""
        if self._libc is None or _set_up_by_others():
            self._libc = None
            return
        self._libc.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        self._libc.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        # A thread's own heap would never be given back whole.
        self._libc.mallopt(_ARENA_MAX, 1)

    @property
    def is_worth_it(self) -> bool:
        """Whether pages have come, or were freed, since the last time that memory was given back."""
        if self._libc is None:
            return False
        return _faults() - self._faults >= _WORTH_PAGES or self._free() - self._left_free >= _WORTH_BYTES

    def _free(self) -> int:
        """How many bytes of the heap are free; 0 where glibc is too old to tell."""
        if self._libc is None or not hasattr(self._libc, "mallinfo2"):
            return 0
        self._libc.mallinfo2.restype = _MallInfo
        return int(self._libc.mallinfo2().fordblks)

    def give_back(self) -> None:
        begin = time.thread_time()
        if self._libc is not None:
            self._libc.malloc_trim(0)
        self._faults = _faults()
        self._left_free = self._free()
        self.pause_seconds = pause_after(time.thread_time() - begin)


def pause_after(seconds: float) -> float:
    """It takes long where there are tens of thousands of free blocks among others, and so it does again."""
    return max(GIVE_BACK_SECONDS, seconds * _PAUSE_PER_SECOND)


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _glibc() -> ctypes.CDLL | None:
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  # others that have these functions do other things with them
    except (OSError, AttributeError, TypeError):
        return None
    return libc


def _set_up_by_others() -> bool:
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return "glibc.malloc." in tunables or any(name in os.environ for name in _VARIABLES)
