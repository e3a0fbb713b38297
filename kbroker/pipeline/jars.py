"""The jars that Spark needs for Kafka, Delta and Avro, pinned by jars.lock, downloaded once per machine.

Invariant: a file in the cache has the digest that the lock names (checked before it is renamed into place,
trusted afterwards), so that several processes may share the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kbroker.pipeline.errors import JarUnavailable

LOCK_FILE = Path(__file__).with_name("jars.lock")
SUBMIT_SCRIPT = Path(__file__).with_name("submit.py")
DEFAULT_REPOSITORY = "https://repo1.maven.org/maven2"
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def locked() -> tuple[Jar, ...]:
    """The lock file's jars."""
    lines = (line.strip() for line in LOCK_FILE.read_text().splitlines())
    entries = (line.split() for line in lines if line and not line.startswith("#"))
    pinned = ((*coordinates.split(":"), sha256) for coordinates, sha256 in entries)
    return tuple(Jar(group, artifact, version, sha256) for group, artifact, version, sha256 in pinned)


def version(artifact: str) -> str:
    """The pinned version of an artifact, with or without its Scala suffix."""
    for jar in locked():
        if jar.artifact.removesuffix("_2.13") == artifact:
            return jar.version
    raise LookupError(f"{artifact} is not pinned in {LOCK_FILE.name}")


def cache_directory() -> Path:
    """KBROKER_CACHE, else the user's cache directory."""
    configured = os.environ.get("KBROKER_CACHE")
    if configured:
        return Path(configured).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home).expanduser().absolute() / "kbroker"


def provide() -> tuple[Path, ...]:
    """The paths of all pinned jars, downloaded where the cache lacks them."""
    jars = locked()
    with ThreadPoolExecutor(len(jars)) as pool:
        return tuple(pool.map(_provide, jars))


def _provide(wanted: Jar) -> Path:
    target = cache_directory() / "jars" / wanted.file_name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as directory:
        part = Path(directory) / wanted.file_name
        _download(wanted, part)
        part.replace(target)
    return target


def _download(wanted: Jar, part: Path) -> None:
    repository = os.environ.get("KBROKER_MAVEN_REPOSITORY", DEFAULT_REPOSITORY).rstrip("/")
    url = f"{repository}/{wanted.repository_path}"
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(url, timeout=60) as response, part.open("wb") as file:
                shutil.copyfileobj(response, file, 1 << 20)
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            problem = str(error)
            continue
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest == wanted.sha256:
            return
        problem = f"its sha256 is {digest}, the lock says {wanted.sha256}"
    raise JarUnavailable(
        f"cannot download {url}: {problem}\n"
        "Once they are there, no network is needed. KBROKER_MAVEN_REPOSITORY names another Maven repository; "
        f"or put {wanted.file_name} into {cache_directory() / 'jars'}."
    )
