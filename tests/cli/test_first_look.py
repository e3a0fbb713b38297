"""What a user sees first: the banner, the log, the help; and what Ctrl-C and a closed pipe leave."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from kbroker.testing import KafkaBroker
from tests.support.server_process import ServerProcess, eventually

KBROKER = [sys.executable, "-m", "kbroker"]


def in_a_terminal(arguments: list[str], until: str) -> tuple[int, str]:
    """Run it in a terminal until it shows a text, then press Ctrl-C; its exit code, and what was shown."""
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [*KBROKER, *arguments],
        stdout=side,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "xterm"},
    )
    os.close(side)
    shown = b""
    try:
        with suppress(OSError):  # EIO: it has ended
            while until.encode() not in shown:
                shown += os.read(terminal, 4096)
    finally:
        process.send_signal(signal.SIGINT)
        with suppress(OSError):
            while os.read(terminal, 4096):
                pass
        code = process.wait(30)
        os.close(terminal)
    return code, shown.decode()


def test_in_a_terminal_serve_shows_where_it_is_and_what_to_try() -> None:
    code, shown = in_a_terminal(["serve", "--in-memory", "--port", "0"], "Ctrl-C stops it")
    assert code == 0
    lines = shown.splitlines()
    (address,) = [line.split()[-1] for line in lines if "listening on" in line]
    commands = [line for line in lines if line.startswith("  ")]
    assert len(commands) == 3
    assert all("kbroker" in line and f"-b {address}" in line for line in commands)
    assert "\033" not in shown


def test_in_a_terminal_lag_is_watched_until_ctrl_c() -> None:
    with KafkaBroker(["t"]) as broker:
        address = ["-b", broker.bootstrap_servers]
        subprocess.run([*KBROKER, "produce", "t", *address], input=b"1\n2\n", check=True, timeout=60)
        reset = ["group", "reset", "billing", "--to-offset", "1", "-t", "t"]
        subprocess.run([*KBROKER, *reset, *address], check=True, timeout=60)
        code, shown = in_a_terminal(["lag", "--interval", "100ms", *address], "billing")
    assert code == 130
    assert "CAUGHT UP IN" in shown


def test_in_a_terminal_tables_are_drawn() -> None:
    with KafkaBroker(["orders"]) as broker:
        _, shown = in_a_terminal(["topic", "list", "-b", broker.bootstrap_servers], "never shown")
    assert "─" in shown
    assert "orders" in shown


def test_without_a_topic_and_without_auto_creation_produce_says_what_to_do() -> None:
    with KafkaBroker(configs={"auto.create.topics.enable": "false"}) as broker:
        done = subprocess.run(
            [*KBROKER, "produce", "t", "--timeout", "1", "-b", broker.bootstrap_servers],
            input="x",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "kbroker topic create t" in done.stderr


def test_the_log_is_text_or_json_at_the_level_that_was_asked_for() -> None:
    with ServerProcess("--in-memory", "--log-format", "json", "--log-level", "debug") as server:
        server.stop()
        lines = [json.loads(line) for line in server.log().splitlines()]
        assert {"time", "level", "logger", "message"} <= lines[0].keys()
        assert any(line["message"] == "stopping" for line in lines)
    with ServerProcess("--in-memory", "--log-level", "warn") as server:
        server.stop()
        assert server.log() == ""


def test_the_log_never_holds_payloads() -> None:
    with ServerProcess("--in-memory", "--log-format", "json", "--log-level", "trace") as server:
        for arguments in (
            ["produce", "t", "-k", "secret-key", "-H", "h=secret-header"],
            ["consume", "t", "-g", "g"],
        ):
            done = subprocess.run(
                [*KBROKER, *arguments, "-b", server.bootstrap],
                input=b"secret-value",
                capture_output=True,
                timeout=60,
                check=True,
            )
        assert b"secret-value" in done.stdout
        server.stop()
        assert "secret" not in server.log()


def test_ctrl_c_ends_a_command_with_130_and_without_a_word() -> None:
    with KafkaBroker(["t"]) as broker:
        process = subprocess.Popen(
            [*KBROKER, "consume", "t", "-g", "g", "--follow", "-b", broker.bootstrap_servers],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        eventually(lambda: any(request.api == "Fetch" for request in broker.requests))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (130, b"", b"")
        # It left the group: nobody has to wait for its session to end.
        eventually(lambda: any(request.api == "LeaveGroup" for request in broker.requests))


def test_ctrl_c_in_a_benchmark_removes_its_topic() -> None:
    with KafkaBroker() as broker:
        process = subprocess.Popen(
            [*KBROKER, "bench", "latency", "-n", "1000000", "-b", broker.bootstrap_servers],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        eventually(lambda: any(request.api == "Produce" for request in broker.requests))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (130, b"", b"")
        assert any(request.api == "DeleteTopics" for request in broker.requests)


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    with KafkaBroker(["t"]) as broker:
        command = f"{sys.executable} -m kbroker"
        address = f"-b {broker.bootstrap_servers}"
        script = (
            "set -o pipefail; "
            f"seq 20000 | {command} produce t {address} && {command} consume t {address} | head -1"
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "1\n"
    assert done.returncode == 0
    assert done.stderr == "20,000 records written to t\n"


def test_a_check_keeps_its_exit_code_where_nobody_reads_what_it_prints() -> None:
    topics = {f"topic-{number}": 100 for number in range(10)}
    with KafkaBroker(topics) as broker:
        address = f"-b {broker.bootstrap_servers}"
        command = f"{sys.executable} -m kbroker"
        reset = "".join(f" -t {topic}" for topic in topics)
        script = (
            f"{command} group reset billing --to-end {reset} {address} >/dev/null; "
            f"echo 1 | {command} produce topic-0 -p 99 {address}; "
            f"{command} lag --max 0 {address} | true; echo ${{PIPESTATUS[0]}}"
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "4\n"
    assert done.stderr == "1 record written to topic-0\n"


def test_the_address_comes_from_the_environment_and_serve_does_not_mind() -> None:
    others = {"KBROKER_BOOTSTRAP": "nonsense:1", "KBROKER_CACHE": "/nowhere", "KBROKER_COMPAT": "both"}
    with ServerProcess("--in-memory", env=others) as server:
        done = subprocess.run(
            [*KBROKER, "ping", "--json"],
            env={**os.environ, "KBROKER_BOOTSTRAP": server.bootstrap},
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert json.loads(done.stdout)["address"] == server.bootstrap


def test_ping_waits_for_a_broker_that_is_starting(tmp_path: Path) -> None:
    with ServerProcess("--in-memory") as server:
        address = server.address
        server.stop()
        waiting = subprocess.Popen([*KBROKER, "ping", "-q", "--wait", "30", "-b", server.bootstrap])
        server.address = address
        server.start()
        assert waiting.wait(30) == 0


def test_only_the_command_that_runs_is_loaded() -> None:
    script = (
        "import sys, contextlib, io\n"
        "from kbroker.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(['serve', '--help'])\n"
        "loaded = ('kbroker.', 'kafka', 'rich', 'yaml')\n"
        "print(sorted(name for name in sys.modules if name.startswith(loaded)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "['kbroker.cli', 'kbroker.cli.serve', 'kbroker.exit_codes']"


def test_the_whole_command_line_is_built_in_a_moment() -> None:
    """Help and completion load every command module: none of them may pull in what is heavy."""
    script = (
        "import sys, time\n"
        "from kbroker.cli import make_parser\n"
        "started = time.process_time(); make_parser(); took = time.process_time() - started\n"
        "heavy = [name for name in ('kafka', 'rich', 'yaml', 'uvloop', 'pyspark') if name in sys.modules]\n"
        "print(heavy, took < 0.25)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[] True"


def test_where_nobody_listens_a_command_ends_at_once() -> None:
    started = time.monotonic()
    done = subprocess.run(
        [*KBROKER, "topic", "list", "-b", "127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - started < 10
