"""kbroker produce: whatever ends it, it says how many records were written."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess

from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run, running
from tests.support.server_process import eventually


def test_a_bad_line_says_how_many_were_written_before_it(run: Run) -> None:
    run("topic", "create", "t", "-p", "1")
    wrong = run("produce", "t", "--from-json", stdin=b'{"value": 1}\n{"value": 2}\nnot json\n{"value": 3}\n')
    assert wrong.exit_code == 1
    assert "line 3 is not a record" in wrong.stderr
    assert "2 records written to t before that" in wrong.stderr
    wrong = run("produce", "t", "-K", ":", "--json", stdin=b"k:v\nno separator\n")
    assert "line 2" in wrong.stderr
    assert "1 record written to t before that" in wrong.stderr
    wrong = run("produce", "t", "--from-json", stdin=b'{"value": 4}\n{"value": 5, "timestamp": "now"}\n')
    assert "record 2 cannot be sent" in wrong.stderr
    assert "1 record written to t before that" in wrong.stderr
    assert run("consume", "t").stdout == "1\n2\nv\n4\n"


def test_ctrl_c_says_how_many_were_written(run: Run, broker: KafkaBroker) -> None:
    run("topic", "create", "t", "-p", "1")
    with running("produce", "t", "-b", broker.bootstrap_servers, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write("one\ntwo\n")
        eventually(lambda: len(broker.records("t")) == 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == "2 records written to t\n"


def test_records_of_null_and_nothing_else_go_from_topic_to_topic(run: Run, broker: KafkaBroker) -> None:
    run("topic", "create", "a", "b", "-p", "1")
    nothing = {"key": None, "value": None, "headers": [["empty", None], ["full", "x"]]}
    lines = "\n".join(json.dumps(each) for each in (nothing, {"value": None}, {"value": "last"}))
    assert run("produce", "a", "--from-json", stdin=lines.encode()).stderr == "3 records written to a\n"
    copied = run("produce", "b", "--from-json", stdin=run("consume", "a", "--json").stdout.encode())
    assert (copied.exit_code, copied.stderr) == (0, "3 records written to b\n")
    for topic in ("a", "b"):
        first, second, _ = broker.records(topic)
        assert (first.key, first.value) == (second.key, second.value) == (None, None)
        assert first.headers == (("empty", None), ("full", b"x"))


def test_the_topic_decides_how_large_a_record_may_be(run: Run) -> None:
    run("topic", "create", "t", "-p", "1")
    refused = run("produce", "t", "--whole", stdin=b"x" * 3_000_000)
    assert refused.exit_code == 1
    assert "MESSAGE_TOO_LARGE" in refused.stderr
    assert "0 records of 1 written to t" in refused.stderr
    run("topic", "alter", "t", "-c", "max.message.bytes=4000000")
    assert run("produce", "t", "--whole", stdin=b"x" * 3_000_000).exit_code == 0


def test_in_a_terminal_it_says_that_it_waits_for_lines(broker: KafkaBroker) -> None:
    terminal, side = pty.openpty()
    with running("produce", "t", "-b", broker.bootstrap_servers, stdin=side) as process:
        os.close(side)
        assert process.stderr is not None
        assert process.stderr.readline() == "type records, one per line; Ctrl-D ends\n"
        os.write(terminal, b"hello\n\x04")
        assert process.stderr.readline() == "1 record written to t\n"
        assert process.wait(30) == 0
    os.close(terminal)
