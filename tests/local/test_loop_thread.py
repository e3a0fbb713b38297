"""A broker for code without an event loop."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kbroker.local import ClosedError, LocalBroker, LoopThread, NewRecord, OpenError, TopicPartition
from kbroker.local.errors import UnknownTopicOrPartition


def test_calls_and_iterations_block_until_they_are_answered(tmp_path: Path) -> None:
    broker = LocalBroker(data=tmp_path / "data")
    with LoopThread(broker) as thread:
        thread.run(broker.publish_each([NewRecord("t", str(number)) for number in range(5)]))
        taken = []
        for record in thread.each(broker.subscribe("t", group="g")):
            taken.append(record.text())
            if len(taken) == 3:
                thread.run(record.commit())
                break
        assert taken == ["0", "1", "2"]
        with pytest.raises(UnknownTopicOrPartition):
            thread.run(broker.describe_topic("none"))
    with LoopThread(broker) as thread:
        assert thread.run(broker.committed("g"))[TopicPartition("t", 0)].offset == 3
        closed = broker.subscribe("t")
        thread.run(closed.close())
        assert list(thread.each(closed)) == []


def test_several_threads_may_ask() -> None:
    broker = LocalBroker()
    offsets: list[int] = []
    with LoopThread(broker) as thread:

        def publish() -> None:
            offsets.extend(thread.run(broker.publish("t", "x")).offset for _ in range(50))

        threads = [threading.Thread(target=publish) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert sorted(offsets) == list(range(200))


def test_what_cannot_be_opened_is_raised_where_it_was_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OpenError), LoopThread(LocalBroker(data=tmp_path / "file")):
        raise AssertionError
    broker = LocalBroker()
    thread = LoopThread(broker)
    with pytest.raises(ClosedError):
        thread.run(broker.topics())


def test_on_its_own_loop_it_does_not_wait_for_itself() -> None:
    broker = LocalBroker()
    with LoopThread(broker) as thread:

        async def wrong() -> None:
            thread.run(broker.topics())

        with pytest.raises(RuntimeError, match="awaited"):
            thread.run(wrong())
