"""`kbroker tls init`, and commands that talk to a broker over TLS."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.cli.client_properties import translated
from kbroker.exit_codes import CommandFailed
from tests.support.certificates import Certificates
from tests.support.server_process import ServerProcess

SECRETS = {"ca.key", "broker.key", "broker.pem", "alice.key", "alice.pem", "bob.key", "bob.pem"}


def kbroker(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kbroker", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tls") / "made"
    done = kbroker(
        "tls", "init", str(directory), "--client", "alice", "--client", "bob", "--host", "broker.test"
    )
    assert done.returncode == 0, done.stderr
    assert "security.protocol=SSL" in done.stdout
    assert "ssl.ca.location=" in done.stdout
    assert "ssl_cafile=" in done.stdout
    assert f"serve --config {directory / 'server.properties'}" in done.stdout
    return directory


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[ServerProcess]:
    """With the settings that were made, on a free port."""
    text = (directory / "server.properties").read_text()
    lines = [line for line in text.splitlines() if "listeners" not in line]
    own = directory / "own.properties"
    own.write_text("\n".join(["listeners=SSL://127.0.0.1:0", *lines]))
    with ServerProcess("--in-memory", "--config", str(own)) as process:
        yield process


def client(server: ServerProcess, directory: Path) -> tuple[str, ...]:
    return ("-b", server.bootstrap, "--command-config", str(directory / "alice.properties"))


def test_only_its_owner_can_read_keys(directory):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == SECRETS
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_nothing_is_overwritten(directory):
    before = (directory / "ca.key").read_text()
    done = kbroker("tls", "init", str(directory))
    assert done.returncode == 1
    assert done.stderr.endswith("nothing was written. Name another directory\n")
    assert (directory / "ca.key").read_text() == before
    assert not (directory / "client.pem").exists()


def test_a_host_that_others_reach_is_listened_to_and_told(directory):
    text = (directory / "server.properties").read_text()
    assert "listeners=SSL://:9093\nadvertised.listeners=SSL://broker.test:9093\n" in text


def test_commands_work_with_the_files_that_were_made(server, directory):
    options = client(server, directory)
    assert kbroker("ping", *options).returncode == 0
    assert kbroker("topic", "create", "orders", *options).returncode == 0
    assert kbroker("produce", "orders", *options, stdin="one\ntwo\n").returncode == 0
    assert kbroker("consume", "orders", *options).stdout == "one\ntwo\n"
    found = json.loads(kbroker("doctor", "--json", *options).stdout)
    assert ("broker", "ok") in {(each["check"], each["result"]) for each in found}


def test_the_names_of_librdkafka_work_as_well(server, directory):
    options = [
        option
        for name, value in (
            ("security.protocol", "ssl"),
            ("ssl.ca.location", directory / "ca.pem"),
            ("ssl.certificate.location", directory / "bob.crt"),
            ("ssl.key.location", directory / "bob.key"),
        )
        for option in ("-X", f"{name}={value}")
    ]
    assert kbroker("topic", "list", "-b", server.bootstrap, *options).returncode == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "speaks TLS: add -X security.protocol=SSL"),
        (("-X", "security.protocol=SSL"), "the broker's certificate is not accepted: "),
        (("-X", "security.protocol=SSL", "-X", "ssl.ca.location=CA"), "asks for a certificate: add "),
        (("-X", "security.protocol=SSL", "-X", "ssl.ca.location=/nowhere"), "TLS: /nowhere: No such file"),
        (("-X", "security.protocol=TLS"), "security.protocol=TLS: it is one of PLAINTEXT, SSL"),
        (("--command-config", "/nowhere"), "cannot read /nowhere: no such file or directory"),
    ],
)
def test_what_is_missing_is_told_in_one_line(server, directory, options, reason):
    options = tuple(each.replace("=CA", f"={directory / 'ca.pem'}") for each in options)
    done = kbroker("topic", "list", "-b", server.bootstrap, "--timeout", "3", *options)
    assert done.returncode in (1, 2, 3)
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_doctor_warns_of_a_broker_that_serves_anybody_beyond_this_machine():
    with ServerProcess("--in-memory", "--host", "0.0.0.0") as server:
        address = f"127.0.0.1:{server.address[1]}"
        found = json.loads(kbroker("doctor", "--json", "-b", address).stdout)
        (finding,) = [each for each in found if each["check"] == "authentication"]
        assert finding["result"] == "warning"
        assert "serves anybody without a login" in finding["text"]
        assert "may do everything: it asks for neither certificates nor logins" in server.log()


def test_doctor_does_not_warn_of_one_on_this_machine_only():
    with ServerProcess("--in-memory") as server:
        found = json.loads(kbroker("doctor", "--json", "-b", server.bootstrap).stdout)
        (finding,) = [each for each in found if each["check"] == "authentication"]
        assert finding["result"] == "ok"
        assert "may do everything" not in server.log()


# what kafka-python is told


def test_stores_of_every_kind_make_a_context(tmp_path):
    certificates = Certificates(tmp_path)
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": certificates.ca.read_text().replace("\n", " "),
        "ssl.endpoint.identification.algorithm": "",
    }
    context = translated(given)["ssl_context"]
    assert len(context.get_ca_certs()) == 1
    assert not context.check_hostname


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="1;\\"2";'


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_jaas_config_has_the_user_and_the_password(mechanism):
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": JAAS}
    assert translated(given) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": '1;"2',
    }


def test_a_password_of_digits_stays_a_text():
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "007", "sasl.password": "42"}
    configs = translated(given)
    assert (configs["sasl_plain_username"], configs["sasl_plain_password"]) == ("007", "42")


def test_tokens_come_from_a_file_or_are_made_unsecured(tmp_path):
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    path = tmp_path / "token"
    path.write_text("a.b.c\n")
    url = {"sasl.oauthbearer.token.endpoint.url": f"file://{path}"}
    assert translated(given | url)["sasl_oauth_token_provider"].token() == "a.b.c"
    jaas = {"sasl.jaas.config": 'x.Y required unsecuredLoginStringClaim_sub="alice";'}
    token = translated(given | jaas)["sasl_oauth_token_provider"].token()
    assert token.count(".") == 2
    assert token.endswith(".")
    with pytest.raises(CommandFailed, match="OAUTHBEARER needs"):
        translated(given)


def test_nothing_listens_is_told_at_once_with_tls_too(directory):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = kbroker(
            "topic", "list", "-b", address, "--command-config", str(directory / "alice.properties")
        )
    assert done.returncode == 3
    assert "cannot reach" in done.stderr
