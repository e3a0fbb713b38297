"""Client metrics (KIP-714) that librdkafka pushes."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer

from compat.clients.confluent.members import QUIET
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.http_client import HttpClient
from tests.support.metrics import Samples, scrape
from tests.support.server_process import ServerProcess, eventually

CLIENT_METRICS, SET = 16, 0


def test_librdkafka_pushes_what_it_is_asked_for() -> None:
    with (
        ServerProcess("--in-memory", "--http-port", "0") as server,
        HttpClient(server.url) as http,
        server.client() as client,
    ):
        wanted = {"metrics": "*", "interval.ms": "100"}
        changes = [AlterableConfig(name, SET, value) for name, value in wanted.items()]
        resource = AlterConfigsResource(CLIENT_METRICS, "all", changes)
        client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        common = {"bootstrap.servers": server.bootstrap, **QUIET}
        producer = Producer({**common, "client.id": "sender"})
        consumer = Consumer({**common, "client.id": "reader", "group.id": "readers"})
        consumer.subscribe(["metered"])

        def told() -> Samples:
            producer.produce("metered", b"value")
            producer.poll(0)
            consumer.poll(0.1)
            return scrape(http)

        def both_push() -> bool:
            clients = {each["client_id"] for each in told().labels("kbroker_client_info")}
            return clients == {"sender", "reader"}

        eventually(both_push)
        eventually(
            lambda: told().sum("kbroker_client_producer_connection_creation_total", client_id="sender") > 0
        )
        found = told()
        assert found.families["kbroker_client_producer_connection_creation"] == "counter"
        infos = {each["client_id"]: each for each in found.labels("kbroker_client_info")}
        assert infos["sender"]["client_software_name"] == "confluent-kafka-python"
        assert found.of("kbroker_telemetry_left_out_series_total") == 0
        consumer.close()
        producer.flush(10)
        assert "Traceback" not in server.log()
