"""kbroker produce and consume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat.clients.cli.conftest import Run
from compat.harness.brokers import Server


@pytest.fixture
def filled(run: Run, topic: str) -> str:
    """A topic of one partition with the values 0 to 9, one second apart."""
    run("topic", "create", topic, "-p", "1", "-c", "retention.ms=-1")  # its timestamps are old
    lines = [json.dumps({"value": str(n), "timestamp": 1_700_000_000_000 + n * 1000}) for n in range(10)]
    assert run("produce", topic, "--from-json", stdin="\n".join(lines).encode()).exit_code == 0
    return topic


def test_lines_go_in_and_come_out(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    produced = run("produce", topic, stdin=b"one\ntwo\n\nlast without newline")
    assert produced.stderr == f"4 records written to {topic}\n"
    assert run("consume", topic).stdout == "one\ntwo\n\nlast without newline\n"


def test_keys_headers_partition_and_tombstones(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "2")
    run("produce", topic, "-K", ":", "-H", "a=1", "-H", "b=", "-p", "1", "-Z", stdin=b"k1:v:1\nk2:\n")
    first, second = run("consume", topic, "--json").json_lines
    assert (first["key"], first["value"], first["partition"]) == ("k1", "v:1", 1)
    assert first["headers"] == [["a", "1"], ["b", ""]]
    assert (second["key"], second["value"]) == ("k2", None)
    missing = run("produce", topic, "-K", ":", stdin=b"no separator\n")
    assert missing.exit_code == 1
    assert "line 1" in missing.stderr


def test_a_file_is_one_record_or_a_record_per_line(run: Run, topic: str, tmp_path: Path) -> None:
    run("topic", "create", topic, "-p", "1")
    file = tmp_path / "input"
    file.write_bytes(b"\x00\xff\n\n")
    run("produce", topic, "--file", str(file), "--whole", "-k", "whole")
    (record,) = run("consume", topic, "--json").json_lines
    assert record["value"] == {"base64": "AP8KCg=="}
    assert record["key"] == "whole"
    assert run("produce", topic, "--file", str(tmp_path / "missing")).exit_code == 1


def test_json_goes_round(run: Run, filled: str, topic: str) -> None:
    other = f"{topic}-copy"
    run("topic", "create", other, "-p", "1", "-c", "retention.ms=-1")
    printed = run("consume", filled, "--json").stdout
    acknowledged = run("produce", other, "--from-json", "--json", stdin=printed.encode())
    assert [line["offset"] for line in acknowledged.json_lines] == list(range(10))
    again = run("consume", other, "--json").stdout
    assert again == printed.replace(f'"topic": "{topic}"', f'"topic": "{other}"')
    wrong = run("produce", other, "--from-json", stdin=b'{"value": 1}\nnot json\n')
    assert "line 2 is not a record" in wrong.stderr


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec(run: Run, topic: str, codec: str) -> None:
    run("topic", "create", topic, "-p", "1")
    assert run("produce", topic, "-z", codec, stdin=b"x" * 1000).exit_code == 0
    assert run("consume", topic).stdout == "x" * 1000 + "\n"


def test_where_reading_begins_and_ends(run: Run, filled: str) -> None:
    for arguments, expected in (
        (("-o", "beginning"), "0123456789"),
        (("-o", "end"), ""),
        (("-o", "7"), "789"),
        (("-o", "-2"), "89"),
        (("-o", "-200"), "0123456789"),
        (("-o", "@1700000006500"), "789"),
        (("-o", "@2999-01-01T00:00:00Z"), ""),
        (("-n", "3"), "012"),
        (("-o", "4", "-n", "2"), "45"),
        (("-n", "3", "--follow"), "012"),
    ):
        result = run("consume", filled, "-f", "%s", *arguments)
        assert (result.exit_code, result.stdout) == (0, expected), arguments


def test_formats_are_kcats(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1", "-c", "retention.ms=-1")  # its timestamps are old
    run("produce", topic, "-k", "key", "-H", "n=v", "--timestamp", "1700000000000", stdin=b"value\n")
    result = run("consume", topic, "-f", r"%t[%p]@%o %T %k(%K)=%s(%S) %h 100%%\t\x41\n")
    assert result.stdout == f"{topic}[0]@0 1700000000000 key(3)=value(5) n=v 100%\tA\n"
    assert "%q is no field" in run("consume", topic, "-f", "%q").stderr


def test_a_group_continues_where_it_was(run: Run, filled: str, topic: str) -> None:
    group = f"{topic}-group"
    assert run("consume", filled, "-g", group, "-n", "4", "-f", "%s").stdout == "0123"
    assert run("consume", filled, "-g", group, "-f", "%s").stdout == "456789"
    assert run("consume", filled, "-g", group, "-f", "%s").stdout == ""
    assert run("consume", filled, "-g", group, "-o", "-1", "-f", "%s").stdout == "9"


def test_aborted_records_are_not_shown_unless_wanted(run: Run, topic: str, kafka_server: Server) -> None:
    run("topic", "create", topic, "-p", "1")
    producer = Producer({"bootstrap.servers": kafka_server.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for value, end in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(30)
        end(30)
    assert run("consume", topic).stdout == "kept\n"
    assert run("consume", topic, "--read-uncommitted").stdout == "kept\ndropped\n"


def test_what_cannot_be_written_is_said(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-c", "max.message.bytes=100")
    large = run("produce", topic, stdin=b"x" * 1000)
    assert large.exit_code == 1
    assert "MESSAGE_TOO_LARGE" in large.stderr
    assert "max.message.bytes" in large.stderr
    nowhere = run("produce", topic, "-p", "9", stdin=b"x")
    assert nowhere.exit_code == 1
    assert "partition 9" in nowhere.stderr


def test_partitions_that_do_not_exist_are_said(run: Run, filled: str) -> None:
    assert "has no partition 3" in run("consume", filled, "-p", "3").stderr
    assert run("consume", filled, "-p", "0", "-n", "1").stdout == "0\n"
