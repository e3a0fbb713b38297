"""Which value of a setting is in force, and where it comes from."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.definition import BOOLEAN, LIST, LONG, Field, InvalidConfig, honoured
from kbroker.config.errors import SettingError
from kbroker.config.settings import Settings, environment_name
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.storage.config import LogConfig

# The lines of a Kafka distribution's config/server.properties, as far as they say something.
SERVER_PROPERTIES = """
############################# Server Basics #############################
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
############################# Socket Server Settings #############################
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
############################# Log Basics #############################
log.dirs=/tmp/kraft-combined-logs
num.partitions=4
num.recovery.threads.per.data.dir=1
############################# Internal Topic Settings  #############################
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
transaction.state.log.replication.factor=1
############################# Log Retention Policy #############################
log.retention.hours=24
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
# of a plug-in, and a slip
confluent.license.topic=_license
log.retenton.bytes=1
"""


@pytest.fixture
def properties(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES)
    return path


def test_a_kafka_server_properties_file_is_taken_as_it_is(properties):
    settings = Settings.load(properties)
    assert settings["node.id"] == settings["broker.id"] == 7
    assert settings["num.partitions"] == 4
    assert [str(listener) for listener in settings.listeners] == ["PLAINTEXT://:9092"]
    assert settings.advertised_address("PLAINTEXT") == ("localhost", 9092)
    assert settings.topic_default("retention.ms") == 24 * 3_600_000
    assert str(settings.data_directory) == "/tmp/kraft-combined-logs"


def test_one_warning_lists_what_a_properties_file_sets_in_vain(properties):
    warning = Settings.load(properties).warning
    assert "num.io.threads, num.network.threads" in warning
    assert "controller.quorum.bootstrap.servers" in warning
    assert (
        "unknown: confluent.license.topic, log.retenton.bytes; did you mean log.retention.bytes?" in warning
    )
    assert "num.partitions" not in warning
    assert "\n" not in warning


def test_flags_beat_the_environment_and_the_environment_beats_the_file(tmp_path):
    path = tmp_path / "kbroker.yaml"
    path.write_text("num.partitions: 2\nmessage.max.bytes: 2000\nfetch.max.bytes: 2048\n")
    settings = Settings.load(
        path,
        environ={"KBROKER_NUM_PARTITIONS": "3", "KBROKER_MESSAGE_MAX_BYTES": "3000", "PATH": "/bin"},
        flags={"num.partitions": "4"},
    )
    assert settings["num.partitions"] == 4
    assert settings["message.max.bytes"] == 3000
    assert settings["fetch.max.bytes"] == 2048
    assert settings["group.max.size"] == BROKER_CONFIGS["group.max.size"].default


def test_configs_altered_at_run_time_beat_all_and_this_brokers_beat_the_clusters():
    settings = Settings.load(flags={"message.max.bytes": "1", "log.retention.ms": "1"})
    settings.replace_dynamic({"message.max.bytes": "2", "log.retention.ms": "2"}, {"log.retention.ms": "3"})
    assert (settings["message.max.bytes"], settings["log.retention.ms"]) == (2, 3)
    assert settings.topic_config({}).retention_ms == 3
    settings.replace_dynamic({}, {})
    assert (settings["message.max.bytes"], settings["log.retention.ms"]) == (1, 1)
    assert settings.topic_config({}).retention_ms == 1


def test_a_stronger_layer_hides_the_same_quantity_in_another_unit(tmp_path):
    path = tmp_path / "kbroker.yaml"
    path.write_text("log.retention.ms: 1000\n")
    environ = {"KBROKER_LOG_RETENTION_HOURS": "2"}
    assert Settings.load(path, environ=environ).topic_default("retention.ms") == 7_200_000
    assert Settings.load(path).topic_default("retention.ms") == 1000


def test_within_a_layer_the_finer_unit_wins():
    flags = {"log.retention.hours": "1", "log.retention.minutes": "1", "log.roll.hours": "2"}
    settings = Settings.load(flags=flags)
    assert settings.topic_default("retention.ms") == 60_000
    assert settings.topic_default("segment.ms") == 7_200_000


def test_broker_id_is_the_older_name_of_node_id():
    assert Settings.load(flags={"broker.id": "5"})["node.id"] == 5
    assert Settings.load(environ={"KBROKER_BROKER_ID": "5"}, flags={"node.id": "6"})["broker.id"] == 6


def test_every_setting_has_its_own_environment_variable():
    assert environment_name("log.retention.ms") == "KBROKER_LOG_RETENTION_MS"
    assert environment_name("kbroker.fsync") == "KBROKER_FSYNC"
    assert len({environment_name(name) for name in BROKER_CONFIGS}) == len(BROKER_CONFIGS)
    assert Settings.load(environ={"KBROKER_FSYNC": "true"})["kbroker.fsync"] is True


def test_variables_that_kubernetes_makes_of_a_service_are_no_settings():
    environ = {
        "KBROKER_PORT": "tcp://10.0.0.1:9092",
        "KBROKER_PORT_9092_TCP_ADDR": "10.0.0.1",
        "KBROKER_SERVICE_HOST": "10.0.0.1",
        "KBROKER_SERVICE_PORT_KAFKA": "9092",
    }
    assert Settings.load(environ=environ).static == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"flags": {"num.partition": "3"}},
            "the command line: unknown setting num.partition; did you mean num.partitions?",
        ),
        (
            {"environ": {"KBROKER_NUM_PARTITION": "3"}},
            "the environment: unknown setting KBROKER_NUM_PARTITION; did you mean KBROKER_NUM_PARTITIONS?",
        ),
        ({"flags": {"xyzzy": "3"}}, "the command line: unknown setting xyzzy"),
        (
            {"flags": {"num.partitions": "0"}},
            'the command line: num.partitions: "0" is too small, the least is 1',
        ),
        (
            {"environ": {"KBROKER_NODE_ID": "one"}},
            'the environment: node.id: "one" is not a whole number',
        ),
        (
            {"flags": {"log.retention.ms": "0"}},
            "log.retention.ms: 0 keeps nothing; give at least 1, or -1 for no limit",
        ),
    ],
)
def test_a_setting_that_cannot_be_taken_is_explained(arguments, message):
    with pytest.raises(SettingError) as error:
        Settings.load(**arguments)
    assert str(error.value) == message


def test_an_unknown_setting_in_a_yaml_file_names_the_file(tmp_path):
    path = tmp_path / "kbroker.yaml"
    path.write_text("log: {retention: {mss: 5}}\n")
    with pytest.raises(
        SettingError,
        match=r"kbroker\.yaml: unknown setting log\.retention\.mss; did you mean log\.retention\.ms",
    ):
        Settings.load(path)


def test_of_several_data_directories_the_first_is_used_and_the_rest_are_mentioned():
    settings = Settings.load(flags={"log.dirs": "/a,/b"})
    assert str(settings.data_directory) == "/a"
    assert settings.warning == "log.dirs: only /a is used"
    assert str(Settings.load(flags={"log.dir": "/c"}).data_directory) == "/c"


def test_nothing_set_means_nothing_to_warn_of():
    settings = Settings.load()
    assert settings.warning is None
    assert settings.topic_config({}) == LogConfig()


def test_a_topics_own_configs_go_into_its_log_config():
    settings = Settings.load(flags={"log.segment.bytes": "2000000", "log.cleanup.policy": "compact"})
    config = settings.topic_config({"cleanup.policy": "delete, compact", "retention.ms": "-1"})
    assert config.cleanup_policy == frozenset(("compact", "delete"))
    assert (config.retention_ms, config.segment_bytes) == (-1, 2_000_000)
    assert settings.topic_config({}).cleanup_policy == frozenset(("compact",))


@dataclass(frozen=True)
class TableConfig:
    """A part of a broker that is no log, with configs of its own."""

    enabled: bool = False
    partition_by: tuple[str, ...] = ()
    commit_interval_ms: int = 60_000


def test_a_part_of_the_broker_that_is_no_log_has_its_configs_in_a_dataclass_of_its_own(monkeypatch):
    columns = honoured("table.partition.by", LIST, Field(TableConfig, "partition_by"), "Columns.")
    enabled = honoured("table.enable", BOOLEAN, Field(TableConfig, "enabled"), "Whether there is one.")
    interval = honoured("table.commit.ms", LONG, Field(TableConfig, "commit_interval_ms"), "How often.")
    monkeypatch.setitem(TOPIC_CONFIGS, columns.name, columns)
    monkeypatch.setitem(TOPIC_CONFIGS, enabled.name, enabled)
    monkeypatch.setitem(BROKER_CONFIGS, interval.name, interval)
    settings = Settings.load(flags={"table.commit.ms": "5"})
    assert settings.typed(TableConfig, {"table.enable": "true", "table.partition.by": "day, shop"}) == (
        TableConfig(enabled=True, partition_by=("day", "shop"), commit_interval_ms=5)
    )
    assert settings.topic_config({"table.enable": "true"}) == LogConfig()


def test_a_definition_that_names_a_field_which_is_not_there_raises_at_once():
    with pytest.raises(LookupError, match="TableConfig has no field enable for a config"):
        honoured("table.enable", BOOLEAN, Field(TableConfig, "enable"), "Whether there is one.")


def test_tests_may_ask_for_segments_below_kafkas_floor():
    assert Settings.load().topic_config({"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_negative_retention_is_unlimited():
    assert Settings.load(flags={"log.retention.ms": "-5"}).topic_config({}).retention_ms == -1


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"nope": "1", "retention.ms": "x"}, "nope: topics have no such config"),
        ({"retention.ms": "x"}, 'retention.ms: "x" is not a whole number'),
        (
            {"min.compaction.lag.ms": "2000", "max.compaction.lag.ms": "1000"},
            "min.compaction.lag.ms: 2000 is more than max.compaction.lag.ms, 1000",
        ),
        (
            {"remote.storage.enable": "true"},
            "remote.storage.enable: this broker has no remote storage",
        ),
    ],
)
def test_configs_that_a_topic_may_not_have_are_refused(configs, message):
    with pytest.raises(InvalidConfig) as refusal:
        Settings.load().check_topic_configs(configs)
    assert str(refusal.value) == message


def test_loading_settings_does_not_load_yaml():
    code = (
        "import sys; import kbroker.config.settings as s; s.Settings.load(); assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_listener_may_have_settings_of_its_own_and_so_may_a_mechanism_there() -> None:
    flags = {
        "ssl.keystore.type": "PEM",
        "listener.name.internal.ssl.keystore.type": "PKCS12",
        "listener.name.internal.scram-sha-256.ssl.keystore.type": "JKS",
    }
    settings = Settings.load(flags=flags)
    assert settings.of_listener("EXTERNAL", "ssl.keystore.type") == "PEM"
    assert settings.of_listener("INTERNAL", "ssl.keystore.type") == "PKCS12"
    assert settings.of_listener("INTERNAL", "ssl.keystore.type", "PLAIN") == "PKCS12"
    assert settings.of_listener("INTERNAL", "ssl.keystore.type", "SCRAM-SHA-256") == "JKS"
    assert settings.of_listener("INTERNAL", "sasl.server.max.receive.size") == 524_288


def test_a_setting_of_a_listener_must_be_known_too() -> None:
    with pytest.raises(SettingError, match=r"unknown setting listener\.name\.internal\.no\.such"):
        Settings.load(flags={"listener.name.internal.no.such": "x"})
