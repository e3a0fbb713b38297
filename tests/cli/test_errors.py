"""What went wrong is said in one line, with what to do next and the exit code of its kind."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest

from kbroker.cli import main
from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run


def run_alone(*command: str) -> tuple[int, str]:
    """Exit code and standard error of a process: kafka-python leaves sockets open that could not connect."""
    done = subprocess.run(
        [sys.executable, "-m", "kbroker", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list"),
        ("topic", "create", "t"),
        ("consume", "t"),
        ("consume", "t", "-g", "billing"),
        ("produce", "t"),
        ("lag",),
        ("config", "get", "broker", "1"),
    ],
)
def test_a_wrong_advertised_address_is_named_as_what_it_is(command: tuple[str, ...]) -> None:
    with KafkaBroker(configs={"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}) as broker:
        code, said = run_alone(*command, "--timeout", "1", "-b", broker.bootstrap_servers)
    assert code == 3
    assert "tells clients to connect to 127.0.0.1:1" in said
    assert "--advertise" in said
    assert "kbroker doctor" in said
    assert said.count("\n") == 1


def test_a_broker_that_is_not_there_is_told_where_to_look(run: Run) -> None:
    for command in (("config", "get", "broker", "7"), ("config", "set", "broker", "7", "log.retention.ms=5")):
        result = run(*command)
        assert result.exit_code == 1
        assert "there is no broker 7: 'kbroker cluster info'" in result.stderr


@pytest.mark.parametrize("command", [("topic", "list"), ("produce", "t"), ("consume", "t")])
def test_a_config_that_the_client_does_not_have_is_a_wrong_command_line(
    run: Run, command: tuple[str, ...]
) -> None:
    result = run(*command, "-X", "request.timeout=5")
    assert result.exit_code == 2
    assert "has no such config; did you mean request_timeout_ms?" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_security_protocol_that_does_not_fit_is_said(run: Run, broker: KafkaBroker) -> None:
    unknown = run("topic", "list", "-X", "security.protocol=TLS")
    assert unknown.exit_code == 2
    assert "SASL_PLAINTEXT" in unknown.stderr
    sasl = ("-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=a", "-X", "sasl.password=b")
    for protocol in ("SSL", "SASL_PLAINTEXT"):
        address = ("-b", broker.bootstrap_servers, "--timeout", "1")
        code, said = run_alone("topic", "list", *address, "-X", f"security.protocol={protocol}", *sasl)
        assert code == 3
        assert f"answers without TLS and SASL, not as security.protocol={protocol} asks" in said


def test_a_misspelled_config_is_answered_with_the_nearest(run: Run) -> None:
    run("topic", "create", "t")
    for command in (
        ("topic", "create", "u", "-c", "retentoin.ms=5"),
        ("topic", "alter", "t", "-c", "retentoin.ms=5"),
        ("config", "set", "topic", "t", "retentoin.ms=5"),
        ("config", "get", "topic", "t", "retentoin.ms"),
    ):
        result = run(*command)
        assert result.exit_code == 1, command
        assert "did you mean retention.ms?" in result.stderr, command
    applied = run("apply", "-", stdin=b"topics: {v: {configs: {retentoin.ms: 5}}}")
    assert applied.exit_code == 1
    assert "did you mean retention.ms?" in applied.stderr
    stored = run("config", "set", "broker", "1", "log.retentoin.ms=5")
    assert stored.exit_code == 0
    assert "only stored; did you mean log.retention.ms?" in stored.stderr


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (("topic", "create", "t", "--partitons", "3"), "--partitions"),
        (("topic", "crate", "t"), "create"),
        (("tpoic", "list"), "topic"),
        (("serve", "--prot", "9"), "--port"),
        (("produce", "t", "--codec", "zst"), "zstd"),
    ],
)
def test_a_misspelled_word_is_answered_with_the_nearest(
    command: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"did you mean {meant}?" in said
    assert "usage: kbroker" in said


def test_why_a_record_is_not_valid_is_said(run: Run) -> None:
    run("topic", "create", "c", "-p", "1", "-c", "cleanup.policy=compact")
    alone = run("produce", "c", stdin=b"x\n")
    lines = b'{"key": "a", "value": 1}\n{"value": 2}\n{"key": "b", "value": 3}\n'
    among_others = run("produce", "c", "--from-json", stdin=lines)
    for result in (alone, among_others):
        assert result.exit_code == 1
        assert "a compacted topic takes no record without a key (INVALID_RECORD)" in result.stderr


def test_something_that_is_not_a_kafka_is_a_broker_that_cannot_be_reached() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ending = threading.Event()

        def answer() -> None:
            other.settimeout(0.1)
            while not ending.is_set():
                try:
                    peer, _ = other.accept()
                except TimeoutError:
                    continue
                with peer:
                    peer.settimeout(1)
                    if peer.recv(100):
                        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            port = other.getsockname()[1]
            code, said = run_alone("topic", "list", "--timeout", "1", "-b", f"127.0.0.1:{port}")
        finally:
            ending.set()
            thread.join()
    assert code == 3
    assert "cannot reach" in said
