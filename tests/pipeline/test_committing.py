from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from kbroker.pipeline.committing import PAUSE_SECONDS, Committer
from kbroker.testing import KafkaBroker

from .declared import GOOD, load

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def committed(broker: KafkaBroker, group: str) -> dict[int, int]:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        found = admin.list_group_offsets([group])[group]
        return {
            where.partition: answer.offset
            for where, answer in found.items()
            if isinstance(where, TopicPartition)
        }
    finally:
        admin.close()


def test_progress_is_committed_as_a_group_and_a_refusal_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaBroker(topics={"orders": 2}) as broker:
        head = f"progress_group: lag\nbootstrap_servers: {broker.bootstrap_servers}\n"
        committer = Committer(load(tmp_path, head + GOOD))
        try:
            committer.commit("out", {"orders": {0: 5, 1: 7}}, now=0.0)
            assert committed(broker, "lag.out") == {0: 5, 1: 7}
            broker.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", times=None)
            for now in (1.0, 2.0 + PAUSE_SECONDS):
                committer.commit("out", {"orders": {0: 9, 1: 9}}, now=now)
            assert caplog.text.count("cannot commit progress") == 1, "told once"
            broker.heal()
            committer.commit("out", {"orders": {0: 9, 1: 9}}, now=3.0 + PAUSE_SECONDS)
            assert committed(broker, "lag.out") == {0: 5, 1: 7}, "not before the pause is over"
            committer.commit("out", {"orders": {0: 9, 1: 9}}, now=2.0 + 2 * PAUSE_SECONDS)
            assert committed(broker, "lag.out") == {0: 9, 1: 9}
            broker.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
            now = 3.0 + 2 * PAUSE_SECONDS
            committer.commit("out", {"orders": {0: 11, 1: 11}}, now=now)
            committer.finish({"out": {"orders": {0: 12, 1: 12}}})
            assert committed(broker, "lag.out") == {0: 12, 1: 12}, "the end of a run waits for no pause"
        finally:
            committer.close()


def test_without_a_group_nothing_is_asked_of_kafka(tmp_path: Path) -> None:
    Committer(load(tmp_path, f"bootstrap_servers: 127.0.0.1:1\n{GOOD}")).commit(
        "out", {"orders": {0: 1}}, 0.0
    )
