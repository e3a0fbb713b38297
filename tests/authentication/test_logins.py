"""Logins to a broker that was started as a user starts it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.raw_client import Closed
from tests.support.server_process import ServerProcess

from .sasl_client import Scram, is_in, plain

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--user", "admin:secret", "--user", "bob:hunter2") as running:
        yield running


def refused(code: int) -> bool:
    return code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_users_of_the_command_line_log_in_by_every_mechanism(server: ServerProcess) -> None:
    for name, password in (("admin", "secret"), ("bob", "hunter2")):
        with server.client() as client:
            assert plain(client, name, password).error_code == 0
            assert is_in(client)
        for mechanism in SCRAM:
            with server.client() as client:
                assert Scram(mechanism, name, password).log_in(client).error_code == 0
                assert is_in(client)


def test_a_wrong_password_and_an_unknown_name_are_the_same(server: ServerProcess) -> None:
    answers = set()
    for name in ("admin", "nobody"):
        with server.client() as client:
            answers.add(("PLAIN", plain(client, name, "wrong").error_message))
            with pytest.raises(Closed):
                is_in(client)
        for mechanism in SCRAM:
            with server.client() as client:
                login = Scram(mechanism, name, "wrong")
                answer = login.log_in(client)
                assert refused(answer.error_code)
                answers.add((mechanism, answer.error_message))
                assert login.server_first.endswith(",i=4096")
                with pytest.raises(Closed):
                    is_in(client)
    assert len(answers) == 3


def test_an_unknown_name_has_a_salt_that_stays(tmp_path: Path) -> None:
    salts = set()
    for _ in range(2):
        with ServerProcess("--data", str(tmp_path), "--user", "a:b") as server:
            for _ in range(2):
                with server.client() as client:
                    login = Scram("SCRAM-SHA-256", "nobody", "x")
                    login.log_in(client)
                    salts.add(login.server_first.split(",")[1])
    assert len(salts) == 1


def test_no_secret_is_logged_or_described(server: ServerProcess) -> None:
    with server.client() as client:
        plain(client, "admin", "secret")
        asked = DescribeConfigsRequest([DescribeConfigsResource(4, "1", None)], include_synonyms=True)
        (described,) = client.ask(asked, 4).results
    users = next(config for config in described.configs if config.name == "kbroker.users")
    assert users.is_sensitive
    assert users.value is None
    assert [synonym.value for synonym in users.synonyms] == [None]
    assert "hunter2" not in str(described)
    assert "hunter2" not in server.log()


def test_users_of_a_file_may_be_hashed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kbroker", "user", "hash", "carol"]
    lines = subprocess.run(command, input="pass word\n", capture_output=True, text=True, check=True).stdout
    assert "pass word" not in lines
    file = tmp_path / "users"
    file.write_text(f"# of a test\n{lines}dave:with,comma\n")
    with ServerProcess("--in-memory", "--set", f"kbroker.users.file={file}") as server:
        for name, password in (("carol", "pass word"), ("dave", "with,comma")):
            with server.client() as client:
                assert plain(client, name, password).error_code == 0
            for mechanism in SCRAM:
                with server.client() as client:
                    assert Scram(mechanism, name, password).log_in(client).error_code == 0


def test_users_of_the_environment() -> None:
    with (
        ServerProcess("--in-memory", env={"KBROKER_USERS": "eve:pw,mallory:pw2"}) as server,
        server.client() as client,
    ):
        assert plain(client, "mallory", "pw2").error_code == 0


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (["listeners=SASL_PLAINTEXT://:0"], "offers GSSAPI only, and kbroker has no GSSAPI"),
        (["listeners=SASL_PLAINTEXT://:0", "sasl.enabled.mechanisms=DIGEST-MD5"], "kbroker knows PLAIN"),
        (["listeners=SASL_PLAINTEXT://:0", "sasl.enabled.mechanisms=OAUTHBEARER"], "needs the keys"),
        (["listeners=PLAINTEXT://:0", "kbroker.users=a:b"], "no listener asks for logins"),
        (["kbroker.users=a"], "kbroker.users: entry 1 is not NAME:PASSWORD"),
        (["kbroker.users.file=/nowhere"], "kbroker.users.file: /nowhere cannot be read"),
        (
            ["kbroker.users=a:b", "listener.name.sasl_plaintext.plain.sasl.jaas.config=x required y"],
            "listener.name.sasl_plaintext.plain.sasl.jaas.config: a login module",
        ),
        (
            ["kbroker.users=a:b", "sasl.server.callback.handler.class=org.example.Ldap"],
            "kbroker has no org.example.Ldap",
        ),
    ],
)
def test_a_listener_that_nobody_could_use_is_refused_in_one_line(settings: list[str], line: str) -> None:
    flags = [flag for setting in settings for flag in ("--set", setting)]
    command = [sys.executable, "-m", "kbroker", "serve", "--in-memory", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_users_of_a_listener_change_at_run_time_and_are_not_described(server: ServerProcess) -> None:
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    change = AlterableConfig(name, 0, f'{module} user_frank="open-sesame";')
    with server.client() as client:
        plain(client, "admin", "secret")
        (altered,) = client.ask(
            IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", [change])]), 1
        ).responses
        assert altered.error_code == 0
        with server.client() as other:
            assert plain(other, "frank", "open-sesame").error_code == 0
        asked = DescribeConfigsRequest([DescribeConfigsResource(4, "1", None)], include_synonyms=True)
        (described,) = client.ask(asked, 4).results
        (config,) = (config for config in described.configs if config.name == name)
        assert (config.value, config.is_sensitive) == (None, True)
        assert "open-sesame" not in str(described)
        removal = AlterableConfig(name, 1, None)
        client.ask(IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", [removal])]), 1)
        with server.client() as other:
            assert refused(plain(other, "frank", "open-sesame").error_code)
    assert "open-sesame" not in server.log()


def test_a_broker_that_asks_nobody_loads_nothing_of_logins() -> None:
    code = (
        "import sys\n"
        "from kbroker.config.settings import Settings\n"
        "import kbroker.server\n"
        "Settings.load(flags={})\n"
        "loaded = ('kbroker.authentication', 'kbroker.security.sasl', 'kbroker.security.users', 'jwt')\n"
        "print([name for name in sys.modules if name.startswith(loaded)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
