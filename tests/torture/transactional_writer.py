"""A transactional producer as a process of its own, to be killed or paused; it keeps a journal.

Each transaction writes numbered records to several partitions and commits or aborts. A line of the journal is
JSON: {"begin": number, "records": {partition: count}}, {"committing": number}, {"committed": number} or
{"aborted": number}. SIGTERM ends it after the transaction under way.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

TOPIC = "history"
PARTITIONS = 4
TIMEOUT_MS = 4000
SECONDS = 30


class Writer:
    def __init__(self, bootstrap: str, transactional_id: str, name: str, journal: Path) -> None:
        self._bootstrap = bootstrap
        self._transactional_id = transactional_id
        self._name = name
        self._journal = journal.open("a", buffering=1)
        self._chance = random.Random(name)
        self._over = False
        signal.signal(signal.SIGTERM, self._stop)

    def run(self) -> None:
        producer = self._start()
        number = 0
        while not self._over:
            number += 1
            try:
                self._transaction(producer, number)
            except KafkaException as failure:
                error = failure.args[0]
                if error.txn_requires_abort() and self._aborted(producer, number):
                    continue
                producer = self._start()

    def _start(self) -> Producer:
        """Whatever was open under this transactional id is aborted by this."""
        while True:
            producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": self._transactional_id,
                    "transaction.timeout.ms": TIMEOUT_MS,
                    "message.timeout.ms": TIMEOUT_MS,
                    "linger.ms": 0,
                    "reconnect.backoff.ms": 10,
                    "reconnect.backoff.max.ms": 50,
                    "retry.backoff.ms": 10,
                    "log_level": 0,
                }
            )
            try:
                producer.init_transactions(SECONDS)
            except KafkaException:
                if self._over:
                    sys.exit(0)
                continue
            return producer

    def _transaction(self, producer: Producer, number: int) -> None:
        chosen = self._chance.sample(range(PARTITIONS), self._chance.randint(1, 3))
        counts = {partition: self._chance.randint(1, 4) for partition in chosen}
        self._note(begin=number, records=counts)
        producer.begin_transaction()
        for partition, count in counts.items():
            for index in range(count):
                value = f"{self._name}:{number}:{index}"
                producer.produce(TOPIC, value.encode(), partition=partition)
        if self._chance.random() < 0.2:
            producer.abort_transaction(SECONDS)
            self._note(aborted=number)
            return
        self._note(committing=number)
        while True:
            try:
                producer.commit_transaction(SECONDS)
                break
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise
        self._note(committed=number)

    def _aborted(self, producer: Producer, number: int) -> bool:
        try:
            producer.abort_transaction(SECONDS)
        except KafkaException:
            return False
        self._note(aborted=number)
        return True

    def _note(self, **what: Any) -> None:
        self._journal.write(json.dumps(what) + "\n")

    def _stop(self, *_: object) -> None:
        self._over = True


if __name__ == "__main__":
    bootstrap, transactional_id, name, journal = sys.argv[1:]
    Writer(bootstrap, transactional_id, name, Path(journal)).run()
