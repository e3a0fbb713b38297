"""What the broker answers is what its OpenAPI document says, whatever is asked: schemathesis asks.

It makes requests of the document's schemas, right ones and wrong ones. No answer may be a 5xx, or have a
status, media type or shape that the document does not have, and no request that the document forbids may
succeed. (What it allows may still be refused: that a config exists, say, no schema tells.) Each run asks the
same; `make contract` asks a hundred times as much.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess

# Methods that a path has for other media types only are no mistake; and waits are short.
ALWAYS = """
[phases.coverage]
unexpected-methods = ["TRACE"]

[parameters]
"query.maxWaitMs" = 50
"""

THERE = """
"path.topic" = "contract"
"path.topic_name" = "contract"
"path.partition" = 1
"path.partition_id" = 1
"path.group" = "contract"
"path.consumer_group_id" = "contract"
"path.consumer" = "contract"
"path.broker" = 1
"path.broker_id" = 1
"path.cluster_id" = "${CLUSTER_ID}"
"path.transaction" = "${TRANSACTION}"

# What is made is not what is asked for.
[phases.stateful]
enabled = false
"""

# Confluent's REST Proxy tells what is wrong with one of several records or topics within a good answer.
ERRORS_IN_ANSWERS = """
[[operations]]
include-path-regex = "^/v3/clusters/{cluster_id}/topics/({topic_name}/records(:batch)?|-/configs:alter)$"
checks.negative_data_rejection.enabled = false

[[operations]]
include-path = "/topics/{topic}/partitions/{partition}"
checks.negative_data_rejection.enabled = false

# It has no end.
[[operations]]
include-path = "/api/v1/topics/{topic}/stream"
enabled = false

# 501 for formats that need a schema registry.
[[operations]]
include-path = "/consumers/{group}"
checks.not_a_server_error.enabled = false

# What a reader waits for is not there yet: 504, as the document says.
[[operations]]
include-path = "/api/v1/topics/{topic}/partitions/{partition}/fetch"
checks.not_a_server_error.enabled = false
"""

EXAMPLES = os.environ.get("CONTRACT_EXAMPLES", "3")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def broker() -> Iterator[ServerProcess]:
    """With what THERE names."""
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        with HttpClient(server.url) as http:
            assert http.post("/topics", {"name": "contract", "partitions": 2}).status == 201
            consumer = {"name": "contract", "topics": ["contract"]}
            assert http.post("/groups/contract/consumers", consumer).status == 201
        yield server
        log = server.log()
    assert "Traceback" not in log, log


def ask(broker: ServerProcess, directory: Path, phase: str, config: str) -> None:
    """``phase``: the one of a short run."""
    with HttpClient(broker.url) as http:
        cluster_id = http.get("/").json["clusterId"]
        transaction = http.post("/transactions", {"transactionalId": "contract"}).json["id"]
    (directory / "schemathesis.toml").write_text(config)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{broker.url}/openapi.json"),
        "--generation-deterministic",
        "--continue-on-failure",
        "--no-color",
        *("--max-examples", EXAMPLES),
        *("--exclude-checks", "positive_data_acceptance"),
        *("--suppress-health-check", "all"),
        *("--warnings", "off"),
    ]
    if "CONTRACT_EXAMPLES" not in os.environ:
        command += ["--phases", phase]
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "CLUSTER_ID": cluster_id, "TRANSACTION": transaction},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_answers_about_what_is_there_are_as_the_document_says(broker: ServerProcess, tmp_path: Path) -> None:
    ask(broker, tmp_path, "coverage", ALWAYS + THERE + ERRORS_IN_ANSWERS)


def test_answers_about_anything_are_as_the_document_says(broker: ServerProcess, tmp_path: Path) -> None:
    ask(broker, tmp_path, "fuzzing", ALWAYS + ERRORS_IN_ANSWERS)
