"""Transactional clients that have nothing but HTTP, as processes of their own: to be killed or paused.

`writer` keeps a journal as `transactional_writer` does, `processor` copies as `transactional_processor` does.
A broker that is not there is asked again until it is; SIGTERM ends them after the transaction under way.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.support.http_client import Answer, HttpClient
from tests.torture.transactional_processor import BATCH, GROUP, INPUT, OUTPUT
from tests.torture.transactional_writer import PARTITIONS, TIMEOUT_MS, TOPIC

_AGAIN_SECONDS = 0.02
_IDLE_MS = 2000
_OUTCOMES = {  # Prepare: it is decided, and its partitions are being told
    **dict.fromkeys(("PrepareCommit", "CompleteCommit"), "committed"),
    **dict.fromkeys(("PrepareAbort", "CompleteAbort"), "aborted"),
}
_POLL = f"maxRecords={BATCH}&maxWaitMs=100&value=text"


class NotDone(Exception):
    """The transaction is not what it should be: it can only be aborted, if it is not yet."""


class Http:
    """Requests that are sent again until they are answered: only such as may come twice."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = HttpClient(url)

    def once(self, method: str, path: str, given: Any = None) -> Answer:
        try:
            return self._client.ask(method, path, json_body=given)
        except (OSError, HTTPException):
            self._client.close()
            self._client = HttpClient(self._url)
            raise

    def until_answered(self, method: str, path: str, given: Any = None) -> Answer:
        while True:
            try:
                answer = self.once(method, path, given)
            except (OSError, HTTPException):
                time.sleep(_AGAIN_SECONDS)
            else:
                if answer.status < 500 and not (answer.status >= 400 and answer.json.get("retriable")):
                    return answer
                time.sleep(_AGAIN_SECONDS)


class Transaction:
    def __init__(self, http: Http, transactional_id: str) -> None:
        self._http = http
        given = {"transactionalId": transactional_id, "timeoutMs": TIMEOUT_MS}
        begun = http.until_answered("POST", "/transactions", given)
        assert begun.status == 201, begun
        self._path = begun.headers["Location"]
        self.fenced = False

    def post(self, what: str, given: Any) -> None:
        """Once: whether what was not answered is done is not known, and need not be."""
        try:
            answer = self._http.once("POST", f"{self._path}/{what}", given)
        except (OSError, HTTPException) as error:
            raise NotDone from error
        if answer.status != 200:
            self.fenced = answer.json["error"] == "PRODUCER_FENCED"
            raise NotDone(answer)

    def end(self, how: str) -> str:
        """committed, aborted or unknown."""
        answer = self._http.until_answered("POST", f"{self._path}/{how}")
        if answer.status == 200:
            return _OUTCOMES[answer.json["state"]]
        self.fenced = answer.json["error"] == "PRODUCER_FENCED"
        transaction = answer.json.get("transaction")
        if transaction is not None and _OUTCOMES.get(transaction["state"]) == "aborted":
            return "aborted"
        if answer.json["error"] == "TRANSACTION_ABORTABLE" and how == "commit":
            return self.end("abort")
        assert self.fenced or answer.json["error"] == "TRANSACTIONAL_ID_NOT_FOUND", answer
        return "unknown"


class Client:
    def __init__(self, url: str, transactional_id: str) -> None:
        self.http = Http(url)
        self.transactional_id = transactional_id
        self.over = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self.over = True


class Writer(Client):
    def __init__(self, url: str, transactional_id: str, name: str, journal: Path) -> None:
        super().__init__(url, transactional_id)
        self._name = name
        self._journal = journal.open("a", buffering=1)
        self._chance = random.Random(name)

    def run(self) -> None:
        number = fenced = 0
        while not self.over:
            number += 1
            fenced = fenced + 1 if self._is_fenced(number) else 0
            if fenced:  # others work under this id: all of them would only fence each other
                time.sleep(self._chance.random() * min(0.02 * 2**fenced, 5))

    def _is_fenced(self, number: int) -> bool:
        """After one transaction, however it ended."""
        chosen = self._chance.sample(range(PARTITIONS), self._chance.randint(1, 3))
        counts = {partition: self._chance.randint(1, 4) for partition in chosen}
        self._note(begin=number, records=counts)
        transaction = Transaction(self.http, self.transactional_id)
        try:
            for partition, count in counts.items():
                values = [f"{self._name}:{number}:{index}" for index in range(count)]
                records = [{"topic": TOPIC, "partition": partition, "valueText": value} for value in values]
                transaction.post("messages", records)
        except NotDone:
            fenced = transaction.fenced
            if transaction.end("abort") == "aborted":
                self._note(aborted=number)
            return fenced
        if self._chance.random() < 0.2:
            if transaction.end("abort") == "aborted":
                self._note(aborted=number)
            return transaction.fenced
        self._note(committing=number)
        outcome = transaction.end("commit")
        if outcome != "unknown":
            self._note(**{outcome: number})
        return transaction.fenced

    def _note(self, **what: Any) -> None:
        self._journal.write(json.dumps(what) + "\n")


class Processor(Client):
    def run(self) -> None:
        consumer = self._consumer()
        while not self.over:
            polled = self.http.until_answered(
                "GET", f"{consumer}/records?maxRecords={BATCH}&maxWaitMs=100&value=text"
            )
            if polled.status != 200:  # it went with its broker, or was idle for too long
                consumer = self._consumer()
            elif records := polled.json["records"]:
                try:
                    self._copy(consumer, records)
                except NotDone:
                    self.http.until_answered("DELETE", consumer)
                    consumer = self._consumer()
        self.http.until_answered("DELETE", consumer)

    def _copy(self, consumer: str, records: list[Any]) -> None:
        transaction = Transaction(self.http, self.transactional_id)
        copies = [
            {"topic": OUTPUT, "partition": each["partition"], "valueText": each["valueText"]}
            for each in records
        ]
        try:
            transaction.post("messages", copies)
            transaction.post("offsets", {"groupId": GROUP, "consumer": consumer.rpartition("/")[2]})
        except NotDone:
            transaction.end("abort")
            raise
        if transaction.end("commit") != "committed":
            raise NotDone

    def _consumer(self) -> str:
        given = {
            "topics": [INPUT],
            "autoOffsetReset": "earliest",
            "autoCommit": False,
            "isolation": "read_committed",
            "idleMs": _IDLE_MS,
            "rebalanceTimeoutMs": _IDLE_MS,
        }
        made = self.http.until_answered("POST", f"/groups/{GROUP}/consumers", given)
        assert made.status == 201, made
        return str(made.headers["Location"])


if __name__ == "__main__":
    what, url, transactional_id, *rest = sys.argv[1:]
    if what == "writer":
        name, journal = rest
        Writer(url, transactional_id, name, Path(journal)).run()
    else:
        Processor(url, transactional_id).run()
