"""A catalog that is missing or damaged: the broker says so, and it can be made again of the partitions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kbroker.cli import main
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.testing import KafkaBroker
from tests.cli.test_offline import produce
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.slow

BATCHES = 10


def _overwrite(path: Path, start: int) -> None:
    data = bytearray(path.read_bytes())
    data[start:] = os.urandom(len(data) - start)
    path.write_bytes(data)


INJURIES: dict[str, Callable[[Path], None]] = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "no database": lambda path: _overwrite(path, 0),
    "damaged pages": lambda path: _overwrite(path, 100),
}


def start(data: Path) -> subprocess.CompletedProcess[str]:
    """Of a server that is expected not to."""
    command = [sys.executable, "-m", "kbroker", "serve", "--port", "0", "--data", str(data)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def topic_of(server: ServerProcess) -> tuple[str, bytes, str | None]:
    with server.client() as client:
        answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        return answer.topics[0].name, answer.topics[0].topic_id, answer.cluster_id


def new_producer_id(server: ServerProcess) -> int:
    with server.client() as client:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return client.ask(asked, 4).producer_id


@pytest.mark.parametrize("how", ["clean", "killed"])
@pytest.mark.parametrize("injury", INJURIES)
def test_a_lost_catalog_is_told_and_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str, injury: str
) -> None:
    data = tmp_path / "data"
    with ServerProcess("--data", str(data)) as server:
        produce(server, BATCHES)
        before = topic_of(server)
        producer_id = new_producer_id(server)
        if how == "clean":
            server.stop()
        else:
            server.kill()
    catalog = data / "catalog.sqlite"
    if how == "killed" and injury in ("no database", "damaged pages"):
        (data / "catalog.sqlite-wal").unlink()  # which has all of it, and would be believed
    INJURIES[injury](catalog)
    for _ in range(2):
        refused = start(data)
        assert refused.returncode == 1
        assert "catalog.sqlite" in refused.stderr
        assert "kbroker verify --rebuild-catalog" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert main(["verify", str(data)]) == 4
    assert "catalog.sqlite" in capsys.readouterr().out
    assert main(["verify", str(data), "--rebuild-catalog"]) == 0
    said = capsys.readouterr().err
    assert "the catalog has 1 topic again" in said
    assert "committed offsets" in said
    with ServerProcess("--data", str(data)) as server:
        assert topic_of(server) == before
        assert new_producer_id(server) > producer_id
        server.stop()
    with KafkaBroker(data=data) as broker:
        assert len(broker.records("t")) == BATCHES * 3
    assert main(["verify", str(data), "--rebuild-catalog"]) == 1
    assert "nothing to rebuild" in capsys.readouterr().err


def test_a_refused_start_leaves_a_clean_directory_clean(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess("--data", str(data)) as server:
        produce(server, BATCHES)
        server.stop()
    whole = (data / "catalog.sqlite").read_bytes()
    for injury in INJURIES.values():
        injury(data / "catalog.sqlite")
        assert start(data).returncode == 1
        (data / "catalog.sqlite").write_bytes(whole)
        assert (data / ".kafka_cleanshutdown").exists()
    meta = (data / "meta.properties").read_text()
    (data / "meta.properties").write_text(meta.replace("cluster.id=", "cluster.id=x"))
    refused = start(data)
    assert refused.returncode == 1
    assert "meta.properties" in refused.stderr
    assert (data / ".kafka_cleanshutdown").exists()
