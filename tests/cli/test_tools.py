"""completion, control, doctor, and the small parts that commands share."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kbroker import cli
from kbroker.cli import aliases, main, times
from kbroker.cli.connection import addresses
from kbroker.cli.record_format import from_text
from kbroker.exit_codes import CommandFailed
from kbroker.testing import KafkaBroker


def completions(script: Path, shell_words: list[str]) -> list[str]:
    words = " ".join(f"'{word}'" for word in shell_words)
    typed = f"COMP_WORDS=({words}); COMP_CWORD={len(shell_words) - 1}"
    line = f"COMP_LINE='{' '.join(shell_words)}'"
    command = f"source {script}; {typed}; {line}; _kbroker; echo ${{COMPREPLY[@]}}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "PATH": path},
    )
    return done.stdout.split()


def test_bash_completes_commands_actions_options_and_choices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.sh"
    script.write_text(capsys.readouterr().out)
    assert completions(script, ["kbroker", "top"]) == ["topic", "top"]
    assert completions(script, ["kbroker", "topic", "de"]) == ["describe", "delete"]
    assert completions(script, ["kbroker", "topic", "create", "x", "--part"]) == ["--partitions"]
    assert completions(script, ["kbroker", "produce", "t", "--codec", "z"]) == ["zstd"]
    assert completions(script, ["kbroker", "serve", "--log-format", ""]) == ["text", "json"]


def test_bash_completes_names_of_topics_and_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.sh"
    script.write_text(capsys.readouterr().out)
    with KafkaBroker(["orders", "clicks"]) as broker:
        address = ["-b", broker.bootstrap_servers]
        assert main(["group", "reset", "billing", "--to-end", "-t", "orders", *address]) == 0
        assert completions(script, ["kbroker", "consume", *address, "or"]) == ["orders"]
        assert completions(script, ["kbroker", "consume", *address, "orders", "-g", ""]) == ["billing"]
        assert completions(script, ["kbroker", "topic", "describe", *address, ""]) == ["clicks", "orders"]
        assert completions(script, ["kbroker", "lag", *address, "b"]) == ["billing"]
    assert completions(script, ["kbroker", "consume", *address, "or"]) == []


def test_fish_completes_commands_options_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = "complete -c kbroker -n '__kbroker_at \"\"'"
    assert f"{first} -a topic -d 'create, list, describe, alter, delete topics'" in lines
    at = "complete -c kbroker -n '__kbroker_at \"/consume\"'"
    assert f"{at} -a '(__kbroker_names topics)'" in lines
    assert any(line.startswith(f"{at} -s g -l group -r -a '(__kbroker_names groups)'") for line in lines)
    if fish := shutil.which("fish"):
        subprocess.run([fish, "--no-execute"], input="\n".join(lines).encode(), check=True, timeout=30)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_its_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    script = tmp_path / "completion.zsh"
    script.write_text(capsys.readouterr().out)
    subprocess.run(
        ["zsh", "-c", f"autoload -U compinit; compinit -u; source {script}"], check=True, timeout=30
    )


def test_control_makes_a_broker_misbehave(capsys: pytest.CaptureFixture[str]) -> None:
    with KafkaBroker(["t"]) as broker:
        control = ["control", "--port", str(broker.control_port)]
        assert main([*control, "fail", "--api", "Metadata", "--error", "BROKER_NOT_AVAILABLE"]) == 0
        assert main([*control, "create-topic", "made", "-p", "2"]) == 0
        assert main([*control, "clear"]) == 0
        assert main([*control, "pause"]) == 0
        assert main([*control, "resume"]) == 0
        assert main([*control, "drop"]) == 0
        assert main([*control, "advance-time", "1000"]) == 0
        capsys.readouterr()
        assert main(["topic", "list", "--json", "-b", broker.bootstrap_servers]) == 0
        assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["made", "t"]
        assert main([*control, "requests"]) == 0
        assert "Metadata" in {row["api"] for row in json.loads(capsys.readouterr().out)}
        assert main([*control, "records", "t", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == []
        assert main([*control, "fail", "--error", "NO_SUCH"]) == 1
        assert "NO_SUCH" in capsys.readouterr().err
    assert main([*control, "pause"]) == 3
    assert "--control-port" in capsys.readouterr().err


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    code = main(["doctor", "--json", *arguments])
    return code, {row["check"]: row for row in json.loads(capsys.readouterr().out)}


def test_the_doctor_finds_nothing_where_nothing_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with KafkaBroker() as broker:
        code, found = doctor(capsys, "--data", str(tmp_path / "new"), "-b", broker.bootstrap_servers)
    assert code == 0
    assert {row["result"] for row in found.values()} <= {"ok", "warning"}
    assert found["broker"]["result"] == "ok"


def test_the_doctor_tells_no_broker_from_no_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = doctor(capsys, "--data", str(tmp_path), "-b", "127.0.0.1:1")
    assert (code, found["broker"]["result"]) == (4, "bad")
    assert "kbroker serve" in found["broker"]["text"]
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def answer() -> None:
            peer, _ = other.accept()
            with peer:
                peer.recv(100)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        _, found = doctor(capsys, "--data", str(tmp_path), "-b", f"127.0.0.1:{other.getsockname()[1]}")
        thread.join()
    assert "not a Kafka" in found["broker"]["text"]
    _, found = doctor(capsys, "--data", str(tmp_path), "-b", "no-such-host.invalid:9092")
    assert found["address"]["result"] == "bad"


def test_the_doctor_sees_an_advertised_address_that_nobody_can_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with KafkaBroker(configs={"advertised.listeners": "PLAINTEXT://no-such-host.invalid:9092"}) as broker:
        code, found = doctor(capsys, "--data", str(tmp_path), "-b", broker.bootstrap_servers)
    assert code == 4
    assert "--advertise" in found["broker 1 tells"]["text"]


def test_the_doctor_sees_a_clock_that_was_set_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = tmp_path / "t-0" / f"{0:020d}.log"
    segment.parent.mkdir()
    segment.touch()
    os.utime(segment, (time.time() + 3600,) * 2)
    _, found = doctor(capsys, "--data", str(tmp_path), "-b", "127.0.0.1:1")
    assert found["clock"]["result"] == "bad"


def test_addresses() -> None:
    assert addresses("a:1, b ,[::1]:2") == [("a", 1), ("b", 9092), ("::1", 2)]
    for wrong in ("a:b", ":9", ""):
        with pytest.raises(CommandFailed):
            addresses(wrong)


def test_points_in_time() -> None:
    assert times.timestamp_ms("1700000000000") == 1_700_000_000_000
    assert times.timestamp_ms("2023-11-14T22:13:20Z") == 1_700_000_000_000
    assert abs(times.timestamp_ms("2h") - (time.time() - 7200) * 1000) < 5000
    assert times.iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert times.iso(-1) == "-"
    assert times.duration_ms("1500ms") == 1500
    with pytest.raises(argparse.ArgumentTypeError, match="no point in time"):
        times.timestamp_ms("soon")


def test_json_values() -> None:
    assert from_text({"base64": "AP8="}) == b"\x00\xff"
    assert from_text({"a": 1}) == b'{"a":1}'
    assert from_text(None) is None
    with pytest.raises(ValueError, match="not base64"):
        from_text({"base64": "%"})


def test_every_command_with_aliases_is_translated() -> None:
    assert set(cli._TRANSLATED) == aliases.COMMANDS
    assert aliases.translated(["consume", "-o", "end", "-t", "a", "--topic=b", "--", "-t"]) == [
        *("consume", "a", "b", "-o", "end", "--", "-t")
    ]


def test_wrong_command_lines_end_with_2() -> None:
    for arguments in (["topic"], ["topic", "create"], ["nonsense"], ["consume", "t", "-o", "somewhere"]):
        done = subprocess.run(
            [sys.executable, "-m", "kbroker", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2
        assert "usage: kbroker" in done.stderr
