"""Listeners that speak TLS, from real processes: what clients get, who is let in, what is on the wire."""

from __future__ import annotations

import os
import random
import signal
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.certificates import HOSTS, Certificates, as_arguments
from tests.support.raw_client import Closed, RawClient
from tests.support.raw_topics import create, produce, read
from tests.support.server_process import ServerProcess, eventually
from tests.support.tls_client import TlsClient

REFUSED = (ssl.SSLError, Closed)
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("strangers"), "another CA")


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> Iterator[ServerProcess]:
    with started(certificates.broker_settings()) as process:
        yield process


@pytest.fixture(scope="module")
def strict(certificates: Certificates) -> Iterator[ServerProcess]:
    with started(certificates.broker_settings(client_auth="required")) as process:
        yield process


def started(settings: dict[str, str], *arguments: str) -> ServerProcess:
    return ServerProcess(*(arguments or ("--in-memory",)), *as_arguments(settings))


def answers(client: RawClient) -> bool:
    return bool(client.ask(ApiVersionsRequest(), 0).api_keys)


def let_in(server: ServerProcess, context: ssl.SSLContext) -> bool:
    with TlsClient(server.address, context) as client:
        return answers(client)


def certificate_of(server: ServerProcess) -> bytes | None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with TlsClient(server.address, context) as client:
        return client.tls.object.getpeercert(binary_form=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_every_size_come_back_as_they_were(server, certificates, version):
    topic = f"sizes-{version.name}"
    values = [os.urandom(size) for size in (1, 16_383, 16_384, 16_385, 200_000, 900_000, 3)]
    with TlsClient(server.address, certificates.client_context(version=version)) as client:
        assert client.tls.object.version() == version.name.replace("_", ".")
        create(client, topic, 1)
        for value in values:
            assert produce(client, topic, 0, value) == 0
        assert read(client, topic, 0) == values


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_that_came_together_are_all_answered(server, certificates, version):
    with TlsClient(server.address, certificates.client_context(version=version)) as client:
        client.socket.sendall(b"".join(client.frame(ApiVersionsRequest(), 0) for _ in range(2000)))
        for _ in range(2000):
            assert client.receive().api_keys


def test_answers_that_a_client_does_not_take_wait_and_come_whole(server, certificates):
    values = [os.urandom(900_000) for _ in range(8)]
    with TlsClient(server.address, certificates.client_context()) as client:
        create(client, "slow", 1)
        for value in values:
            produce(client, "slow", 0, value)
    with TlsClient(server.address, certificates.client_context()) as client:
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=16 << 20)
        topics = [FetchTopic("slow", partitions=[asked])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=16 << 20, topics=topics)
        for _ in range(10):  # 72 MB, far more than sockets hold
            client.send(request, 11)
        for _ in range(10):
            (found,) = client.receive().responses[0].partitions
            assert all(value in bytes(found.records) for value in values[:2] + values[-1:])


def test_what_a_client_asked_before_its_goodbye_is_answered(server, certificates):
    with TlsClient(server.address, certificates.client_context()) as client:
        client.send(ApiVersionsRequest(), 0)
        client.tls.say_goodbye()
        assert client.receive().api_keys
        assert client.socket.recv(1) == b""


def test_a_client_that_just_closes_its_side_is_answered_too(server, certificates):
    with TlsClient(server.address, certificates.client_context()) as client:
        client.send(ApiVersionsRequest(), 0)
        client.tls.plain.shutdown(socket.SHUT_WR)
        assert client.receive().api_keys


def test_the_broker_says_goodbye_when_it_stops(certificates):
    with (
        started(certificates.broker_settings()) as server,
        TlsClient(server.address, certificates.client_context()) as client,
    ):
        assert answers(client)
        assert server.stop() == 0
        assert client.socket.recv(1) == b""  # close_notify: else it would raise


