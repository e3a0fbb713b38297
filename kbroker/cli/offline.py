"""What commands need that work on a data directory without a broker: the lock, and a bar for long work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kbroker.exit_codes import CommandFailed


@contextmanager
def locked(directory: str, *, create: bool = False) -> Iterator[None]:
    """Hold a data directory's lock; ``create``: also where there is no lock file yet."""
    from kbroker.storage import names
    from kbroker.storage.files import Files

    path = os.path.join(directory, names.LOCK)
    if not create and not os.path.exists(path):
        yield
        return
    try:
        lock = Files().lock(path)
    except BlockingIOError:
        holder = Files().lock_holder(path)
        who = "" if holder is None else f" (process {holder})"
        raise CommandFailed(f"{directory} is in use by a running broker{who}: stop it first") from None
    try:
        yield
    finally:
        lock.close()


def was_kbrokers(directory: str) -> bool:
    """Whether a kbroker, and no Kafka, used a directory last: it leaves a note in the lock's file."""
    from kbroker.storage import names

    path = os.path.join(directory, names.LOCK)
    return os.path.exists(path) and os.path.getsize(path) > 0


@contextmanager
def progress(text: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar in a terminal; call the result with each number of bytes that is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=total_bytes)
        yield lambda count: bar.advance(task, count)


def log_bytes(directory: str) -> int:
    """The size of a partition's logs."""
    with os.scandir(directory) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.name.endswith(".log"))
