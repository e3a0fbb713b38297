"""The jars that compat/ runs, from Maven Central, pinned by jars.lock.

Invariant: a file in the cache has the digest that the lock names (verified before it is renamed into place,
trusted afterwards), so parallel runs may share one cache.
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
from functools import cache
from pathlib import Path

LOCK_FILE = Path(__file__).with_name("jars.lock")
DEFAULT_REPOSITORY = "https://repo1.maven.org/maven2"
DOWNLOADS_AT_A_TIME = 8
ATTEMPTS = 3


class JarUnavailable(RuntimeError):
    """A pinned jar is neither cached nor downloadable."""


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


@cache
def locked() -> dict[str, tuple[Jar, ...]]:
    """The lock file: class path name -> its jars."""
    sections: dict[str, list[Jar]] = {}
    for line in LOCK_FILE.read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), [])
            continue
        coordinates, sha256 = line.split()
        group, artifact, version = coordinates.split(":")
        current.append(Jar(group, artifact, version, sha256))
    return {name: tuple(jars) for name, jars in sections.items()}


def cache_directory() -> Path:
    """KBROKER_CACHE, else the user's cache directory: what compat/ downloads or compiles once per machine."""
    configured = os.environ.get("KBROKER_CACHE")
    if configured:
        return Path(configured).expanduser().absolute()
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser().absolute() / "kbroker"
    )


def jar(artifact: str, version: str) -> Path:
    """The path of one pinned jar, downloaded if need be."""
    for jars in locked().values():
        for candidate in jars:
            if (candidate.artifact, candidate.version) == (artifact, version):
                return _provide(candidate)
    raise LookupError(f"{artifact} {version} is not pinned in {LOCK_FILE.name}")


@cache
def paths(name: str) -> tuple[Path, ...]:
    """All jars of one section of the lock, downloaded if need be, several at a time."""
    with ThreadPoolExecutor(DOWNLOADS_AT_A_TIME) as pool:
        return tuple(pool.map(_provide, locked()[name]))


def classpath(name: str) -> str:
    return os.pathsep.join(str(path) for path in paths(name))


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
    problem = "never tried"
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
        f"cannot get {url}: {problem}\n"
        "(KBROKER_MAVEN_REPOSITORY names another Maven repository, KBROKER_CACHE a directory that has jars/)"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Download everything that is pinned: `python -m compat.harness.jars`."""
    for name in locked():
        print(f"{name}: {len(paths(name))} jars in {cache_directory() / 'jars'}")


if __name__ == "__main__":
    main()
