"""dump, verify and import on directories that kbroker left."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from kbroker.cli import main
from kbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from kbroker.testing import KafkaBroker
from kbroker.testing.broker import Record as Seen
from tests.support.server_process import ServerProcess

BATCHES = 40
CODECS = (0, 1, 2, 3, 4)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one topic in several segments, cleanly closed."""
    data = tmp_path_factory.mktemp("left") / "data"
    with ServerProcess("--data", str(data)) as server:
        with server.client() as client:
            configs = [
                CreatableTopicConfig("internal.segment.bytes", "6000"),
                CreatableTopicConfig("index.interval.bytes", "500"),
                CreatableTopicConfig("retention.ms", "-1"),
            ]
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
            assert client.ask(CreateTopicsRequest(topics=[topic]), 5).topics[0].error_code == 0
            for number in range(BATCHES):
                records = [
                    Record(1_700_000_000_000 + number * 10, b"k%d" % each, os.urandom(150), ())
                    for each in range(3)
                ]
                batch = build_batch(records, codec=CODECS[number % len(CODECS)])
                part = PartitionProduceData(index=0, records=batch)
                asked = ProduceRequest(
                    acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[part])]
                )
                assert client.ask(asked, 9).responses[0].partition_responses[0].error_code == 0
        server.stop()
    return data


@pytest.fixture
def data(left: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(left, tmp_path / "data"))


