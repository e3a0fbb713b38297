"""`kbroker backup` and `kbroker restore`, on a broker that a user runs."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.http_client import HttpClient
from tests.support.raw_topics import create, produce, read
from tests.support.server_process import ServerProcess, eventually


def kbroker(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kbroker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path / "data"), "--http-port", "0") as server:
        with server.client() as client:
            create(client, "topic", 2)
            for number in range(10):
                produce(client, "topic", number % 2, b"value %d" % number)
        yield server


def images_of(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "data" / ".images").glob("*"))


def test_a_copy_of_a_running_broker_starts_and_has_what_it_had(tmp_path: Path, server: ServerProcess) -> None:
    done = kbroker("backup", str(tmp_path / "backup"), "--http", server.url)
    assert done.returncode == 0, done.stderr
    assert "2 partitions, " in done.stdout
    assert images_of(tmp_path) == []
    with server.client() as client:
        produce(client, "topic", 0, b"later")
    assert kbroker("restore", "--check", str(tmp_path / "backup")).returncode == 0
    done = kbroker("restore", str(tmp_path / "backup"), str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert "restored, 2 partitions" in done.stdout
    assert kbroker("verify", str(tmp_path / "new")).returncode == 0
    with ServerProcess("--data", str(tmp_path / "new")) as again, again.client() as client:
        assert read(client, "topic", 0) == [b"value %d" % number for number in range(0, 10, 2)]
        assert read(client, "topic", 1) == [b"value %d" % number for number in range(1, 10, 2)]
        produce(client, "topic", 0, b"later still")


def test_only_its_owner_may_read_a_backup(tmp_path: Path, server: ServerProcess) -> None:
    assert kbroker("backup", str(tmp_path / "backup"), "--http", server.url, "--json").returncode == 0
    for path in (tmp_path / "backup").rglob("*"):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), path


def test_what_it_tells_as_json(tmp_path: Path, server: ServerProcess) -> None:
    made = json.loads(kbroker("backup", str(tmp_path / "backup"), "--http", server.url, "--json").stdout)
    again = json.loads(kbroker("restore", str(tmp_path / "backup"), str(tmp_path / "new"), "--json").stdout)
    assert made["directory"] == str(tmp_path / "backup")
    assert made["partitions"] == 2
    assert {**made, "directory": None} == {**again, "directory": None}


def test_a_directory_with_something_in_it_is_refused_before_the_broker_is_asked(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = kbroker("backup", str(tmp_path), "--http", "http://127.0.0.1:1")
    assert (done.returncode, "is not empty" in done.stderr) == (1, True)


def test_a_backup_that_is_damaged_makes_nothing(tmp_path: Path, server: ServerProcess) -> None:
    assert kbroker("backup", str(tmp_path / "backup"), "--http", server.url).returncode == 0
    log = next((tmp_path / "backup" / "data").glob("topic-0/*.log"))
    log.write_bytes(log.read_bytes()[:-1] + b"x")
    done = kbroker("restore", "--check", str(tmp_path / "backup"))
    assert (done.returncode, "is damaged" in done.stderr) == (4, True)
    done = kbroker("restore", str(tmp_path / "backup"), str(tmp_path / "new"))
    assert (done.returncode, "is damaged" in done.stderr) == (4, True)
    assert not (tmp_path / "new").exists()


def test_restore_wants_to_know_where_to(tmp_path: Path) -> None:
    assert kbroker("restore", str(tmp_path)).returncode == 2
    assert kbroker("restore", str(tmp_path), str(tmp_path / "new"), "--check").returncode == 2


def test_who_may_not_alter_the_cluster_gets_none(tmp_path: Path) -> None:
    settings = [
        *("--user", "admin:secret", "--user", "other:secret"),
        *("--set", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        *("--set", "super.users=User:admin", "--set", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256"),
    ]
    with ServerProcess("--data", str(tmp_path / "data"), "--http-port", "0", *settings) as server:

        def backed_up(name: str) -> subprocess.CompletedProcess[str]:
            login = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.password=secret")
            options = [part for each in (*login, f"sasl.username={name}") for part in ("-X", each)]
            return kbroker("backup", str(tmp_path / name), "--http", server.url, *options)

        refused = backed_up("other")
        assert refused.returncode == 1
        assert "ALTER is not allowed on this cluster" in refused.stderr
        assert not (tmp_path / "other").exists()
        assert images_of(tmp_path) == []
        allowed = backed_up("admin")
        assert allowed.returncode == 0, allowed.stderr


def test_a_broker_in_memory_has_nothing_to_copy(tmp_path: Path) -> None:
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        done = kbroker("backup", str(tmp_path / "backup"), "--http", server.url)
        assert (done.returncode, "everything in memory" in done.stderr) == (1, True)


def test_images_are_listed_removed_and_expire(tmp_path: Path, server: ServerProcess) -> None:
    with HttpClient(server.url) as http:
        made = http.ask("POST", "/images").json
        assert http.get("/images").json == {"images": [made]}
        assert Path(made["path"]).is_dir()
        assert http.ask("DELETE", f"/images/{made['id']}").status == 204
        assert not Path(made["path"]).exists()
        assert http.ask("DELETE", f"/images/{made['id']}").status == 404
        configs = {"kbroker.image.retention.ms": 50}
        assert http.ask("PATCH", "/brokers/1/configs", json_body=configs).status < 300
        made = http.ask("POST", "/images").json
        eventually(lambda: http.get("/images").json == {"images": []})
        eventually(lambda: not Path(made["path"]).exists())
