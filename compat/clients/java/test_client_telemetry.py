"""Client metrics (KIP-714): a Java producer pushes what kafka-client-metrics asks it for."""

from __future__ import annotations

from pathlib import Path

from compat.harness.broker import KBrokerProcess
from compat.harness.tools import KafkaTools


def test_a_java_producer_pushes_the_metrics_it_is_asked_for(kafka_tools: KafkaTools, tmp_path: Path) -> None:
    with KBrokerProcess({"kbroker.telemetry.directory": str(tmp_path)}) as server:
        subscription = ["--name", "producers", "--metrics", "org.apache.kafka.producer.", "--interval", "200"]
        match = ["--match", "client_software_name=apache-kafka-java,client_id=telemetry"]
        altered = kafka_tools.run(
            "kafka-client-metrics", "--bootstrap-server", server.bootstrap, "--alter", *subscription, *match
        )
        assert altered.exit_code == 0, altered.output
        sent = kafka_tools.run(
            "kafka-producer-perf-test",
            *("--topic", "metered", "--num-records", "500", "--record-size", "10", "--throughput", "500"),
            *("--command-property", f"bootstrap.servers={server.bootstrap}", "client.id=telemetry"),
        )
        assert sent.exit_code == 0, sent.output
        (pushed,) = tmp_path.glob("*.otlp")
        metrics = pushed.read_bytes()
        assert b"org.apache.kafka.producer.record.send.total" in metrics
        assert b"org.apache.kafka.consumer" not in metrics
        assert "Traceback" not in server.output()
