"""The transactional producer of Kafka's Java client, and its consumer of committed records."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

import pytest

from compat.clients.transactions import Fenced, Transactions
from compat.harness import jars, java
from compat.harness.kafka import LOG4J2

pytestmark = pytest.mark.java
SOURCE = Path(__file__).with_name("TransactionalClient.java")


class Java:
    """A JVM that does what it is told line by line."""

    def __init__(self, bootstrap: str) -> None:
        classpath = jars.classpath("kafka")
        classes = java.compile_sources([SOURCE], "transactional-client", classpath)
        self._process = subprocess.Popen(
            java.command(
                "TransactionalClient",
                [bootstrap],
                classpath=f"{classes}:{classpath}",
                properties={"log4j2.configurationFile": LOG4J2.as_uri()},
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _do(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        outcome, _, rest = self._process.stdout.readline().rstrip("\n").partition(" ")
        if outcome == "ok":
            return rest
        if rest.startswith(("ProducerFenced", "InvalidProducerEpoch")):
            raise Fenced(rest)
        raise RuntimeError(rest or "the JVM ended")

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._do("init", transactional_id, timeout_ms)

    def begin(self) -> None:
        self._do("begin")

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do("send", topic, partition, value)

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        self._do("offset", group, topic, partition, offset)

    def commit(self) -> None:
        self._do("commit")

    def abort(self) -> None:
        self._do("abort")

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        isolation = "read_committed" if committed else "read_uncommitted"
        return self._do("read", topic, partitions, isolation).split()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self


class TestTransactions(Transactions):
    client = Java