def test_nothing_in_plain_text_is_on_the_wire_when_records_come_from_the_disk(certificates, tmp_path):
    marker = b"this text must not be seen by anybody "
    value = marker * 20_000
    with started(certificates.broker_settings(), "--data", str(tmp_path)) as server:
        with TlsClient(server.address, certificates.client_context()) as client:
            create(client, "secret", 1)
            for _ in range(10):
                produce(client, "secret", 0, value)
        for path in tmp_path.rglob("*.log"):
            with path.open("rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with TlsClient(server.address, certificates.client_context()) as client:
            assert read(client, "secret", 0) == [value] * 10
            assert len(client.tls.received) > 10 * len(value)
            assert marker not in client.tls.received
            assert b"secret" not in client.tls.received


def test_a_client_with_a_certificate_of_the_authority_is_let_in(strict, certificates):
    for version in VERSIONS:
        context = certificates.client_context(certificates.client, version=version)
        with TlsClient(strict.address, context) as client:
            assert answers(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_without_a_certificate_is_not(strict, certificates, version):
    with pytest.raises(REFUSED):
        let_in(strict, certificates.client_context(version=version))
    eventually(lambda: "it shows no certificate, and ssl.client.auth=required" in strict.log())


@pytest.mark.parametrize("client_auth", ["required", "requested"])
def test_a_client_with_a_certificate_of_another_authority_is_not(certificates, strangers, client_auth):
    with started(certificates.broker_settings(client_auth=client_auth)) as server:
        with pytest.raises(REFUSED):
            let_in(server, certificates.client_context(strangers.client))
        eventually(lambda: "its certificate is not accepted: " in server.log())


def test_a_client_without_a_certificate_that_is_only_requested_is_let_in(certificates):
    with started(certificates.broker_settings(client_auth="requested")) as server:
        assert let_in(server, certificates.client_context())


def test_a_client_whose_name_no_rule_is_for_is_not_let_in(certificates):
    settings = certificates.broker_settings(client_auth="required")
    settings["ssl.principal.mapping.rules"] = "RULE:^CN=bob$/bob/"
    with started(settings) as server:
        with pytest.raises(REFUSED):
            let_in(server, certificates.client_context(certificates.client))
        eventually(lambda: "no rule of ssl.principal.mapping.rules is for CN=alice" in server.log())


@pytest.mark.parametrize("version", VERSIONS)
def test_only_enabled_versions_are_spoken(certificates, version):
    (other,) = set(VERSIONS) - {version}
    settings = certificates.broker_settings(ssl_enabled_protocols=version.name.replace("_", "."))
    with started(settings) as server:
        with TlsClient(server.address, certificates.client_context(version=version)) as client:
            assert answers(client)
        with pytest.raises(REFUSED):
            TlsClient(server.address, certificates.client_context(version=other))


def test_only_the_cipher_suites_that_were_named_are_spoken(certificates):
    settings = certificates.broker_settings()
    settings["ssl.cipher.suites"] = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    with started(settings) as server, TlsClient(server.address, certificates.client_context()) as client:
        assert client.tls.object.cipher()[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")


def test_listeners_with_and_without_tls_stand_side_by_side(certificates):
    settings = certificates.broker_settings(listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0")
    settings["listener.security.protocol.map"] = "INSIDE:PLAINTEXT,OUTSIDE:SSL"
    for name in ("type", "location"):
        settings[f"listener.name.outside.ssl.keystore.{name}"] = settings.pop(f"ssl.keystore.{name}")
    process = ServerProcess("--in-memory", "--log-level", "info", *as_arguments(settings))
    process.start()
    try:
        ports = listening_ports(process.pid)
        outside = next(port for port in ports if port != process.address[1])
        with process.client() as client:
            assert answers(client)
        with TlsClient(("127.0.0.1", outside), certificates.client_context()) as client:
            assert answers(client)
    finally:
        process.__exit__()


def listening_ports(pid: int) -> list[int]:
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    inodes = {
        os.readlink(f"/proc/{pid}/fd/{name}")
        for name in os.listdir(f"/proc/{pid}/fd")
        if os.path.exists(f"/proc/{pid}/fd/{name}")
    }
    return [
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if row[3] == "0A" and f"socket:[{row[9]}]" in inodes
    ]


# keys and certificates that change


def test_a_changed_file_is_taken_for_new_connections_and_old_ones_stay(tmp_path):
    certificates = Certificates(tmp_path)
    with started(certificates.broker_settings()) as server:
        before = certificate_of(server)
        with TlsClient(server.address, certificates.client_context()) as old:
            assert answers(old)
            replace(certificates)
            eventually(lambda: certificate_of(server) != before)
            assert answers(old)


def replace(certificates: Certificates, text: str | None = None) -> None:
    issued = certificates.authority.issue_broker(HOSTS)
    new = certificates.directory / "new.pem"
    new.write_text(text or issued.key + issued.certificate)
    new.rename(certificates.broker)


def test_sighup_reads_the_files_again(tmp_path):
    certificates = Certificates(tmp_path)
    with started(certificates.broker_settings()) as server:
        before = certificate_of(server)
        replace(certificates)
        os.kill(server.pid, signal.SIGHUP)
        eventually(lambda: certificate_of(server) != before)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing in here", "there is no private key in it"),
        ("another name", "ssl.allow.dn.changes would allow that"),
    ],
)
def test_a_new_file_that_is_no_good_leaves_the_old_one_in_force(tmp_path, text, reason):
    certificates = Certificates(tmp_path)
    if text == "another name":
        issued = certificates.authority.issue_broker(HOSTS, "somebody else")
        text = issued.key + issued.certificate
    with started(certificates.broker_settings()) as server:
        before = certificate_of(server)
        replace(certificates, text)
        os.kill(server.pid, signal.SIGHUP)
        eventually(lambda: reason in server.log())
        assert certificate_of(server) == before
        assert server.log().count("keeps the certificate that it has") == 1


# who does not speak TLS, or badly


@pytest.fixture
def guarded(certificates: Certificates) -> Iterator[ServerProcess]:
    settings = certificates.broker_settings(kbroker_handshake_timeout_ms="700")
    with started(settings) as process:
        yield process


def is_closed(connection: socket.socket) -> bool:
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def hello(certificates: Certificates) -> bytes:
    inbound, outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = certificates.client_context().wrap_bio(inbound, outbound, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outbound.read()


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (struct.pack(">ihhih", 10, 18, 0, 1, -1), "it does not speak TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "this is an HTTP request"),
        (os.urandom(1) + bytes(5000), "TLS handshake failed"),
        (b"\x16\x03\x01\xff\xff" + bytes(70_000), "TLS handshake failed"),
        (b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16_380), "TLS handshake failed"),
        (b"\x17\x03\x03\x00\x20" + bytes(32), "TLS handshake failed"),
    ],
    ids=["plain Kafka", "HTTP", "garbage", "an oversized record", "an endless hello", "data at once"],
)
def test_who_does_not_speak_tls_is_closed_with_a_line(server, sent, told):
    before = server.log().count(told)
    with socket.create_connection(server.address, timeout=20) as connection:
        connection.sendall(sent)
        assert is_closed(connection)
    eventually(lambda: server.log().count(told) > before)


def test_tls_on_a_plaintext_port_is_closed_with_a_line_that_says_so(certificates):
    with ServerProcess("--in-memory") as server:
        with pytest.raises((ssl.SSLError, Closed, ConnectionError)):
            TlsClient(server.address, certificates.client_context())
        eventually(lambda: "this is a TLS handshake; the listener is plaintext" in server.log())


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_handshake_that_does_not_end_is_closed_in_time(guarded, certificates, share):
    whole = hello(certificates)
    with socket.create_connection(guarded.address, timeout=20) as connection:
        connection.sendall(whole[: int(len(whole) * share)])
        assert is_closed(connection)
    if share:
        eventually(lambda: "its TLS handshake took more than 0.7 s" in guarded.log())
    else:  # there may be thousands of them
        assert "WARNING" not in guarded.log()


def test_a_damaged_record_after_the_handshake_closes_that_connection_alone(server, certificates):
    context = certificates.client_context()
    with TlsClient(server.address, context) as client, TlsClient(server.address, context) as other:
        assert answers(client)
        client.tls.plain.sendall(b"\x17\x03\x03\x00\x20" + os.urandom(32))
        with pytest.raises(REFUSED):
            client.take(1 << 20)
        assert answers(other)


def test_two_thousand_peers_that_say_nothing_hold_little_and_keep_nobody_out(certificates):
    settings = certificates.broker_settings()
    with started(settings) as server:
        with TlsClient(server.address, certificates.client_context()) as client:
            answers(client)
        before = server.memory_bytes()
        silent = [socket.create_connection(server.address, timeout=20) for _ in range(2000)]
        try:
            with TlsClient(server.address, certificates.client_context()) as client:
                assert answers(client)
            assert server.memory_bytes() - before < 16 << 20
            # of more than a thousand, those that came first are gone
            assert is_closed(silent[0])
        finally:
            for connection in silent:
                connection.close()


def test_a_thousand_handshakes_that_stall_half_way_hold_little(certificates):
    whole = hello(certificates)
    with started(certificates.broker_settings()) as server:
        with TlsClient(server.address, certificates.client_context()) as client:
            answers(client)
        before = server.memory_bytes()
        stalled = [socket.create_connection(server.address, timeout=20) for _ in range(1000)]
        try:
            for connection in stalled:
                connection.sendall(whole)
                assert connection.recv(5)  # the server's hello: it has done its part
            with TlsClient(server.address, certificates.client_context()) as client:
                assert answers(client)
            assert server.memory_bytes() - before < 150 << 20
        finally:
            for connection in stalled:
                connection.close()


# what keeps it from starting


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ssl.keystore.location": "/nowhere.pem"}, "/nowhere.pem: no such file or directory"),
        ({"ssl.keystore.location": ""}, "TLS needs a key"),
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.password: the key store"),
        ({"ssl.keystore.password": "hunter2"}, "ssl.keystore.password: PEM has none"),
        ({"ssl.truststore.location": "/etc/hostname"}, "/etc/hostname: there is no certificate in it"),
        ({"ssl.protocol": "TLSv9"}, "ssl.protocol: TLSv9 is not one of"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1"}, "ssl.enabled.protocols: none of them is safe"),
        ({"ssl.enabled.protocols": "TLSv1.2,TLSv7"}, "ssl.enabled.protocols: TLSv7 is not one of"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "can only be taken all together"),
        ({"ssl.cipher.suites": "TLS_FOO_WITH_BAR"}, "TLS_FOO_WITH_BAR is not the name of"),
        ({"ssl.principal.mapping.rules": "RULE:(/x/"}, "ssl.principal.mapping.rules: ( is not a pattern"),
        ({"listener.name.ssl.ssl.keystore.location": "/else"}, "/else: no such file"),
    ],
)
def test_a_setting_that_makes_no_sense_keeps_it_from_starting_with_one_line(certificates, changes, reason):
    process = started(certificates.broker_settings() | changes)
    with pytest.raises(AssertionError, match="did not start"):
        process.start()
    (line,) = process.log().splitlines()
    assert line.startswith("kbroker: listener SSL: ")
    assert reason in line
    assert "hunter2" not in line
    process.__exit__()


def test_hellos_that_were_tampered_with_do_no_harm(certificates):
    whole = hello(certificates)
    chance = random.Random(16)
    with started(certificates.broker_settings()) as server:
        idle = descriptors(server)
        with TlsClient(server.address, certificates.client_context()) as client:
            answers(client)
            before = server.memory_bytes()
            for _ in range(1000):
                tampered = bytearray(whole)
                for _ in range(chance.randint(1, 20)):
                    tampered[chance.randrange(len(tampered))] = chance.randrange(256)
                with socket.create_connection(server.address, timeout=20) as connection:
                    connection.sendall(
                        tampered[: chance.randint(1, len(tampered))] + bytes(chance.randint(0, 300))
                    )
            assert answers(client)
            assert server.memory_bytes() - before < 16 << 20
        assert let_in(server, certificates.client_context())
        assert "Traceback" not in server.log()
        eventually(lambda: descriptors(server) <= idle)


def descriptors(server: ServerProcess) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))
