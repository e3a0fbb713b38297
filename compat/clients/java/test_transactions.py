"""The transactional producer of Kafka's Java client, and its consumer of committed records."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pytest

from compat.clients.transactions import Fenced, Transactions
from compat.harness.java_program import JavaError, JavaProgram

pytestmark = pytest.mark.java
SOURCE = Path(__file__).with_name("TransactionalClient.java")


class Java:
    def __init__(self, bootstrap: str) -> None:
        self._program = JavaProgram(SOURCE, bootstrap)

    def _do(self, *words: object) -> str:
        try:
            return self._program.do(*words)
        except JavaError as error:
            if str(error).startswith(("ProducerFenced", "InvalidProducerEpoch")):
                raise Fenced(str(error)) from error
            raise

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
        self._program.end()

    def __enter__(self) -> Self:
        return self


class TestTransactions(Transactions):
    client = Java
