"""`kbroker pipeline` as far as it goes without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kbroker.cli import main
from kbroker.exit_codes import FAILED, FOUND, OK, UNREACHABLE
from kbroker.pipeline import kafka_client
from kbroker.pipeline.demo import EXAMPLE

from .declared import GOOD


def test_init_writes_a_file_that_check_finds_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pipeline.yml"
    assert main(["pipeline", "init", str(file)]) == OK
    assert main(["pipeline", "check", str(file)]) == OK
    assert "is good; its sinks: bronze, silver, gold" in capsys.readouterr().out
    assert main(["pipeline", "init", str(file)]) == FAILED
    assert "is there already" in capsys.readouterr().err


def test_check_tells_every_problem_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.yml"
    file.write_text(
        GOOD.replace("FROM orders", "FROM ordrs").replace("delta: ./out", "delta: ./out\n    keey: id")
    )
    assert main(["pipeline", "check", str(file)]) == FOUND
    assert f"{file}:14: a sink has no option 'keey'; did you mean 'key'?" in capsys.readouterr().err


def test_status_of_a_broker_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_client, "FIRST_ANSWER_MS", 100)  # nobody will answer
    file = tmp_path / "p.yml"
    file.write_text(f"bootstrap_servers: 127.0.0.1:1\n{GOOD}")
    assert main(["pipeline", "status", str(file)]) == UNREACHABLE
    assert "no Kafka answers at 127.0.0.1:1" in capsys.readouterr().err


def test_status_shows_the_lag_of_a_pipeline_that_never_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kafka_bootstrap: str, kafka_topic: str
) -> None:
    file = tmp_path / "p.yml"
    text = GOOD.replace("topics: orders", f"topics: {kafka_topic}")
    file.write_text(f"bootstrap_servers: {kafka_bootstrap}\n{text}")
    assert main(["pipeline", "status", str(file)]) == OK
    shown = capsys.readouterr().out
    assert "never ran" in shown
    assert kafka_topic in shown


def test_a_missing_topic_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kafka_bootstrap: str
) -> None:
    pytest.importorskip("pyspark")
    file = tmp_path / "p.yml"
    text = GOOD.replace("topics: orders", "topics: nowhere")
    file.write_text(f"bootstrap_servers: {kafka_bootstrap}\n{text}")
    assert main(["pipeline", "run", str(file)]) == FAILED
    assert "line 4: source 'orders': there is no topic nowhere" in capsys.readouterr().err


def test_checking_a_file_loads_no_spark() -> None:
    code = (
        "import sys; from kbroker.cli import main; main(['pipeline', 'check', sys.argv[1]]); "
        "print('pyspark' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
