"""The jars that Spark needs for Kafka, Delta and Avro, pinned by jars.lock."""

from __future__ import annotations

from pathlib import Path

from kbroker.pipeline import maven

LOCK_FILE = Path(__file__).with_name("jars.lock")
SUBMIT_SCRIPT = Path(__file__).with_name("submit.py")


def locked() -> tuple[maven.Jar, ...]:
    """The lock file's jars."""
    return maven.read_lock(LOCK_FILE)[""]


def version(artifact: str) -> str:
    """The pinned version of an artifact, named without its Scala version."""
    for jar in locked():
        if jar.artifact.removesuffix("_2.13") == artifact:
            return jar.version
    raise LookupError(f"{artifact} is not pinned in {LOCK_FILE.name}")


def provide() -> tuple[Path, ...]:
    """The paths of all pinned jars, downloaded where the cache lacks them."""
    return maven.provide(locked())
