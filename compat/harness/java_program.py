"""A Java program of our own that does what it is told line by line: each line gets one line back, `ok …` or
`error …`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import jars, java
from .kafka import LOG4J2


class JavaError(Exception):
    """The name of a Java exception, and what it says."""


class JavaProgram:
    def __init__(self, source: Path, *arguments: str) -> None:
        """Compiled, if it is not yet, and started. Its main class is named as its file."""
        classpath = jars.classpath("kafka")
        classes = java.compile_sources([source], source.stem, classpath)
        self._process = subprocess.Popen(
            java.command(
                source.stem,
                arguments,
                classpath=f"{classes}:{classpath}",
                properties={"log4j2.configurationFile": LOG4J2.as_uri()},
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def do(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        outcome, _, rest = self._process.stdout.readline().rstrip("\n").partition(" ")
        if outcome != "ok":
            raise JavaError(rest or "the JVM ended")
        return rest

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
