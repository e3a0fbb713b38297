"""kbroker top: what it finds by Kafka's protocol and by /metrics, and its live view in a terminal."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kbroker.cli import connection, main, top_kafka, top_metrics
from kbroker.cli.top_look import ApiLook, GroupLook, Look, TopicLook
from kbroker.cli.top_rates import measured, quantile
from kbroker.cli.top_screen import Screen
from kbroker.exit_codes import FAILED, UNREACHABLE, CommandFailed
from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run
from tests.cli.test_user import LISTENER, user
from tests.deploy.promtool import needs_promtool, promtool
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess, eventually


def options(**given: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    connection.add_connection_options(parser)
    found = parser.parse_args([])
    vars(found).update(http=None, interval=100, **given)
    return found


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


def look(server: ServerProcess, at: float, *, by_kafka: bool) -> Look:
    given = options(bootstrap=server.bootstrap)
    if by_kafka:
        with connection.admin(given) as client:
            found = top_kafka.look(client, given)
    else:
        given.http = server.url
        found = top_metrics.look(given)
    found.at = at
    return found


@pytest.mark.parametrize("by_kafka", [True, False])
def test_two_looks_tell_what_happened_between_them(server: ServerProcess, by_kafka: bool) -> None:
    group = ["group", "reset", "billing", "-b", server.bootstrap, "-t", "orders"]
    with server.client() as client:
        create(client, "orders", 2)
        create(client, "clicks", 1)
        produce(client, "orders", 0, b"before")
        assert main([*group, "--to-end"]) == 0
        before = look(server, 10.0, by_kafka=by_kafka)
        create(client, "new", 1)
        for partition in (0, 1, 1, 1):
            produce(client, "orders", partition, b"value")
        produce(client, "new", 0, b"value")
        assert main([*group, "--to-offset", "1"]) == 0
        document = measured(before, look(server, 12.0, by_kafka=by_kafka))
    assert document["source"] == ("kafka" if by_kafka else "metrics")
    assert document["cluster_id"]
    assert document["seconds"] == 2
    assert [each["port"] for each in document["brokers"]] == [server.address[1]]
    rates = [(row["topic"], row["partitions"], row["records_per_second"]) for row in document["topics"]]
    assert rates == [("orders", 2, 2.0), ("new", 1, 0.5), ("clicks", 1, 0.0)]
    assert document["partitions"] == 4
    assert document["throughput"]["records_per_second"] == 2.5
    assert document["disk"]["log_bytes"] == sum(row["log_bytes"] for row in document["topics"]) > 0
    assert document["disk"]["log_growth_per_second"] > 0
    (row,) = document["groups"]
    assert (row["group"], row["members"], row["lag"], row["records_per_second"]) == ("billing", 0, 3, 0.5)
    assert document["answer_ms"] > 0
    if by_kafka:
        assert (row["type"], row["state"]) == ("classic", "Empty")
        assert document["requests"] is document["throughput"]["requests_per_second"] is None
        assert document["process"]["memory_bytes"] is None
        return
    produced = next(row for row in document["requests"] if row["api"] == "Produce")
    assert produced["per_second"] == 2.5
    assert 0 < produced["p50_ms"] <= produced["p99_ms"]
    assert document["throughput"]["bytes_in_per_second"] > 0
    assert document["process"]["memory_bytes"] > 1 << 20
    assert 0 < document["process"]["open_files"] < document["process"]["most_files"]


def test_once_prints_json_or_tables(run: Run) -> None:
    assert run("topic", "create", "orders", "-p", "3").exit_code == 0
    document = run("top", "--json", "--interval", "100ms").json
    assert [(row["topic"], row["partitions"]) for row in document["topics"]] == [("orders", 3)]
    assert document["groups"] == []
    printed = run("top", "--interval", "100ms").stdout
    assert "1 broker · 1 topic · 3 partitions" in printed
    assert re.search(r"^orders +3 +0 ", printed, re.MULTILINE)


def test_rows_of_a_table_are_bounded(run: Run) -> None:
    assert run("topic", "create", "a", "b", "c").exit_code == 0
    printed = run("top", "--once", "-n", "2", "--interval", "100ms").stdout
    assert "and 1 more" in printed


def test_the_http_port_of_the_same_cluster_is_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        monkeypatch.setenv("KBROKER_HTTP_URL", server.url)
        assert run("top", "--json", "--interval", "100ms").json["source"] == "kafka", (
            "it is another cluster's"
        )
        monkeypatch.setenv("KBROKER_BOOTSTRAP", server.bootstrap)
        assert run("top", "--json", "--interval", "100ms").json["source"] == "metrics"
        monkeypatch.setenv("KBROKER_BOOTSTRAP", "127.0.0.1:1")
        document = run("top", "--json", "--interval", "100ms", "--http", server.url).json
        assert document["source"] == "metrics", "its HTTP port is enough"


def test_where_nobody_answers_it_says_so(run: Run, broker: KafkaBroker) -> None:
    assert run("top", "--once", "-b", "127.0.0.1:1").exit_code == 3
    failed = run("top", "--once", "--http", "http://127.0.0.1:1")
    assert failed.exit_code == 3
    assert "cannot reach http://127.0.0.1:1" in failed.stderr
    other = run("top", "--once", "--http", f"http://{broker.bootstrap_servers}", "--timeout", "1")
    assert other.exit_code == 3


def test_it_logs_in_both_ways(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    assert user("create", "admin", "--data", data, password="right").returncode == 0
    with ServerProcess("--data", data, "--http-port", "0", *LISTENER) as server:

        def top(password: str, *more: str) -> int:
            names = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
            }
            given = [f"{name}={value}" for name, value in {**names, "sasl.password": password}.items()]
            options = [word for each in given for word in ("-X", each)]
            capfd.readouterr()
            return main(["top", "--json", "--interval", "100ms", *options, *more])

        for source, where in (("kafka", ["-b", server.bootstrap]), ("metrics", ["--http", server.url])):
            assert top("right", *where) == 0
            assert json.loads(capfd.readouterr().out)["source"] == source
            assert top("wrong", *where) in (FAILED, UNREACHABLE)
            assert re.search("SASL_AUTHENTICATION_FAILED|password", capfd.readouterr().err)


def test_counters_that_began_anew_are_no_negative_rates() -> None:
    before = Look(0, "metrics", "c", [], {"t": TopicLook(1, 100, 1000, 0, 500)}, {"g": GroupLook(position=9)})
    after = Look(2, "metrics", "c", [], {"t": TopicLook(1, 10, 40, 0, 400)}, {"g": GroupLook(position=4)})
    before.apis = {"Produce": ApiLook(100, 4, 10.0, {0.1: 100, float("inf"): 100})}
    after.apis = {"Produce": ApiLook(10, 2, 1.0, {0.1: 10, float("inf"): 10})}
    document = measured(before, after)
    (topic,) = document["topics"]
    assert (topic["records_per_second"], topic["bytes_in_per_second"]) == (5, 20)
    assert topic["log_growth_per_second"] == -50
    assert document["groups"][0]["records_per_second"] == 0
    assert document["requests"][0]["per_second"] == 5
    assert document["requests"][0]["mean_ms"] == 100


def test_a_topic_that_may_only_have_been_left_out_did_nothing_new() -> None:
    before = Look(0, "metrics", "c", [], left_out=1)
    after = Look(1, "metrics", "c", [], {"t": TopicLook(1, 100, 1000, 0, 500)}, left_out=1)
    assert measured(before, after)["topics"][0]["records_per_second"] is None


BUCKETS = {0.1: 10.0, 0.5: 30.0, 1.0: 40.0, float("inf"): 41.0}


def test_quantiles_lie_between_the_bounds_of_a_bucket() -> None:
    assert quantile(BUCKETS, 0.5) == pytest.approx(0.31)
    assert quantile(BUCKETS, 0.9) == pytest.approx(0.845)
    assert quantile(BUCKETS, 0.99) == 1.0
    assert quantile({0.1: 0.0, float("inf"): 0.0}, 0.5) is None
    assert quantile({}, 0.5) is None


@needs_promtool
def test_quantiles_are_those_that_prometheus_finds(tmp_path: Path) -> None:
    checked = [
        {
            "expr": f"round(histogram_quantile({of}, found_bucket), 0.000001)",
            "eval_time": "0m",
            "exp_samples": [{"labels": "{}", "value": round(quantile(BUCKETS, of) or 0, 6)}],
        }
        for of in (0.01, 0.25, 0.5, 0.7, 0.9, 0.97, 0.99)
    ]
    series = [
        {"series": f'found_bucket{{le="{"+Inf" if bound > 1 else bound}"}}', "values": f"{count:g}"}
        for bound, count in BUCKETS.items()
    ]
    file = tmp_path / "quantiles.yml"
    file.write_text(json.dumps({"tests": [{"input_series": series, "promql_expr_test": checked}]}))
    promtool("test", "rules", file)


def test_a_text_of_something_else_is_not_a_look() -> None:
    with pytest.raises(CommandFailed, match="no metrics of a kbroker"):
        top_metrics.read('go_info{version="1"} 1\n', 0.0, "http://there")


def drawn(screen: Screen, width: int, height: int) -> str:
    console = Console(width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(screen.drawn(width, height), end="")
    return capture.get()


def many(count: int, group: str = "g") -> dict[str, Any]:
    topics = {f"topic-{number:03}": TopicLook(1, number, 0, 0, 0) for number in range(count)}
    before = Look(0, "metrics", "c", [], {name: TopicLook(1, 0, 0, 0, 0) for name in topics})
    return measured(before, Look(1, "metrics", "c", [], topics, {group: GroupLook(lag=3)}, apis={}))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 12), (20, 6), (240, 70), (9, 3)])
@pytest.mark.parametrize("keys", ["", "t", "h", "tp"])
def test_a_terminal_of_any_size_is_filled_and_not_more(width: int, height: int, keys: str) -> None:
    screen = Screen(options(bootstrap="somewhere:9092"))
    screen.show(many(100), None)
    screen.show(many(100), OSError("a reason that takes more room than there is " * 9))
    assert not screen.press(keys)
    lines = drawn(screen, width, height).splitlines()
    assert all(len(line) <= width for line in lines)
    if height >= 12:
        assert len(lines) == height
        assert lines[-1].startswith("q end")


def test_keys_order_and_scroll() -> None:
    screen = Screen(options(bootstrap="somewhere:9092"))
    screen.show(many(50), None)

    def first_row() -> str:
        return re.findall(r"^(topic-\d+)", drawn(screen, 100, 30), re.MULTILINE)[0]

    screen.press("t")
    assert first_row() == "topic-049"
    screen.press("\x1b[B")
    assert first_row() == "topic-048"
    screen.press("\x1b[6~")
    assert first_row() < "topic-030"
    for _ in range(9):
        screen.press("\x1b[6~")
    assert "of 50" in drawn(screen, 100, 30)
    assert "topic-000" in drawn(screen, 100, 30)
    screen.press("a")
    screen.press("t")
    screen.press("ssss")
    assert first_row() == "topic-000"
    screen.press("+")
    assert screen.interval_ms == 100, "there is no shorter one"
    screen.press("-")
    assert screen.interval_ms == 250
    assert screen.press("q")


def test_a_pause_keeps_what_is_shown() -> None:
    screen = Screen(options(bootstrap="somewhere:9092"))
    screen.show(many(2), None)
    screen.press("p")
    screen.show(many(3), None)
    assert "2 topics" in drawn(screen, 100, 30)
    screen.press("p")
    assert "3 topics" in drawn(screen, 100, 30)


def test_names_of_clients_do_not_reach_the_terminal_as_commands() -> None:
    screen = Screen(options(bootstrap="somewhere:9092"))
    screen.show(many(1, group="\x1b[2Jgone [red]x"), None)
    shown = drawn(screen, 100, 30)
    assert "\x1b[2J" not in shown
    assert "�[2Jgone [red]x" in shown


class Terminal:
    """`kbroker top` in a terminal of its own."""

    def __init__(self, *arguments: str, environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        self.resize(30, 100)
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self.shown = ""
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kbroker", "top", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**inherited, "TERM": "xterm-256color", "NO_COLOR": "1", **environment},
            start_new_session=True,
        )

    def resize(self, height: int, width: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        self.shown = ""
        os.write(self._master, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        """As keys do: Ctrl-C is SIGINT, Ctrl-Z is SIGTSTP."""
        self._process.send_signal(number)

    def is_stopped(self) -> bool:
        self._read(0.01)
        return "\nState:\tT" in Path(f"/proc/{self._process.pid}/status").read_text()

    def is_as_it_was(self) -> bool:
        return termios.tcgetattr(self._slave) == self.before

    def wait_for(self, pattern: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.shown):
            assert time.monotonic() < deadline, f"{pattern} was never shown: {self.shown[-3000:]}"
            self._read(0.1)

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if ready:
            self.shown += os.read(self._master, 65536).decode(errors="replace")

    def ended(self) -> int:
        def has_ended() -> bool:
            self._read(0.01)
            return self._process.poll() is not None

        eventually(has_ended, 60)
        assert self.is_as_it_was()
        self.wait_for(re.escape("\x1b[?1049l"))  # what was there before is shown again
        return self._process.wait()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def terminal(server: ServerProcess) -> Iterator[Terminal]:
    environment = {"KBROKER_BOOTSTRAP": server.bootstrap, "KBROKER_HTTP_URL": server.url}
    found = Terminal("--interval", "100ms", environment=environment)
    yield found
    found.close()


def test_the_live_view_follows_keys_and_the_size_of_the_terminal(
    server: ServerProcess, terminal: Terminal
) -> None:
    with server.client() as client:
        create(client, "orders", 3)
        terminal.wait_for(r"orders +3 ")
        terminal.wait_for("no groups")
        terminal.press("t")
        terminal.wait_for("topics 1-1 of 1(?!.*requests)")
        terminal.press("h")
        terminal.wait_for("order by the next column")
        terminal.press("h")
        terminal.shown = ""
        terminal.resize(20, 180)
        terminal.wait_for(r"h help {90,}")
        produce(client, "orders", 0, b"value")
        terminal.wait_for(r"orders +3 [^\n]*[1-9]\d* B")
        terminal.press("q")
    assert terminal.ended() == 0


def test_the_live_view_outlives_the_broker(server: ServerProcess, terminal: Terminal) -> None:
    terminal.wait_for("1 broker")
    server.kill()
    terminal.wait_for("cannot reach|no answer")
    server.start()
    terminal.shown = ""
    terminal.wait_for(r"1 broker(?!.*(cannot reach|no answer))")
    terminal.signal(signal.SIGINT)
    assert terminal.ended() == 130


def test_the_live_view_gives_the_terminal_back_while_it_is_stopped_and_when_it_is_ended(
    terminal: Terminal,
) -> None:
    terminal.wait_for("1 broker")
    assert not terminal.is_as_it_was()
    terminal.signal(signal.SIGTSTP)
    eventually(terminal.is_stopped, 60)
    assert terminal.is_as_it_was()
    terminal.shown = ""
    terminal.signal(signal.SIGCONT)
    terminal.wait_for("1 broker")
    assert not terminal.is_as_it_was()
    terminal.signal(signal.SIGTERM)
    assert terminal.ended() == 128 + signal.SIGTERM


def test_a_live_view_of_nothing_ends_with_the_reason() -> None:
    terminal = Terminal("--timeout", "2", environment={"KBROKER_BOOTSTRAP": "127.0.0.1:1"})
    try:
        assert terminal.ended() == 3
        terminal.wait_for("cannot reach 127.0.0.1:1")
    finally:
        terminal.close()
