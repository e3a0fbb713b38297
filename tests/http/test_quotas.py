"""Quotas of clients that come by HTTP: those of Kafka's clients, and together with them."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from kbroker.http.table import endpoints
from kbroker.quotas.entities import PRODUCER_BYTE_RATE
from kbroker.testing.control_client import ControlClient
from tests.authentication.sasl_client import plain
from tests.support.http_client import Answer, HttpClient
from tests.support.raw_quotas import set_quotas
from tests.support.raw_topics import produce
from tests.support.server_process import ServerProcess, eventually

from .test_listener import settings
from .test_logins import basic, free_port, serve, socket_of

RATE = 50_000  # bytes per second
PART = b"x" * 10_000
SHORT = {"quota.window.num": "2", "controller.quota.window.num": "2"}  # of a second each
ANONYMOUS = {"user": "ANONYMOUS"}
PUBLISH = "/topics/t/partitions/0"
FETCH = f"{PUBLISH}/fetch?offset=0&raw=1"
STREAM = "text/event-stream"


@pytest.fixture
def patient() -> Iterator[ServerProcess]:
    """Holds requests back for as long as it must."""
    with serve(*held_back(60000), module="tests.http.lasting") as process:
        make_topic(process)
        yield process


@pytest.fixture
def strict() -> Iterator[ServerProcess]:
    """Holds nothing back."""
    with serve(*held_back(0), module="tests.http.lasting") as process:
        make_topic(process)
        yield process


def make_topic(server: ServerProcess) -> None:
    with HttpClient(server.url) as http:
        assert http.post("/topics", {"name": "t", "configs": {"max.message.bytes": "20000000"}}).status == 201


def give(server: ServerProcess, entity: dict[str, str | None], **quotas: float | None) -> None:
    with server.client() as client:
        set_quotas(client, entity, **quotas)


def publish(http: HttpClient, body: bytes = PART, **headers: str) -> Answer:
    return http.ask("POST", PUBLISH, body, {name.replace("_", "-"): text for name, text in headers.items()})


def end_offset(server: ServerProcess) -> int:
    with HttpClient(server.url) as http:
        return int(http.get(PUBLISH).json["highWatermark"])


def held_back(most_ms: int) -> list[str]:
    return settings(SHORT | {"kbroker.http.max.throttle.ms": str(most_ms)})


# what is published


@pytest.mark.parametrize("kept", [True, False], ids=["on one connection", "on a new one each"])
def test_a_publisher_is_slowed_to_its_rate(patient: ServerProcess, kept: bool) -> None:
    give(patient, ANONYMOUS, producer_byte_rate=RATE)
    began = time.monotonic()
    http = HttpClient(patient.url)
    for _ in range(20):
        assert publish(http).status == 200
        if not kept:
            http.close()
    http.close()
    # Of 200,000 bytes what two windows allow at once is at most 100,000.
    assert time.monotonic() - began >= 2


def test_many_connections_share_the_rate(patient: ServerProcess) -> None:
    give(patient, ANONYMOUS, producer_byte_rate=RATE)
    began = time.monotonic()

    def some(_: int) -> None:
        with HttpClient(patient.url, timeout=90) as http:
            for _ in range(3):
                assert publish(http).status == 200

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(some, range(10)))
    assert time.monotonic() - began >= 2


def test_who_would_wait_too_long_is_told_when_to_come_again(strict: ServerProcess) -> None:
    give(strict, ANONYMOUS, producer_byte_rate=1000)
    with HttpClient(strict.url) as http:
        assert publish(http).status == 200
        before = end_offset(strict)
        answer = publish(http)
        assert answer.status == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 10
        assert 0 < answer.json["retryAfterMs"] <= 10_000
        proxys = http.ask(
            "POST",
            "/topics/t",
            b'{"records": [{"value": "eA=="}]}',
            {"Content-Type": "application/vnd.kafka.binary.v2+json"},
        )
        assert (proxys.status, proxys.json["error_code"]) == (429, 42901)
        assert "Retry-After" in proxys.headers
        assert end_offset(strict) == before
        assert http.get("/topics").status == 200, "what publishes nothing is served"


def test_what_was_too_much_for_all_windows_is_waited_for() -> None:
    """The rate forgets after two windows; a client of Kafka's protocol would not be heard for 20 seconds."""
    port = free_port()
    with serve(*held_back(0), "--control-port", str(port)) as server, HttpClient(server.url) as http:
        make_topic(server)
        give(server, ANONYMOUS, producer_byte_rate=100_000)
        control = ControlClient(port)
        assert publish(http, b"x" * 2_000_000).status == 200
        assert publish(http).status == 429
        control.do("advance_time", ms=10_000)
        assert publish(http).status == 429
        control.do("advance_time", ms=11_000)
        assert publish(http).status == 200
        control.close()