def problems(data: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    code = main(["verify", str(data), "--json", *arguments])
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["problems"]
    assert code == (4 if found else 0)
    return found


def records_of(data: Path) -> list[Seen]:
    with KafkaBroker(data=data) as broker:
        return broker.records("t")


def logs(data: Path) -> list[Path]:
    return sorted((data / "t-0").glob("*.log"))


def test_what_a_broker_left_is_well(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(logs(data)) > 2
    assert problems(data, capsys, "--records") == []
    assert main(["verify", str(data)]) == 0
    assert f"1 partition, {BATCHES} batches" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_wrong_index_is_found_and_made_again(
    data: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    index = logs(data)[1].with_suffix(suffix)
    right = index.read_bytes()
    assert len(right) >= 24
    index.write_bytes(bytes([0x7F]) + right[1:])
    (found,) = problems(data, capsys)
    assert (found["file"], found["damage"]) == (index.name, "derived")
    assert problems(data, capsys, "--repair") == []
    assert len(records_of(data)) == BATCHES * 3


def test_missing_and_unreadable_derived_files_are_made_again(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs(data)[0].with_suffix(".index").unlink()
    (data / "t-0" / "leader-epoch-checkpoint").write_text("nonsense")
    assert len(problems(data, capsys)) == 2
    assert problems(data, capsys, "--repair") == []
    assert len(records_of(data)) == BATCHES * 3


def test_a_torn_end_is_cut_and_the_leader_epoch_rises(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = logs(data)[-1]
    last.write_bytes(last.read_bytes()[:-20])
    (found,) = problems(data, capsys)
    assert found["damage"] == "tail"
    lost = f"offsets {(BATCHES - 1) * 3} to {BATCHES * 3 - 1} are lost"
    assert lost in found["problem"]
    (found,) = problems(data, capsys, "--repair")  # it stays lost
    assert (found["damage"], lost in found["problem"]) == ("records", True)
    with ServerProcess("--data", str(data)) as server:
        assert main(["topic", "describe", "t", "--json", "-b", server.bootstrap]) == 0
        (partition,) = json.loads(capsys.readouterr().out)[0]["partitions"]
        assert partition["log_end_offset"] == BATCHES * 3  # no offset is given twice
        assert partition["leader_epoch"] == 1


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one topic in several segments, whose broker was killed."""
    data = tmp_path_factory.mktemp("killed") / "data"
    with ServerProcess("--data", str(data)) as server:
        produce(server, 40)
        server.kill()
    return data


def produce(server: ServerProcess, batches: int, records: int = 3, segment_bytes: int = 6000) -> None:
    with server.client() as client:
        configs = [
            CreatableTopicConfig("internal.segment.bytes", str(segment_bytes)),
            CreatableTopicConfig("retention.ms", "-1"),
        ]
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
        assert client.ask(CreateTopicsRequest(topics=[topic]), 5).topics[0].error_code == 0
        for number in range(batches):
            values = [
                Record(1_700_000_000_000 + number * 10, b"k", b"%d" % each + bytes(150), ())
                for each in range(records)
            ]
            part = PartitionProduceData(index=0, records=build_batch(values))
            asked = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[part])])
            assert client.ask(asked, 9).responses[0].partition_responses[0].error_code == 0


def test_what_a_killed_broker_left_is_no_damage(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    assert problems(data, capsys) == []
    last = logs(data)[-1]
    last.write_bytes(last.read_bytes()[:-20])  # torn
    assert problems(data, capsys) == []
    assert main(["verify", str(data)]) == 0
    assert "normal after a stop that was not clean" in capsys.readouterr().err
    assert problems(data, capsys, "--repair") == []


def test_a_damaged_last_batch_is_not_taken_for_a_torn_one(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    last = logs(data)[-1]
    content = bytearray(last.read_bytes())
    content[-20] ^= 1
    last.write_bytes(content)
    for arguments in ([], ["--repair"]):
        (found,) = problems(data, capsys, *arguments)
        assert (found["damage"], found["problem"][:31]) == ("records", "offsets 117 to 119 are lost: at")


@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_segment_that_is_missing_is_found(
    data: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    bases = [int(path.stem) for path in logs(data)] + [BATCHES * 3]
    logs(data)[number].unlink()
    lost = f"offsets {bases[:-1][number]} to {bases[1:][number] - 1} are lost"
    (found,) = problems(data, capsys)
    assert (found["damage"], lost in found["problem"]) == ("records", True), found
    (found,) = problems(data, capsys, "--repair")
    assert lost in found["problem"]
    assert main(["verify", str(data), "--repair"]) == 4
    assert f"t-0: {lost}" in capsys.readouterr().err


@pytest.mark.parametrize("number", [0, 1])
def test_an_older_segment_that_a_killed_broker_had_is_missed(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    data = Path(shutil.copytree(killed, tmp_path / "data"))
    logs(data)[number].unlink()
    (found,) = problems(data, capsys)
    assert (found["damage"], "are lost" in found["problem"]) == ("records", True)


def test_a_partition_that_is_missing_is_found(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(data / "t-0")
    (found,) = problems(data, capsys)
    assert found["partition"] == "t-0"
    assert f"offsets 0 to {BATCHES * 3 - 1} are lost" in found["problem"]
    with KafkaBroker(data=data) as broker:
        assert "the directory of t-0 is gone" in broker.log()


@pytest.mark.parametrize("position", [8, 9, 10, 11])
def test_a_damaged_length_costs_one_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], position: int
) -> None:
    data = tmp_path / "data"
    with ServerProcess("--data", str(data)) as server:
        produce(server, 11, 90, 10**6)
        server.stop()
    (log,) = logs(data)
    content = bytearray(log.read_bytes())
    size = len(content) // 11
    content[size + position] ^= 1
    log.write_bytes(content)
    for arguments in ([], ["--repair"], ["--repair"]):
        (found,) = problems(data, capsys, *arguments)
        assert (found["damage"], found["problem"][:30]) == ("records", "offsets 90 to 179 are lost: at")
    assert log.stat().st_size == len(content)
    with ServerProcess("--data", str(data)) as server:
        assert main(["consume", "t", "-b", server.bootstrap, "-o", "180", "-n", "810"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 810


def test_damaged_records_are_found_and_the_others_stay(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = logs(data)[0]
    content = bytearray(first.read_bytes())
    content[100] ^= 0xFF
    first.write_bytes(content)
    (found,) = problems(data, capsys)
    assert found["damage"] == "records"
    assert [each["damage"] for each in problems(data, capsys, "--repair")] == ["records"]
    assert main(["dump", str(logs(data)[-1])]) == 0
    assert main(["dump", str(first)]) == 4


def test_a_directory_of_another_topic_is_found(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert [each["damage"] for each in problems(data, capsys)] == ["identity"]


def test_a_directory_in_use_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with ServerProcess("--data", str(data)):
        for arguments in (
            ["verify", str(data)],
            ["import", str(data), "--data", str(tmp_path / "other")],
            ["import", str(tmp_path), "--data", str(data)],
        ):
            assert main(arguments) == 1
            assert "in use by a running broker" in capsys.readouterr().err


def test_a_segment_is_dumped_batch_by_batch_and_record_by_record(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(logs(data)[0])
    assert main(["dump", log, "--json"]) == 0
    batches = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [batch["codec"] for batch in batches[:5]] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert (batches[1]["base"], batches[1]["last"], batches[1]["records"]) == (3, 5, 3)
    assert batches[0]["max_timestamp"] == "2023-11-14T22:13:20.000Z"
    assert main(["dump", log, "--keys"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["OFFSET", "TIMESTAMP", "KEY"]
    assert said[2].split() == ["1", "2023-11-14T22:13:20.000Z", "k1"]
    assert main(["dump", log.replace(".log", ".index"), log.replace(".log", ".timeindex")]) == 0
    assert "POSITION" in capsys.readouterr().out
    assert main(["dump", str(data / "catalog.sqlite")]) == 1
    assert main(["dump", str(data / "t-0")]) == 1


def test_strangers_in_the_data_directory_are_adopted_where_they_are(
    left: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = records_of(data)
    shutil.rmtree(data)
    data.mkdir()
    shutil.copytree(left / "t-0", data / "t-0")
    with KafkaBroker(data=data) as broker:
        assert "unknown topics" in broker.log()
    assert main(["import", str(data), "--data", str(data), "--dry-run"]) == 0
    assert main(["import", str(data), "--data", str(data), "-c", "retention.ms=-1"]) == 0
    assert "t: 1 partition imported" in capsys.readouterr().err
    assert records_of(data) == expected


def test_an_import_goes_on_above_the_epochs_of_the_log_and_of_the_directory(
    left: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(shutil.copytree(left, tmp_path / "source"))
    (source / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n6 30\n")
    data = tmp_path / "data"
    with KafkaBroker(data=data) as broker:
        broker.kill()
    assert main(["import", str(source), "--data", str(data), "-c", "retention.ms=-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["leader_epoch"] == 7
    with ServerProcess("--data", str(data)) as server:
        assert main(["topic", "describe", "t", "--json", "-b", server.bootstrap]) == 0
        (partition,) = json.loads(capsys.readouterr().out)[0]["partitions"]
        assert partition["leader_epoch"] >= 7
        assert partition["log_end_offset"] == BATCHES * 3


def test_a_partition_left_in_the_middle_of_a_compaction_is_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = logs(data)[0]
    first.rename(first.with_name(f"{first.name}.swap"))
    assert main(["import", str(data), "--data", str(tmp_path / "other")]) == 1
    assert "compaction" in capsys.readouterr().err


def test_wrong_configs_and_topics_are_refused(
    left: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = ["--data", str(tmp_path / "data")]
    for arguments, said in (
        (["-c", "retention=1"], "no such config"),
        (["-t", "missing"], "no partition of topic missing"),
    ):
        assert main(["import", str(left), *target, *arguments]) == 1
        assert said in capsys.readouterr().err
