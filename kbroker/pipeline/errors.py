"""What can go wrong with a pipeline, as the user is told it."""

from __future__ import annotations

from typing import NamedTuple

from kbroker.exit_codes import FAILED, FOUND, UNREACHABLE


class PipelineError(Exception):
    """Ends the command with its message, which says what to do about it, and its exit code."""

    exit_code = FAILED


class SparkMissing(PipelineError):
    """pyspark, delta-spark or a Java runtime is not there."""


class JavaEnded(PipelineError):
    """Spark's Java process is gone."""


class JarUnavailable(PipelineError):
    """A pinned jar is neither cached nor downloadable."""


class KafkaUnreachable(PipelineError):
    """No broker answers."""

    exit_code = UNREACHABLE


class FileProblem(PipelineError):
    """Something is wrong with the declared file that only Spark could tell."""

    exit_code = FOUND


class NotReplayable(PipelineError):
    """Of one sink; known only when Spark has analysed its rows."""


class SpecError(PipelineError):
    """The declared file has errors: each a line and a sentence."""

    exit_code = FOUND

    def __init__(self, path: str, problems: list[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(f"{path}:{problem.line}: {problem.message}" for problem in self.problems))


class Problem(NamedTuple):
    line: int
    message: str
