"""Jars of a Maven repository, pinned by a lock file with their digests, downloaded once per machine.

Invariant: a file in the cache has the digest that its lock names (checked before it is renamed into place,
trusted afterwards), so that several processes may share the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kbroker.pipeline.errors import JarUnavailable

DEFAULT_REPOSITORY = "https://repo1.maven.org/maven2"
ATTEMPTS = 3
DOWNLOADS_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def read_lock(path: Path) -> dict[str, tuple[Jar, ...]]:
    """Lines of `group:artifact:version sha256`, by the [section] they stand in ("" before the first)."""
    sections: dict[str, list[Jar]] = {}
    section = ""
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            coordinates, sha256 = line.split()
            group, artifact, version = coordinates.split(":")
            sections.setdefault(section, []).append(Jar(group, artifact, version, sha256))
    return {name: tuple(jars) for name, jars in sections.items()}


def cache_directory() -> Path:
    """KBROKER_CACHE, else the user's cache directory: what is downloaded or compiled once per machine."""
    configured = os.environ.get("KBROKER_CACHE")
    if configured:
        return Path(configured).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home).expanduser().absolute() / "kbroker"


def provide(jars: Iterable[Jar]) -> tuple[Path, ...]:
    """The paths of jars, downloaded where the cache lacks them, several at a time."""
    with ThreadPoolExecutor(DOWNLOADS_AT_A_TIME) as pool:
        return tuple(pool.map(_provide, jars))


def _provide(wanted: Jar) -> Path:
    target = cache_directory() / "jars" / wanted.file_name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as directory:
        part = Path(directory) / wanted.file_name
        if not _copy_from_local_repository(wanted, part):
            _download(wanted, part)
        part.replace(target)
    return target


def _copy_from_local_repository(wanted: Jar, part: Path) -> bool:
    """Take the jar from Maven's own repository where an earlier build left a good one."""
    local = Path.home() / ".m2" / "repository" / wanted.repository_path
    if not local.is_file():
        return False
    shutil.copyfile(local, part)
    return _sha256(part) == wanted.sha256


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
        digest = _sha256(part)
        if digest == wanted.sha256:
            return
        problem = f"its sha256 is {digest}, the lock says {wanted.sha256}"
    raise JarUnavailable(
        f"cannot download {url}: {problem}\n"
        "Once they are there, no network is needed. KBROKER_MAVEN_REPOSITORY names another Maven repository; "
        f"or put {wanted.file_name} into {cache_directory() / 'jars'}."
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
