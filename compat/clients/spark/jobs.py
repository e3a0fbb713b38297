"""Declared pipelines: in this process with the shared Spark session, or as a process of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat.harness.brokers import Server
from kbroker.pipeline import reading, runner
from kbroker.pipeline.session import SHORT_LIVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kbroker.pipeline.progress import Progress
    from kbroker.pipeline.spec import Pipeline


class Job:
    """A declared pipeline in a directory of its own, run by the shared session."""

    def __init__(self, spark: SparkSession, server: Server, directory: Path) -> None:
        self.spark = spark
        self.server = server
        self.directory = directory
        self.file = directory / "pipeline.yml"

    def declare(self, text: str, trigger: str = "available_now") -> Pipeline:
        head = f"name: job\nbootstrap_servers: {self.server.bootstrap}\nstate: ./state\n"
        self.file.write_text(f"{head}trigger: {trigger}\n{text}")
        return reading.load(self.file)

    def run(self, text: str) -> dict[str, Progress]:
        pipeline = self.declare(text)
        return {each.query: each for each in runner.Runner(pipeline, self.spark).run(pause_seconds=0.05)}

    def start(self, text: str, trigger: str = "100 milliseconds") -> Background:
        return Background(runner.Runner(self.declare(text, trigger), self.spark))

    def rows(self, table: str, *columns: str, format: str = "delta") -> list[tuple[Any, ...]]:
        """Empty while there is no table."""
        if format == "delta" and not list((self.directory / table).glob("_delta_log/*.json")):
            return []
        frame = self.spark.read.format(format).load(str(self.directory / table))
        return sorted(tuple(row) for row in frame.select(*columns).collect())


class Background:
    """A runner in a thread; `stop` returns when it has ended, and raises what it raised."""

    def __init__(self, job: runner.Runner) -> None:
        self._job = job
        self.progress: list[Progress] = []
        """What each query has done so far; empty at first."""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._job.run(self._look, pause_seconds=0.05)
        except BaseException as error:
            self._error = error

    def _look(self, progress: list[Progress]) -> None:
        self.progress = progress

    def stop(self) -> None:
        self._job.stop()
        self._thread.join(120)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error


def pipeline_command(
    *arguments: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`kbroker pipeline …` to its end, which is a good one."""
    done = subprocess.run(
        [sys.executable, "-m", "kbroker", "pipeline", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=cwd,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


# For the file of a job that is a process of its own.
SMALL_AND_SHORT = f"""\
spark:
  spark.master: local[2]
  spark.driver.memory: 512m
  spark.driver.extraJavaOptions: {SHORT_LIVED}
"""


class JobProcess:
    """`kbroker pipeline …` as a user runs it; `kill` ends it and its JVM at once."""

    def __init__(self, *arguments: str, output: Path) -> None:
        self._output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kbroker", "pipeline", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def kill_java(self) -> None:
        """Kill the JVM alone, which is the command's child."""
        command = ["ps", "-o", "pid=", "--ppid", str(self._process.pid)]
        (child,) = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(child), signal.SIGKILL)

    def terminate(self) -> int:
        self._process.terminate()
        return self._process.wait(120)

    def wait(self) -> int:
        return self._process.wait(240)

    def output(self) -> str:
        return self._output.read_text(errors="replace")
