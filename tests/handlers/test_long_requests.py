"""Whatever list of a request is long, its work is done in small pieces: in between, others have their turn.

Work is counted in calls of functions, which a slow machine does not change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.requests.apis import APIS, Api
from kbroker.requests.long_request import LongRequest
from kbroker.requests.long_requests import LongRequests, Steps
from tests.handlers.conftest import Cluster
from tests.server.largest_requests import Filler

SIZE_BYTES = 60_000
MAX_CALLS = 40_000  # without a pause; some milliseconds


class CountedWork(LongRequests):
    """Does everything at once, and counts the calls from one pause to the next."""

    def __init__(self) -> None:
        self._calls = 0
        self.most_calls = 0

    def run(self, steps: Steps[Any]) -> Any:
        outer, self._calls = self._calls, 0
        try:
            while True:
                waited_for = next(steps)
                if waited_for is not None and not waited_for.done:
                    pytest.fail("it waits for something")
                self._pause()
        except StopIteration as end:
            return end.value
        finally:
            self._pause()
            self._calls = outer

    def _pause(self) -> None:
        self.most_calls = max(self.most_calls, self._calls)
        self._calls = 0

    def count(self, _: FrameType, event: str, __: object) -> None:
        if event in ("call", "c_call"):
            self._calls += 1


def requests(cluster: Cluster, api: Api) -> Iterator[tuple[str, Any]]:
    topic = cluster.broker.topics.get("t")
    assert topic is not None
    return Filler("t", topic.topic_id, "g", SIZE_BYTES).requests(api.key, api.max_version)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_long_list_is_worked_on_in_small_pieces(cluster: Cluster, api: Api) -> None:
    cluster.create("t", 20)
    version = api.max_version
    for what, request in requests(cluster, api):
        header = RequestHeader(api.key, version, 7, "test")
        frame = encode_bytes(header, request_header_version(api.key, version)) + encode_bytes(
            request, version
        )
        answer, most_calls = _answer(cluster, frame)
        assert sum(map(len, answer)) > 0, what
        assert most_calls < MAX_CALLS, what


def _answer(cluster: Cluster, frame: bytes) -> tuple[list[Any], int]:
    """What is answered the second time (codecs are made the first time), and the calls without a pause."""
    broker = cluster.broker
    for counted in (False, True):
        work = broker.long_requests = CountedWork()
        sys.setprofile(work.count if counted else None)
        try:
            answer = LongRequest(
                memoryview(bytearray(frame)), cluster.session(), cluster.now_ms, broker
            ).run()
        finally:
            sys.setprofile(None)
        assert not isinstance(answer, Pending)
    return answer, work.most_calls
