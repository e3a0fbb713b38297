"""The same file by spark-submit, on a standalone cluster of one master and two workers on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.clients.spark.topics import Topic
from compat.harness.brokers import Server
from compat.harness.server import free_ports
from compat.harness.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark_full, pytest.mark.timeout(600)]
PIPELINE = """\
name: submitted
bootstrap_servers: {bootstrap}
trigger: available_now
sources:
  rows: {{topics: {topic}, decode: {{format: json, schema: id bigint}}}}
steps:
  even: {{sql: SELECT id FROM rows WHERE id % 2 = 0}}
sinks:
  out: {{from: even, delta: ./out}}
"""


@pytest.fixture
def environment() -> dict[str, str]:
    from kbroker.pipeline import java

    return {**os.environ, "JAVA_HOME": str(java.java_home()), "PYSPARK_PYTHON": sys.executable}


@pytest.fixture
def master(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The URL of a master that two workers have joined."""
    import pyspark

    run = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port, web = free_ports(2)
    log = tmp_path / "cluster.txt"
    environment = {**environment, "SPARK_WORKER_DIR": str(tmp_path / "work"), "SPARK_DAEMON_MEMORY": "256m"}
    package = "org.apache.spark.deploy"
    address = ["--host", "127.0.0.1"]
    worker = [f"{package}.worker.Worker", *address, "--webui-port", "0", "--cores", "1", "--memory", "600m"]
    commands = [
        [f"{package}.master.Master", *address, "--port", str(port), "--webui-port", str(web)],
        [*worker, f"spark://127.0.0.1:{port}"],
        [*worker, f"spark://127.0.0.1:{port}"],
    ]
    processes: list[subprocess.Popen[bytes]] = []
    with log.open("wb") as output:
        try:
            processes.extend(
                subprocess.Popen([run, *command], stdout=output, stderr=output, env=environment)
                for command in commands
            )
            eventually(lambda: log.read_text().count("Registering worker") >= 2, seconds=90)
            yield f"spark://127.0.0.1:{port}"
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


def test_a_pipeline_on_a_standalone_cluster(
    spark: SparkSession,
    kafka_server: Server,
    new_topic: Callable[..., Topic],
    environment: dict[str, str],
    master: str,
    tmp_path: Path,
) -> None:
    import pyspark

    topic = new_topic(4)
    for partition in range(4):
        values = [json.dumps({"id": n}) for n in range(100 * partition, 100 * partition + 100)]
        topic.produce(values, partition=partition)
    file = tmp_path / "pipeline.yml"
    file.write_text(PIPELINE.format(bootstrap=kafka_server.bootstrap, topic=topic))
    listed = [sys.executable, "-m", "kbroker", "pipeline", "jars"]
    jars, script = (
        subprocess.run([*listed, *more], capture_output=True, text=True, check=True).stdout.strip()
        for more in ((), ("--script",))
    )
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = {
        "spark.executor.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    done = subprocess.run(
        [
            submit, "--master", master, "--jars", jars,
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
            script, "run", str(file),
        ],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = spark.read.format("delta").load(str(tmp_path / "out")).collect()
    assert sorted(row.id for row in rows) == list(range(0, 400, 2))
    workers = {path.parent for path in (tmp_path / "work").glob("app-*/*/stderr")}
    assert len(workers) == 2, "both workers ran an executor"
