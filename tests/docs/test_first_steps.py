"""A fresh clone, and every command that a newcomer is shown, typed as it is shown, where it is shown."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.docs.test_readme import blocks

ROOT = Path(__file__).parents[2]
ADDRESS = "127.0.0.1:9092"
pytestmark = pytest.mark.slow

# A newcomer's shell: nothing of the environment that runs the tests.
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "VIRTUAL_ENV", "KBROKER_", "MAKE", "MFLAGS"))
}
CLEAN["PIP_NO_COMPILE"] = "1"  # half of what is installed is never run here
CLEAN["PATH"] = os.pathsep.join(
    directory for directory in os.environ["PATH"].split(os.pathsep) if not Path(directory, "kbroker").exists()
)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clone holds, with `make install` done."""
    directory = tmp_path_factory.mktemp("first") / "clone"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("this is no clone")
    for name in filter(None, listed.stdout.split("\0")):
        if os.path.lexists(ROOT / name):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name, follow_symlinks=False)
    subprocess.run(["make", "--silent", "install"], cwd=directory, env=CLEAN, check=True, timeout=280)
    return directory


class Shown:
    """`make run`, on a free port, and what it shows."""

    def __init__(self, clone: Path, data: Path, *, terminal: bool) -> None:
        ours, its = pty.openpty() if terminal else os.pipe()
        self._process = subprocess.Popen(
            ["make", "--silent", "run", f"DATA={data}"],
            cwd=clone,
            stdout=its,
            stderr=subprocess.DEVNULL,
            env={**CLEAN, "KBROKER_LISTENERS": "PLAINTEXT://127.0.0.1:0", "NO_COLOR": "1", "TERM": "xterm"},
        )
        os.close(its)
        end = b"Ctrl-C stops it" if terminal else b"\n"
        shown = b""
        with suppress(OSError):  # it has ended
            while end not in shown and (part := os.read(ours, 4096)):
                shown += part
        self._ours = ours
        self.text = shown.decode()
        found = re.search(r"listening on (\S+:\d+)", self.text)
        assert found is not None, self.text
        self.address = found[1]

    def close(self) -> None:
        os.close(self._ours)
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture(params=["in a terminal", "in a pipe"])
def shown(clone: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shown]:
    shown = Shown(clone, tmp_path / "data", terminal=request.param == "in a terminal")
    yield shown
    shown.close()


def shell(script: str, directory: Path, until: str = "") -> str:
    """Run it as it is typed; with ``until``, only until that text is in its output."""
    process = subprocess.Popen(
        ["bash", "-ec", script],
        cwd=directory,
        env=CLEAN,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        said = ""
        if until:
            while until not in said and (line := process.stdout.readline()):
                said += line
            os.killpg(process.pid, 15)  # the shell and its commands, which are a session of their own
            process.wait(30)
        else:
            said, problem = process.communicate(timeout=120)
            assert process.returncode == 0, said + problem
    return said


def test_what_the_broker_says_to_try_next_works(clone: Path, shown: Shown) -> None:
    tried = re.findall(r"^  (.*?)   +\S.*$|Try it: (.*)$", shown.text.replace("\r", ""), re.MULTILINE)
    commands = [one or other for one, other in tried]
    assert len(commands) == (3 if "Ctrl-C" in shown.text else 1)
    for command in commands:
        if "--follow" in command:
            assert shell(command, clone, until="hello") == "hello\n"
        else:
            shell(command, clone)


def test_a_hint_in_an_error_works(clone: Path, shown: Shown) -> None:
    failing = f".venv/bin/kbroker topic describe none -b {shown.address}"
    done = subprocess.run(
        ["bash", "-c", failing], cwd=clone, env=CLEAN, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    hint = re.search(r"'([^']*kbroker topic list)'", done.stderr)
    assert hint is not None, done.stderr
    shell(f"{hint[1]} -b {shown.address}", clone)


def test_the_readmes_first_commands_and_snippet_work_in_its_order(clone: Path, tmp_path: Path) -> None:
    shown = Shown(clone, tmp_path / "data", terminal=False)
    try:
        (first,) = [block for block in blocks("sh") if "activate" in block]
        (snippet,) = blocks("python")
        (tmp_path / "snippet.py").write_text(snippet.replace(ADDRESS, shown.address))
        script = f"export KBROKER_BOOTSTRAP={shown.address}\n{first}\npython {tmp_path}/snippet.py\n"
        assert shell(script, clone).endswith("hello\nb'hello'\n")
    finally:
        shown.close()


def test_the_quickstarts_first_commands_work(clone: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text()
    first = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0]
    *installing, serve = first.strip().splitlines()
    assert serve == "kbroker serve"
    copy = shutil.copytree(clone, tmp_path / "clone", symlinks=True, ignore=shutil.ignore_patterns(".venv"))
    script = "\n".join([*installing, f"{serve} --port 0"])
    assert "Try it: kbroker topic list" in shell(script, copy, until="listening on")
