"""Consoles in the docs: commands behind a `$`, and what they print.

`…` stands for anything; spaces do not count.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple, Self

_END = "----- the command has ended:"


class Shown(NamedTuple):
    command: str
    output: str


def consoles(text: str) -> list[Shown]:
    """All commands of a page, in their order."""
    shown: list[Shown] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = each.splitlines()
            length = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\"))
            shown.append(Shown("\n".join(lines[:length]), "\n".join(lines[length:])))
    return shown


class Shell:
    """One shell, in which commands follow each other."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self._process = subprocess.Popen(
            ["bash"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho; echo '{_END}'\n")
        self._process.stdin.flush()
        said = ""
        while _END not in said:
            line = self._process.stdout.readline()
            assert line, f"the shell has ended: {said}"
            said += line
        return said.partition(_END)[0].strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.terminate()
        self._process.wait(30)


def as_shown(said: str, shown: str) -> bool:
    wanted = ".*".join(re.escape(re.sub(r"\s", "", part)) for part in shown.split("…"))
    return re.fullmatch(wanted, re.sub(r"\s", "", said), re.DOTALL) is not None
