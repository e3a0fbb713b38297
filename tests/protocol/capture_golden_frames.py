"""Captures golden/ from a real Apache Kafka 4.3.1: `python tests/protocol/capture_golden_frames.py`.

Kafka's own tools and Python clients talk to the broker through recording proxies; then raw connections ask
every API at every version that the broker has. Of each (API, version) the first exchange and the largest one
are kept, if they are small. Run it again only to capture from another Kafka: ids and times differ every time.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from frame_recorder import Exchange, FrameRecorder
from golden_requests import TOPIC, request_values

from compat.harness import wire
from compat.harness.connection import Connection, ConnectionClosed
from compat.harness.kafka import RealKafka
from compat.harness.server import free_ports
from compat.harness.tools import KafkaTools, ToolTimeout
from kbroker.protocol.messages import API_NAMES, module_name

GOLDEN = Path(__file__).parent / "golden"
LARGEST = 3000  # bytes of request and response
TOKENS = ("CreateDelegationToken", "DescribeDelegationToken", "RenewDelegationToken", "ExpireDelegationToken")


class GoldenKafka(RealKafka):
    """A broker that answers everything: with an authorizer, a SASL listener and delegation tokens."""

    def __init__(self, plain_port: int, sasl_port: int) -> None:
        super().__init__()
        self.plain_proxy, self.sasl_proxy = plain_port, sasl_port
        (self.sasl_port,) = free_ports(1)

    def _server_properties(self, controller_port: int) -> str:
        login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="secret";'
        settings = {
            "listeners": f"PLAINTEXT://{self.bootstrap},SASL_PLAINTEXT://{self.host}:{self.sasl_port},"
            f"CONTROLLER://{self.host}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.host}:{self.plain_proxy},"
            f"SASL_PLAINTEXT://{self.host}:{self.sasl_proxy}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
            "CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
            "delegation.token.secret.key": "golden",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
        }
        return super()._server_properties(controller_port) + "".join(
            f"{k}={v}\n" for k, v in settings.items()
        )


TOOL_RUNS = """
kafka-topics --create --topic golden --partitions 2 --config retention.ms=-1
kafka-topics --create --topic short-lived
kafka-topics --alter --topic short-lived --partitions 3
kafka-topics --describe
kafka-topics --list
kafka-console-producer --topic golden --reader-property parse.key=true
kafka-producer-perf-test --topic golden --num-records 20 --record-size 30 --throughput -1 \\
    --transactional-id perf --transaction-duration-ms 1000
kafka-console-consumer --topic golden --from-beginning --group golden-group --max-messages 2
kafka-console-consumer --topic golden --from-beginning --group golden-consumer --max-messages 2 \\
    --command-property group.protocol=consumer
kafka-consumer-groups --describe --all-groups
kafka-consumer-groups --describe --all-groups --members
kafka-consumer-groups --list --state
kafka-consumer-groups --reset-offsets --group golden-group --all-topics --to-earliest --execute
kafka-consumer-groups --delete-offsets --group golden-group --topic golden
kafka-consumer-groups --delete --group golden-group
kafka-configs --entity-type groups --entity-name golden-share --alter \\
    --add-config share.auto.offset.reset=earliest
