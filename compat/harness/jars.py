"""The jars that compat/ runs, pinned by jars.lock; kbroker.pipeline.maven gets and caches them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from kbroker.pipeline import maven

LOCK_FILE = Path(__file__).with_name("jars.lock")


@cache
def locked() -> dict[str, tuple[maven.Jar, ...]]:
    """The lock file: class path name -> its jars."""
    return maven.read_lock(LOCK_FILE)


def jar(artifact: str, version: str) -> Path:
    """The path of one pinned jar, downloaded if need be."""
    for jars in locked().values():
        for candidate in jars:
            if (candidate.artifact, candidate.version) == (artifact, version):
                return maven.provide([candidate])[0]
    raise LookupError(f"{artifact} {version} is not pinned in {LOCK_FILE.name}")


@cache
def paths(name: str) -> tuple[Path, ...]:
    """All jars of one section of the lock, downloaded if need be."""
    return maven.provide(locked()[name])


def classpath(name: str) -> str:
    return os.pathsep.join(str(path) for path in paths(name))


def main() -> None:
    """Download everything that is pinned: `python -m compat.harness.jars`."""
    for name in locked():
        print(f"{name}: {len(paths(name))} jars in {maven.cache_directory() / 'jars'}")


if __name__ == "__main__":
    main()
