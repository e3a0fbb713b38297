"""The live view of `kbroker top`: looks in one thread, keys and drawing in another."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from kbroker.cli.top import looking
from kbroker.cli.top_rates import measured
from kbroker.cli.top_screen import Screen

_GLANCE = 0.25
"""Seconds after which the size of the terminal is looked at."""


class Looks(threading.Thread):
    """Looks again and again. What it finds is fetched by `new`, for which `ready` is readable."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(name="looks", daemon=True)
        self.ready, self._tell = os.pipe()
        self._arguments = arguments
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._document: dict[str, Any] | None = None
        self._error: BaseException | None = None
        self._stopped = False

    def run(self) -> None:
        while not self._stopped:
            try:
                self._look_until_it_fails()
            except Exception as error:
                self._put(None, error)
                self._pause()

    def _look_until_it_fails(self) -> None:
        with looking(self._arguments) as look:
            before = look()
            while not self._stopped:
                self._pause()
                after = look()
                self._put(measured(before, after), None)
                before = after

    def _pause(self) -> None:
        if not self._stopped:
            self._wake.wait(self._arguments.interval / 1000)
            self._wake.clear()

    def _put(self, document: dict[str, Any] | None, error: BaseException | None) -> None:
        with self._lock:
            self._document, self._error = document, error
        if not self._stopped:
            os.write(self._tell, b"\0")

    def new(self) -> tuple[dict[str, Any] | None, BaseException | None]:
        os.read(self.ready, 4096)
        with self._lock:
            return self._document, self._error

    def hurry(self) -> None:
        """The interval has changed."""
        self._wake.set()

    def stop(self) -> None:
        """It may be waiting for an answer: it ends when it has it, or with the process."""
        self._stopped = True
        self._wake.set()


def watch(arguments: argparse.Namespace) -> None:
    """Until q or Ctrl-C. Raises what kept the first look from being one."""
    from rich.console import Console
    from rich.live import Live

    screen = Screen(arguments)
    looks = Looks(arguments)
    console = Console()
    first = True
    with _signals() as stops, _Keys() as keys, Live(console=console, auto_refresh=False, screen=True) as live:
        looks.start()
        try:
            while True:
                if stops:
                    stops.clear()
                    live.stop()
                    with keys.given_back():
                        os.kill(os.getpid(), signal.SIGSTOP)
                    live.start()
                live.update(screen.drawn(console.width, console.height), refresh=True)
                size = console.size
                found: list[int] = []
                while not found and not stops and console.size == size:
                    found, _, _ = select.select([looks.ready, *keys.descriptors], [], [], _GLANCE)
                if looks.ready in found:
                    document, error = looks.new()
                    if error is not None and first:
                        raise error
                    first = False
                    screen.show(document, error)
                if set(keys.descriptors) & set(found):
                    pressed = keys.pressed()
                    if not pressed or screen.press(pressed):
                        return
                    if screen.interval_ms != arguments.interval:
                        arguments.interval = screen.interval_ms
                        looks.hurry()
        finally:
            looks.stop()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Where a wish to be stopped (Ctrl-Z) is noted. To be ended is to go the same way out as otherwise."""
    stops: list[int] = []
    before = {
        signal.SIGTSTP: signal.signal(signal.SIGTSTP, lambda number, frame: stops.append(number)),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number)),
    }
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Keys:
    """Where keys come from, one by one and unseen; nowhere if the input is not the terminal."""

    def __init__(self) -> None:
        self.descriptors = [sys.stdin.fileno()] if sys.stdin.isatty() else []
        self._before: list[Any] = []

    def pressed(self) -> str:
        return os.read(self.descriptors[0], 64).decode(errors="replace")

    def __enter__(self) -> Self:
        for descriptor in self.descriptors:
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self.descriptors:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, self._before)

    @contextmanager
    def given_back(self) -> Iterator[None]:
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()