kafka-console-share-consumer --topic golden --group golden-share --max-messages 2
kafka-share-groups --describe --group golden-share
kafka-share-groups --describe --group golden-share --members
kafka-share-groups --reset-offsets --group golden-share --topic golden --to-earliest --execute
kafka-share-groups --delete-offsets --group golden-share --topic golden
kafka-share-groups --delete --group golden-share
kafka-get-offsets --topic golden
kafka-get-offsets --topic golden --time max-timestamp
kafka-delete-records --offset-json-file {delete}
kafka-log-dirs --describe --topic-list golden
kafka-configs --entity-type topics --entity-name golden --describe
kafka-configs --entity-type topics --entity-name golden --alter --add-config retention.ms=-1
kafka-configs --entity-type users --entity-name u --alter --add-config SCRAM-SHA-256=[password=x]
kafka-configs --entity-type clients --entity-name c --alter --add-config producer_byte_rate=1024
kafka-configs --entity-type users --describe
kafka-configs --entity-type clients --describe
kafka-transactions list
kafka-transactions describe --transactional-id perf
kafka-transactions describe-producers --topic golden --partition 0
kafka-features describe
kafka-features upgrade --feature metadata.version=30 --dry-run
kafka-cluster cluster-id
kafka-cluster list-endpoints
kafka-reassign-partitions --topics-to-move-json-file {topics} --broker-list 1 --generate
kafka-reassign-partitions --reassignment-json-file {reassign} --execute
kafka-reassign-partitions --list
kafka-leader-election --all-topic-partitions --election-type PREFERRED
kafka-client-metrics --list
kafka-metadata-quorum describe --status
kafka-acls --add --allow-principal User:a --operation Read --topic golden --force
kafka-acls --list
kafka-acls --remove --topic golden --force
kafka-broker-api-versions
kafka-topics --delete --topic short-lived
"""

TOOL_FILES = {
    "delete": {"version": 1, "partitions": [{"topic": TOPIC, "partition": 1, "offset": 1}]},
    "topics": {"version": 1, "topics": [{"topic": TOPIC}]},
    "reassign": {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [1]}]},
}


def run_tools(bootstrap: str, directory: Path) -> None:
    files = {name: directory / f"{name}.json" for name in TOOL_FILES}
    for name, content in TOOL_FILES.items():
        files[name].write_text(json.dumps(content))
    with KafkaTools() as tools:
        for line in TOOL_RUNS.replace("\\\n", "").strip().splitlines():
            tool, *arguments = shlex.split(line.format_map(files))
            position = 1 if tool == "kafka-cluster" else 0  # it wants the address after its subcommand
            arguments[position:position] = ["--bootstrap-server", bootstrap]
            with contextlib.suppress(ToolTimeout):
                result = tools.run(tool, *arguments, stdin="k\tv\nk2\tv2\n", timeout=60)
                if result.exit_code:
                    sys.stderr.write(f"{line}\n{result.output}\n")


def run_librdkafka(bootstrap: str) -> None:
    server = {"bootstrap.servers": bootstrap}
    for protocol in ("classic", "consumer"):
        producer = Producer({**server, "transactional.id": f"rd-{protocol}"})
        consumer = Consumer(
            {
                **server,
                "group.id": f"rd-{protocol}",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([TOPIC])
        poll_one(lambda consumer=consumer: consumer.poll(1.0))
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(TOPIC, b"value", b"key", headers=[("h", b"1")])
        offsets = [TopicPartition(TOPIC, 0, 1, metadata="note")]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        producer.commit_transaction()
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
    admin = confluent_kafka.admin.AdminClient(server)
    admin.list_consumer_groups().result()
    admin.describe_consumer_groups(["rd-classic"])["rd-classic"].result()
    admin.describe_configs([confluent_kafka.admin.ConfigResource("topic", TOPIC)])


def run_kafka_python(bootstrap: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type="gzip")
    for value in (b"one", None):
        producer.send(TOPIC, key=b"key", value=value, headers=[("h", b"x")]).get(20)
    producer.close()
    consumer = kafka.KafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id="python", auto_offset_reset="earliest"
    )
    poll_one(lambda: consumer.poll(1000))
    consumer.commit()
    consumer.close()


def poll_one(poll) -> None:
    deadline = time.monotonic() + 20
    while not poll() and time.monotonic() < deadline:
        pass


def ask_everything(bootstrap: str, sasl_bootstrap: str) -> None:
    """Every API at every version the broker has, from the definitions in Kafka's jar."""
    with Connection(bootstrap) as connection:
        answer = connection.ask("Metadata", 12, {"Topics": [{"Name": TOPIC}]})
        topic_id = answer["Topics"][0]["TopicId"]
        ranges = connection.ask(
            "ApiVersions", 3, {"ClientSoftwareName": "golden", "ClientSoftwareVersion": "1"}
        )
    values = request_values(topic_id)
    for row in ranges["ApiKeys"]:
        api = wire.apis()[API_NAMES[row["ApiKey"]]]
        versions = range(max(row["MinVersion"], api.request.versions.first), row["MaxVersion"] + 1)
        for version in versions:
            sasl = api.name in TOKENS
            with (
                contextlib.suppress(ConnectionClosed, TimeoutError),
                Connection(sasl_bootstrap if sasl else bootstrap, timeout=10) as connection,
            ):
                if sasl:
                    log_in(connection, version)
                wanted = fitting(api.request.fields, version, values.get(api.name, {}))
                connection.ask(api.name, version, wanted)


def log_in(connection: Connection, version: int) -> None:
    connection.ask("SaslHandshake", 1, {"Mechanism": "PLAIN"})
    connection.ask("SaslAuthenticate", min(version, 2) - 1, {"AuthBytes": b"\0admin\0secret"})


def fitting(fields: tuple[wire.Field, ...], version: int, values: dict[str, Any]) -> dict[str, Any]:
    """The part of these values that the version has."""
    found: dict[str, Any] = {}
    for field in fields:
        if version in field.versions and field.name in values:
            value = values[field.name]
            if field.fields and isinstance(value, list):
                value = [fitting(field.fields, version, each) for each in value]
            found[field.name] = value
    return found


def keep(exchanges: list[Exchange]) -> None:
    """Write one file per API: the first and the largest exchange of each version."""
    found: dict[tuple[int, int], list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.response is not None and exchange.api_key in API_NAMES:
            found[exchange.api_key, exchange.api_version].append(exchange)
    files: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for (api_key, version), every in sorted(found.items()):
        small = sorted(every, key=size)[: max(1, sum(size(each) <= LARGEST for each in every))]
        first = next(each for each in every if each in small)
        for each in [first] if first is small[-1] else [first, small[-1]]:
            row = {
                "version": version,
                "request": each.request.hex(),
                "response": (each.response or b"").hex(),
            }
            if row not in files[api_key]:
                files[api_key].append(row)
    for api_key, rows in files.items():
        lines = ",\n".join(json.dumps(row) for row in rows)
        (GOLDEN / f"{module_name(API_NAMES[api_key])}.json").write_text(f"[\n{lines}\n]\n")


def size(exchange: Exchange) -> int:
    return len(exchange.request) + len(exchange.response or b"")


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    with FrameRecorder() as plain, FrameRecorder() as sasl, GoldenKafka(plain.port, sasl.port) as broker:
        plain.target, sasl.target = (broker.host, broker.port), (broker.host, broker.sasl_port)
        bootstrap = f"127.0.0.1:{plain.port}"
        run_tools(bootstrap, broker.directory)
        run_librdkafka(bootstrap)
        run_kafka_python(bootstrap)
        ask_everything(bootstrap, f"127.0.0.1:{sasl.port}")
        keep(plain.exchanges + sasl.exchanges)


if __name__ == "__main__":
    main()
