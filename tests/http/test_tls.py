"""HTTP within TLS: the certificates, names and settings of Kafka's listeners."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.certificates import HOSTS, Certificates, as_arguments
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually

from .test_logins import basic


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def serve(settings: dict[str, str], *arguments: str) -> ServerProcess:
    return ServerProcess(
        "--in-memory", "--http-port", "0", "--port", "0", *arguments, *as_arguments(settings)
    )


@pytest.fixture(scope="module")
def audit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def strict(certificates: Certificates, audit_file: Path) -> Iterator[ServerProcess]:
    """Lets in who shows a certificate."""
    settings = certificates.broker_settings(
        client_auth="required",
        ssl_principal_mapping_rules="RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        kbroker_audit_log_file=str(audit_file),
    )
    with serve(settings) as process:
        yield process


def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["curl", "-s", "--max-time", "20", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def certificate_of(server: ServerProcess) -> bytes:
    parts = urlsplit(server.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((parts.hostname, parts.port), timeout=20) as plain,
        context.wrap_socket(plain) as stream,
    ):
        found = stream.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_curl_with_a_certificate_is_who_the_certificate_says(
    strict: ServerProcess, certificates: Certificates, audit_file: Path
) -> None:
    trust = ("--cacert", str(certificates.ca))
    own = certificates.directory / "alice"
    shown = ("--cert", f"{own}.crt", "--key", f"{own}.key")
    assert strict.url.startswith("https://")
    made = curl(*trust, *shown, "-d", '{"name": "by-alice"}', f"{strict.url}/topics")
    assert json.loads(made.stdout)["name"] == "by-alice", made

    def events() -> list[tuple[str, str]]:
        text = audit_file.read_text() if audit_file.exists() else ""
        lines = [json.loads(line) for line in text.splitlines()]
        return [(line["event"], line["principal"]) for line in lines]

    eventually(lambda: {("login", "User:alice"), ("change", "User:alice")} <= set(events()))


def test_without_a_certificate_nobody_is_let_in(strict: ServerProcess, certificates: Certificates) -> None:
    assert curl("--cacert", str(certificates.ca), f"{strict.url}/").returncode != 0
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        HttpClient(strict.url, tls=certificates.client_context()) as http,
    ):
        http.get("/")
    eventually(lambda: "it shows no certificate, and ssl.client.auth=required" in strict.log())


def test_a_certificate_that_is_only_requested_may_be_missing(certificates: Certificates) -> None:
    with (
        serve(certificates.broker_settings(client_auth="requested")) as server,
        HttpClient(server.url, tls=certificates.client_context()) as anybody,
        HttpClient(server.url, tls=certificates.client_context(certificates.client)) as alice,
    ):
        assert anybody.get("/topics").status == 200
        assert alice.get("/topics").status == 200


def test_large_bodies_and_answers_come_whole(certificates: Certificates) -> None:
    with (
        serve(certificates.broker_settings()) as server,
        HttpClient(server.url, tls=certificates.client_context()) as http,
    ):
        http.post("/topics", {"name": "large", "configs": {"max.message.bytes": "20000000"}})
        value = os.urandom(9_000_000)
        assert http.ask("POST", "/topics/large/partitions/0", value).status == 200
        found = http.get("/topics/large/partitions/0/fetch?offset=0&raw=1&maxBytes=10000000")
        assert found.body == value


def test_passwords_of_scram_users_are_taken_within_tls(certificates: Certificates) -> None:
    settings = certificates.broker_settings() | {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with (
        serve(settings, "--user", "ada:secret") as server,
        HttpClient(server.url, tls=certificates.client_context(certificates.client)) as http,
    ):
        assert http.get("/topics").status == 401, "a certificate is no login"
        assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200
        assert http.ask("GET", "/topics", headers=basic("ada", "wrong")).status == 401


def test_a_changed_certificate_is_taken_for_new_connections(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with serve(certificates.broker_settings()) as server:
        with HttpClient(server.url, tls=certificates.client_context()) as http:
            assert http.get("/").status == 200
            before = certificate_of(server)
            certificates.store("broker", certificates.authority.issue_broker(HOSTS))
            os.kill(server.pid, signal.SIGHUP)
            eventually(lambda: certificate_of(server) != before)
            assert http.get("/").status == 200, "those that are there stay"
        with HttpClient(server.url, tls=certificates.client_context()) as http:
            assert http.get("/").status == 200


def test_plain_http_on_a_port_with_tls_is_closed_with_a_line(strict: ServerProcess) -> None:
    parts = urlsplit(strict.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while stream.recv(1000):
            pass
    eventually(lambda: "this is an HTTP request without TLS" in strict.log())


def test_settings_of_the_listener_that_http_takes_after_are_its_own(certificates: Certificates) -> None:
    """Kafka's protocol in plain text inside, TLS with logins outside, which is where HTTP belongs."""
    of_all = certificates.broker_settings()
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL",
        "kbroker.http.listener": "outside",
        "listener.name.outside.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        **{f"listener.name.outside.{name}": text for name, text in of_all.items() if name.startswith("ssl.")},
    }
    with (
        serve(settings, "--user", "ada:secret") as server,
        HttpClient(server.url, tls=certificates.client_context()) as http,
    ):
        assert http.get("/topics").status == 401
        assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200


def test_what_stands_for_http_alone_comes_first(certificates: Certificates, tmp_path: Path) -> None:
    other = Certificates(tmp_path, "another CA")
    settings = certificates.broker_settings() | {
        "listener.name.http.ssl.keystore.location": str(other.broker),
        "listener.name.http.ssl.client.auth": "required",
        "listener.name.http.ssl.truststore.location": str(other.ca),
    }
    with serve(settings) as server:
        with HttpClient(server.url, tls=other.client_context(other.client)) as http:
            assert http.get("/topics").status == 200
        with pytest.raises(ssl.SSLError), HttpClient(server.url, tls=certificates.client_context()) as http:
            http.get("/topics")


def test_a_certificate_of_http_is_altered_at_run_time(certificates: Certificates, tmp_path: Path) -> None:
    other = Certificates(tmp_path, "another CA")
    settings = certificates.broker_settings() | {
        "ssl.allow.dn.changes": "true",
        "ssl.allow.san.changes": "true",
    }
    with serve(settings) as server, HttpClient(server.url, tls=certificates.client_context()) as http:
        change = {"listener.name.http.ssl.keystore.location": str(other.broker)}
        answer = http.ask("PATCH", "/brokers/1/configs", json.dumps(change))
        assert answer.status in (200, 204), answer
        with HttpClient(server.url, tls=other.client_context()) as anew:
            assert anew.get("/").status == 200


def test_ping_asks_within_tls_whether_it_is_ready(strict: ServerProcess, certificates: Certificates) -> None:
    def ping(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kbroker", "ping", "--ready", "--http", strict.url, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    trust = (*("-X", "security.protocol=SSL"), *("-X", f"ssl.ca.location={certificates.ca}"))
    own = certificates.directory / "alice"
    shown = (*("-X", f"ssl.certificate.location={own}.crt"), *("-X", f"ssl.key.location={own}.key"))
    assert ping(*trust, *shown).returncode == 0
    for options in ((), trust):  # it does not trust the broker; the broker does not let it in
        refused = ping(*options)
        assert refused.returncode == 3
        assert "Traceback" not in refused.stderr
