"""A broker that is killed while it traces: what is in the ring afterwards is whole and goes on."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import confluent_kafka
import pytest

from tests.observability.traces import traceparent
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess


class Load:
    """Records with contexts, each in a trace of its own, whose numbers go on from load to load."""

    numbers = count(1)

    def __init__(self, bootstrap: str) -> None:
        self._client = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self.acknowledged: list[int] = []

    def until(self, acknowledged: int) -> None:
        while len(self.acknowledged) < acknowledged:
            number = next(self.numbers)

            def told(error: object, _: object, number: int = number) -> None:
                if error is None:
                    self.acknowledged.append(number)

            header = traceparent(f"{number:032x}")
            self._client.produce("orders", b"v", headers=[header], on_delivery=told)
            self._client.poll(0)

    def end(self) -> None:
        self._client.purge()
        self._client.flush(20)


@pytest.mark.slow
def test_spans_are_whole_after_each_kill_under_load(tmp_path: Path) -> None:
    settings = ("--set", "kbroker.trace.sampling=parent", "--set", "kbroker.trace.buffer.bytes=262144")
    newest = 0
    with ServerProcess("--data", str(tmp_path / "data"), "--http-port", "0", *settings) as server:
        for _ in range(5):
            load = Load(server.bootstrap)
            load.until(1500)
            with HttpClient(server.url) as http:  # the first of them wait no more
                assert len(http.get("/traces?limit=1000").json["traces"]) > 200
            load.until(3000)
            server.kill()
            load.end()
            server.start()
            with HttpClient(server.url) as http:
                traces = http.get("/traces?limit=1000").json["traces"]
                assert len(traces) > 200
                assert all(each["events"][0] == "received" for each in traces if each["spans"] == 2)
                before, newest = newest, max(int(each["traceId"], 16) for each in traces)
                assert newest > before
