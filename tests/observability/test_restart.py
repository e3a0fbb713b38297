"""What /metrics tells of a broker that has just started, of logs that nobody has asked for yet."""

from __future__ import annotations

from pathlib import Path

from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.http_client import HttpClient
from tests.support.metrics import scrape
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess


def test_offsets_sizes_and_lag_of_logs_that_are_closed(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path / "data"), "--http-port", "0")
    with ServerProcess(*arguments) as server:
        with server.client() as client:
            create(client, "t", 2)
            for _ in range(3):
                produce(client, "t", 1, b"value")
            commit = OffsetCommitRequestPartition(1, 1, committed_metadata="")
            client.ask(
                OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=[commit])]), 8
            )
        with HttpClient(server.url) as http:
            before = scrape(http)
        assert server.stop() == 0
        server.start()
        with HttpClient(server.url) as http:
            found = scrape(http)
    at = {"topic": "t", "partition": "1"}
    for name in (
        "kafka_topic_partition_current_offset",
        "kafka_topic_partition_oldest_offset",
        "kafka_log_log_size",
    ):
        assert found.of(name, **at) == before.of(name, **at)
    assert found.of("kafka_topic_partition_current_offset", **at) == 3
    assert found.of("kafka_consumergroup_lag", consumergroup="g", **at) == 2
    lag = found.of("kbroker_consumergroup_lag_seconds", consumergroup="g", **at)
    assert lag >= before.of("kbroker_consumergroup_lag_seconds", consumergroup="g", **at)
    assert found.of("kafka_server_brokertopicmetrics_messagesin_total") == 0, "counters begin anew"
    assert found.of("kbroker_disk_total_bytes") >= found.of("kbroker_disk_usable_bytes") > 0