def test_clients_of_both_protocols_share_what_there_is(strict: ServerProcess) -> None:
    give(strict, ANONYMOUS, producer_byte_rate=1000)
    with strict.client() as client, HttpClient(strict.url) as http:
        assert produce(client, "t", 0, PART) == 0
        assert publish(http).status == 429


def test_a_client_id_is_a_header(strict: ServerProcess) -> None:
    give(strict, {"client-id": "slow"}, producer_byte_rate=1000)
    with HttpClient(strict.url) as http:
        for _ in range(3):
            assert publish(http).status == 200
            assert publish(http, X_Client_Id="fast").status == 200
        assert publish(http, X_Client_Id="slow").status == 200
        assert publish(http, X_Client_Id="slow").status == 429
        assert publish(http, X_Client_Id="fast").status == 200


def test_a_user_is_who_logged_in() -> None:
    strict = settings(SHORT | {"kbroker.http.max.throttle.ms": "0"})
    with (
        serve("--user", "ada:secret", "--user", "bob:hunter2", *strict) as server,
        HttpClient(server.url) as http,
    ):
        ada, bob = basic("ada", "secret"), basic("bob", "hunter2")
        assert http.post("/topics", {"name": "t"}, ada).status == 201
        with server.client() as client:
            plain(client, "ada", "secret")
            set_quotas(client, {"user": "ada"}, producer_byte_rate=1000)
        statuses = [http.ask("POST", PUBLISH, PART, who).status for who in (ada, ada, bob, bob)]
    assert statuses == [200, 429, 200, 200]


def test_quotas_hold_at_once_and_end_at_once(strict: ServerProcess) -> None:
    with HttpClient(strict.url) as http:
        assert publish(http).status == 200
        give(strict, ANONYMOUS, producer_byte_rate=1000)
        assert publish(http).status == 200
        assert publish(http).status == 429
        give(strict, ANONYMOUS, producer_byte_rate=None)
        assert publish(http).status == 200


def test_who_goes_while_it_is_held_back_publishes_nothing(patient: ServerProcess) -> None:
    give(patient, ANONYMOUS, producer_byte_rate=1000)
    with HttpClient(patient.url) as http:
        assert publish(http).status == 200
    before = end_offset(patient)
    parts = urlsplit(patient.url)
    head = f"POST {PUBLISH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(PART)}\r\n\r\n".encode()
    with HttpClient(patient.url) as other:
        for _ in range(5):
            with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
                stream.sendall(head + PART)
                taken = [other.get("/topics").status for _ in range(2)]  # what came before has its turn
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        taken += [other.get("/topics").status for _ in range(2)]
        assert set(taken) == {200}
    give(patient, ANONYMOUS, producer_byte_rate=None)
    assert end_offset(patient) == before


