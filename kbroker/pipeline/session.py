"""The Spark session of a pipeline: Java, jars, Delta and quiet defaults.

Under spark-submit the session that it prepared is taken as it is; only Delta's two settings are added.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.pipeline import failures, jars, java
from kbroker.pipeline.errors import JavaEnded, PipelineError, SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
# For jobs of a minute or two: no second compiler, no collector threads.
SHORT_LIVED = f"{QUIET} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# One machine, small tables: 200 shuffle partitions would be 200 tasks per batch.
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": QUIET,
}
COMMON = {
    **DELTA,
    # Kafka's timestamps and the file's times are read as UTC, wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stopTimeout": "60000",
}
JAVA_ENDED = (
    "Spark's Java process has ended: it was killed, or its memory was not enough (spark.driver.memory under "
    "spark gives it more). What is written stays; start it again, and it goes on from there"
)
_LAST_BREATH_SECONDS = 10.0


def require_spark() -> None:
    """Say what to install where pyspark or delta-spark is missing."""
    for module in ("pyspark", "delta"):
        if importlib.util.find_spec(module) is None:
            raise SparkMissing("the pipeline needs Spark: pip install 'kbroker[spark]'")


def under_spark_submit() -> bool:
    """Whether spark-submit started this process: it has the gateway's port in the environment."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def create_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """`settings` win over the defaults here, and what was given to spark-submit wins over both."""
    require_spark()
    chosen = {**COMMON, **(settings or {})}
    if not under_spark_submit():
        os.environ["JAVA_HOME"] = str(java.java_home())
        # Executors that this process starts run the same Python as the driver.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        more = [path for path in chosen.pop("spark.jars", "").split(",") if path]
        chosen = {**LOCAL, **chosen, "spark.jars": ",".join([*map(str, jars.provide()), *more])}
        chosen.setdefault("spark.sql.warehouse.dir", _warehouse())
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except _spark_errors() as error:
        said = failures.explain(error).message.rstrip(".")
        raise PipelineError(f"Spark does not start: {said}. See the settings under 'spark'") from None
    _remove_artifacts(session)
    return session


@contextlib.contextmanager
def opened(name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session, stopped at the end; what Spark raises becomes a PipelineError."""
    session = create_session(name, settings)
    try:
        yield session
    except Exception as error:
        if java_ended(session, error):
            raise JavaEnded(JAVA_ENDED) from None
        if isinstance(error, _spark_errors()):
            raise PipelineError(failures.explain(error).message) from None
        raise
    finally:
        with contextlib.suppress(*_spark_errors(), OSError):
            session.stop()


def java_ended(session: SparkSession, error: BaseException | None = None) -> bool:
    """Whether Spark's Java process is gone; `error` is what the last call raised, if it raised something."""
    from py4j.protocol import Py4JNetworkError

    cut_off = isinstance(error, Py4JNetworkError | ConnectionError)
    process = getattr(session.sparkContext._gateway, "proc", None)
    if process is None:  # spark-submit's
        return cut_off
    try:
        process.wait(_LAST_BREATH_SECONDS if cut_off else 0)
    except subprocess.TimeoutExpired:
        return False
    return True


def _spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return Py4JError, PySparkException


def _warehouse() -> str:
    """Where Spark makes the directory of a database that no pipeline has: not the working directory."""
    directory = tempfile.mkdtemp(prefix="kbroker-spark-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _remove_artifacts(session: SparkSession) -> None:
    """Remove the empty directory `artifacts` that Spark 4.0 makes in the working directory."""
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError, OSError):
        made = Path(session._jsparkSession.artifactManager().artifactPath().toString()).parent
        made.rmdir()
        made.parent.rmdir()
