"""The package builds, and installs into an environment that has nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server_process import eventually

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

# Nothing of the environment that runs the tests.
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "VIRTUAL_ENV", "KBROKER_"))
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is made of it."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of an empty environment into which the wheel was installed."""
    environment = tmp_path_factory.mktemp("installed")
    venv.create(environment, with_pip=False)
    (wheel,) = built.glob("*.whl")
    python = environment / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-compile",
            str(wheel),
        ],
        check=True,
        timeout=280,
    )
    return environment / "bin"


@pytest.fixture
def served(installed: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a broker that the installed command serves."""
    process = subprocess.Popen(
        [installed / "kbroker", "serve", "--port", "0"],
        cwd=tmp_path,
        env=CLEAN,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield line.split("listening on ")[1].split(",")[0]
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"kbroker"}
    for needed in (
        "protocol/codec.py",
        "protocol/messages/produce.py",
        "storage/partition/log.py",
        "py.typed",
        "testing/plugin.py",
        "grpc/kbroker.proto",
        "docs/configuration.md",
        "docs/pipeline.md",
        "docs/quickstart.md",
    ):
        assert f"kbroker/{needed}" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert {name[-3:] for name in names if name.startswith("kbroker/docs/")} == {".md"}


def test_the_installed_command_has_the_documentation(installed: Path, tmp_path: Path) -> None:
    shown = subprocess.run(
        [installed / "kbroker", "docs", "configuration"],
        cwd=tmp_path,
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shown.stdout == (ROOT / "docs" / "configuration.md").read_text()


def test_the_sdist_holds_what_the_wheel_is_made_of(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "kbroker/__init__.py",
        "kbroker/protocol/codec.py",
    } <= names


def test_the_installed_command_serves_and_talks(installed: Path, served: str) -> None:
    def kbroker(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [installed / "kbroker", *arguments, "-b", served],
            input=stdin,
            capture_output=True,
            text=True,
            env=CLEAN,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert kbroker("topic", "list") == ""
    kbroker("topic", "create", "greetings")
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        kbroker("produce", "greetings", "-z", codec, stdin=f"hello {codec}\n")
    assert kbroker("consume", "greetings").split() == [word for codec in codecs for word in ("hello", codec)]
    assert kbroker("topic", "list").split() == ["TOPIC", "PARTITIONS", "REPLICAS", "greetings", "1", "1"]


def test_the_fixtures_of_the_installed_package_need_nothing_but_pytest(
    installed: Path, tmp_path: Path
) -> None:
    script = (
        "from kbroker.testing import KafkaBroker\n"
        "with KafkaBroker(['t']) as broker:\n"
        "    print(broker.records('t'))"
    )
    done = subprocess.run(
        [installed / "python", "-c", script],
        cwd=tmp_path,
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "[]\n", done.stderr


def test_the_installed_requirements_fit_each_other(installed: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(installed / "python"), "check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_broker_that_starts_is_waited_for(installed: Path, served: str) -> None:
    ping = [installed / "kbroker", "ping", "--quiet", "-b", served]
    eventually(lambda: subprocess.run(ping, env=CLEAN, timeout=60, check=False).returncode == 0)
