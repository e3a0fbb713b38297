"""kcat, an old librdkafka: what people reach for first."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed (Debian and Ubuntu: apt install kcat)"
)


@pytest.fixture
def kcat(kafka_server):
    """kcat(*arguments, stdin=""): its standard output"""

    def run(*arguments, stdin=""):
        done = subprocess.run(
            ["kcat", "-b", kafka_server.bootstrap, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done
        return done.stdout

    return run


def test_metadata_lists_the_broker_and_the_topic(kcat, kafka_server, topic):
    kcat("-P", "-t", topic, stdin="x\n")
    listed = json.loads(kcat("-L", "-J"))
    assert [(broker["id"], broker["name"]) for broker in listed["brokers"]] == [
        (kafka_server.node_id, kafka_server.bootstrap)
    ]
    (found,) = [each for each in listed["topics"] if each["topic"] == topic]
    assert [partition["leader"] for partition in found["partitions"]] == [kafka_server.node_id]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back_with_every_codec(kcat, topic, codec):
    lines = "".join(f"line {number} {'x' * 50}\n" for number in range(500))
    kcat("-P", "-t", topic, "-z", codec, stdin=lines)
    assert kcat("-C", "-t", topic, "-e", "-q") == lines


def test_keys_headers_and_offsets(kcat, topic):
    kcat("-P", "-t", topic, "-K:", "-H", "h=1", stdin="a:first\nb:second\n")
    assert kcat("-C", "-t", topic, "-e", "-q", "-f", "%o %k %s %h\n") == "0 a first h=1\n1 b second h=1\n"


def test_an_empty_value_is_a_tombstone_when_told_so(kcat, topic):
    kcat("-P", "-t", topic, "-K:", "-Z", stdin="key:\n")
    assert kcat("-C", "-t", topic, "-e", "-q", "-f", "%k %S\n") == "key -1\n"


def test_reading_from_an_offset_and_from_the_end(kcat, topic):
    kcat("-P", "-t", topic, stdin="".join(f"{number}\n" for number in range(10)))
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "7").split() == ["7", "8", "9"]
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "-2").split() == ["8", "9"]
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "beginning", "-c", "1").split() == ["0"]


def test_querying_offsets_by_time(kcat, topic):
    kcat("-P", "-t", topic, stdin="a\nb\n")
    assert kcat("-Q", "-t", f"{topic}:0:0").strip() == f"{topic} [0] offset 0"
    assert kcat("-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 2"
