"""The words that start this program again, in the shell and the directory where it was started."""

from __future__ import annotations

import os
import sys


def program() -> str:
    """``kbroker`` where the shell finds it under that name, else its path, or python -m.

    Within another program, whose name says nothing, it is ``kbroker`` too.
    """
    called = sys.argv[0]
    as_module = called.endswith(os.path.join("kbroker", "__main__.py"))
    if not as_module and os.path.basename(called) != "kbroker":
        return "kbroker"
    script = os.path.join(os.path.dirname(sys.executable), "kbroker") if as_module else called
    found = _on_path("kbroker")
    if found is not None and os.path.abspath(found) == os.path.abspath(script):
        return "kbroker"
    return f"{_short(sys.executable)} -m kbroker" if as_module else _short(called)


def as_started(text: str) -> str:
    """A text with the commands in it, which stand in quotes, as they can be typed here."""
    return text.replace("'kbroker ", f"'{program()} ")


def _on_path(name: str) -> str | None:
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def _short(path: str) -> str:
    """From the working directory, if the file is in or below it; quoted, if a shell needs that."""
    path = os.path.abspath(path)
    below = os.path.join(os.getcwd(), "")
    if path.startswith(below):
        path = path.removeprefix(below)
        path = path if os.sep in path else os.path.join(os.curdir, path)
    if all(letter.isalnum() or letter in "/._-+@" for letter in path):
        return path
    import shlex

    return shlex.quote(path)