def test_what_was_announced_and_never_came_is_not_used(strict: ServerProcess) -> None:
    give(strict, ANONYMOUS, producer_byte_rate=RATE)
    parts = urlsplit(strict.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
        stream.sendall(f"POST {PUBLISH} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\nx".encode())
        with HttpClient(strict.url) as http:
            eventually(lambda: publish(http, b"").status == 429)
    with HttpClient(strict.url) as http:
        eventually(lambda: publish(http).status == 200)


def test_a_body_that_goes_on_is_taken_at_the_rate(patient: ServerProcess) -> None:
    give(patient, ANONYMOUS, producer_byte_rate=RATE)
    with HttpClient(patient.url, timeout=60) as http:
        cluster = http.get("/v3/clusters").json["data"][0]["cluster_id"]
        record = b'{"value": {"type": "STRING", "data": "' + b"x" * 9_960 + b'"}}'
        began = time.monotonic()
        http._connection.request(
            "POST",
            f"/v3/clusters/{cluster}/topics/t/records",
            (record for _ in range(20)),
            {"Transfer-Encoding": "chunked", "Content-Type": "application/json"},
            encode_chunked=True,
        )
        answer = Answer(http._connection.getresponse())
    assert answer.body.count(b'"error_code":200') == 20, answer
    assert time.monotonic() - began >= 2


# what is read


def test_a_reader_is_slowed_to_its_rate(patient: ServerProcess) -> None:
    with HttpClient(patient.url) as http:
        publish(http)
        give(patient, ANONYMOUS, consumer_byte_rate=RATE)
        began = time.monotonic()
        for _ in range(20):
            assert http.get(FETCH).body == PART
        assert time.monotonic() - began >= 2


def test_a_reader_is_told_when_to_come_again(strict: ServerProcess) -> None:
    with HttpClient(strict.url) as http:
        publish(http)
        give(strict, ANONYMOUS, consumer_byte_rate=1000)
        assert http.get(FETCH).status == 200
        assert http.get(FETCH).status == 429
        assert publish(http).status == 200


def test_a_stream_keeps_to_the_rate_also_one_that_was_there_before(patient: ServerProcess) -> None:
    with HttpClient(patient.url, timeout=60) as http, socket_of(patient, "/echo") as websocket:
        websocket.recv(20)
        give(patient, ANONYMOUS, consumer_byte_rate=RATE)
        began = time.monotonic()
        answer = http.get("/events?parts=20", Accept=STREAM)
        assert answer.body.count(b"data: x") == 20
        assert time.monotonic() - began >= 2
        began = time.monotonic()
        for _ in range(20):
            websocket.send("x" * 10_000)
            assert len(websocket.recv(60)) == 10_000
        assert time.monotonic() - began >= 2


def test_what_a_websocket_brings_counts_as_published(patient: ServerProcess) -> None:
    with socket_of(patient, "/echo") as websocket:
        websocket.recv(20)
        give(patient, ANONYMOUS, producer_byte_rate=RATE)
        began = time.monotonic()
        for _ in range(20):
            websocket.send("x" * 10_000)
            websocket.recv(60)
        assert time.monotonic() - began >= 2


def test_a_stream_that_waits_goes_on_when_the_quota_is_gone(patient: ServerProcess) -> None:
    give(patient, ANONYMOUS, consumer_byte_rate=1)
    with ThreadPoolExecutor(1) as pool, HttpClient(patient.url, timeout=60) as http:
        whole = pool.submit(http.get, "/events?parts=3", Accept=STREAM)
        with pytest.raises(TimeoutError):
            whole.result(1)
        give(patient, ANONYMOUS, consumer_byte_rate=None)
        assert whole.result(30).body.count(b"data: x") == 3


# time and partitions


def test_time_on_the_event_loop_is_a_quota(patient: ServerProcess) -> None:
    give(patient, ANONYMOUS, request_percentage=0.0001)  # 1 µs in a second: a request takes many times that
    began = time.monotonic()
    with HttpClient(patient.url) as http:
        for _ in range(5):
            http.get("/topics")
    assert time.monotonic() - began >= 1  # a request waits for a window at most, which is a second


def test_partitions_that_are_created_count(strict: ServerProcess) -> None:
    give(strict, ANONYMOUS, controller_mutation_rate=2)
    with HttpClient(strict.url) as http:
        assert http.post("/topics", {"name": "many", "partitions": 20}).status == 201
        answer = http.post("/topics", {"name": "more", "partitions": 1})
        assert (answer.status, answer.json["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert 1 <= int(answer.headers["Retry-After"]) <= 10
        assert http.get("/topics/more").status == 404


def test_all_that_publishes_and_reads_has_its_quota() -> None:
    found = {(endpoint.method, path): endpoint.quota for path, endpoint in endpoints()}
    asked = {
        ("POST", path)
        for path in (
            "/topics/{topic}",
            "/topics/{topic}/messages",
            "/topics/{topic}/partitions/{partition}",
            "/topics/{topic}/partitions/{partition}/batch",
            "/messages",
            "/messages/batch",
            "/transactions/{transaction}/messages",
            "/transactions/{transaction}/topics/{topic}/partitions/{partition}",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/records",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/records:batch",
        )
    }
    assert all(found[each] == PRODUCER_BYTE_RATE for each in asked)
    for endpoint in (endpoint for _, endpoint in endpoints()):
        if endpoint.tag == "publishing":
            assert endpoint.quota == PRODUCER_BYTE_RATE, endpoint.path
        if endpoint.method == "DELETE":
            continue
        if endpoint.tag in ("fetching", "streams") or endpoint.path.endswith("/records"):
            assert endpoint.quota is not None, endpoint.path
