"""Who may come in by HTTP where the listener asks for logins: the users and tokens of Kafka's clients."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kbroker.testing.control_client import ControlClient
from tests.authentication.provider import Provider
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually

DELAY_MS = 250


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def serve(*arguments: str, **options: Any) -> ServerProcess:
    return ServerProcess("--in-memory", "--http-port", "0", *arguments, **options)


def settings(**values: str) -> list[str]:
    return [part for name, value in values.items() for part in ("--set", f"{name.replace('_', '.')}={value}")]


@pytest.fixture(scope="module")
def audit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def server(audit_file: Path) -> Iterator[ServerProcess]:
    with serve(
        *("--user", "ada:secret", "--user", "bob:hunter2", "--log-level", "trace"),
        *settings(connection_failed_authentication_delay_ms=str(DELAY_MS)),
        *settings(**{"kbroker.audit.log.file": str(audit_file)}),
    ) as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def told(audit_file: Path, **wanted: str) -> list[dict[str, Any]]:
    """The events of the audit log with these fields."""
    text = audit_file.read_text() if audit_file.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if wanted.items() <= line.items()]


# passwords


def test_without_credentials_nothing_but_the_documentation_is_served(http: HttpClient) -> None:
    answer = http.get("/topics")
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (
        401,
        'Basic realm="kbroker", charset="UTF-8"',
    )
    assert "Basic" in answer.json["detail"]
    assert http.post("/topics", {"name": "t"}).status == 401
    refused = http.get("/v3/clusters")
    assert (refused.status, refused.json["error_code"]) == (401, 40101)
    assert http.get("/openapi.json").status == 200
    assert http.get("/docs").status == 200


def test_a_user_with_a_password_is_let_in(http: HttpClient) -> None:
    made = http.post("/topics", {"name": "mine"}, basic("ada", "secret"))
    assert made.status == 201
    assert http.ask("GET", "/topics/mine", headers=basic("bob", "hunter2")).status == 200


def test_curl_and_the_rest_proxy_log_in_as_well(server: ServerProcess) -> None:
    asked = ["curl", "-s", "-u", "ada:secret", f"{server.url}/v3/clusters"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(done.stdout)["kind"] == "KafkaClusterList"


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong"), ("nobody", "secret"), ("ada", "hunter2")])
def test_who_is_wrong_hears_it_late(http: HttpClient, name: str, password: str) -> None:
    began = time.monotonic()
    answer = http.ask("GET", "/topics", headers=basic(name, password))
    assert time.monotonic() - began >= DELAY_MS / 1000
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    assert answer.json["detail"] == "The user name or the password is wrong."
    assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200, "the connection stays"


def test_who_gives_up_waiting_leaves_nothing_behind(server: ServerProcess, http: HttpClient) -> None:
    parts = urlsplit(server.url)
    head = f"GET /topics HTTP/1.1\r\nHost: x\r\nAuthorization: {basic('ada', 'no')['Authorization']}\r\n\r\n"
    for _ in range(20):
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
            stream.sendall(head.encode())
    assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200


def test_the_audit_log_tells_a_login_once_and_a_failure_with_its_reason(
    server: ServerProcess, audit_file: Path
) -> None:
    with HttpClient(server.url) as http:
        http._connection.source_address = ("127.0.0.9", 0)
        for _ in range(3):
            assert http.ask("GET", "/topics", headers=basic("bob", "hunter2")).status == 200
        assert http.ask("GET", "/topics", headers=basic("bob", "hunter3")).status == 401
    wanted = {"address": "127.0.0.9", "listener": "HTTP", "mechanism": "Basic"}
    eventually(lambda: len(told(audit_file, **wanted)) == 2)
    success, failure = told(audit_file, **wanted)
    assert (success["principal"], success["outcome"]) == ("User:bob", "success")
    assert (failure["principal"], failure["outcome"]) == ("unknown", "failure")
    assert failure["reason"] == "its Basic login failed: Invalid username or password"


def test_what_somebody_changes_is_told_with_their_name(http: HttpClient, audit_file: Path) -> None:
    assert http.post("/topics", {"name": "changed"}, basic("bob", "hunter2")).status == 201
    eventually(lambda: bool(told(audit_file, resource="changed", principal="User:bob", api="POST /topics")))


def test_no_secret_is_in_any_log(server: ServerProcess, audit_file: Path) -> None:
    with HttpClient(server.url) as http:
        for path in ("/topics?access_token=in-the-query", "/no/such?access_token=in-the-query"):
            http.ask("GET", path, headers=basic("ada", "in-the-password"))
            http.ask("GET", path, headers={"Authorization": "in-the-scheme x"})
            http.ask("GET", path, headers={"Authorization": "Bearer in-the-token", "Cookie": "in-the-cookie"})
        http.ask("POST", "/topics", b'{"name": "in-the-body"', basic("ada", "secret"))
    logged = server.log() + audit_file.read_text()
    assert "User:ada" in logged
    assert "/no/such" in logged
    for secret in ("in-the", "hunter2", basic("ada", "secret")["Authorization"][6:]):
        assert secret not in logged


# users that come and go


LOGIN = (
    *("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=SCRAM-SHA-256"),
    *("-X", "sasl.username=ada", "-X", "sasl.password=secret"),
)


def user(server: ServerProcess, *arguments: str, password: str = "") -> None:
    command = [sys.executable, "-m", "kbroker", "user", *arguments, "-b", server.bootstrap, *LOGIN]
    subprocess.run(command, input=f"{password}\n", capture_output=True, text=True, timeout=60, check=True)


def test_stored_users_are_let_in_until_they_change(server: ServerProcess, http: HttpClient) -> None:
    def status(password: str) -> int:
        return http.ask("GET", "/topics", headers=basic("carol", password)).status

    assert status("first") == 401
    user(server, "create", "carol", password="first")
    assert status("first") == 200
    user(server, "password", "carol", password="second")
    assert (status("first"), status("second")) == (401, 200)
    user(server, "delete", "carol")
    assert status("second") == 401


# what failing costs


def test_strangers_are_closed_and_those_who_logged_in_stay() -> None:
    port = free_port()
    with (
        serve("--user", "ada:secret", "--control-port", str(port)) as server,
        HttpClient(server.url) as known,
        HttpClient(server.url) as stranger,
    ):
        assert known.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200
        assert stranger.get("/docs").status == 200
        control = ControlClient(port)
        control.do("advance_time", ms=11_000)
        control.close()
        eventually(lambda: _is_closed(stranger))
        assert known.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200


def _is_closed(client: HttpClient) -> bool:
    client._connection.sock.settimeout(0.01)
    try:
        return client._connection.sock.recv(1, socket.MSG_PEEK) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_guesses_from_one_address_do_not_keep_others_out() -> None:
    """Each checked password takes milliseconds of a thread, and who guesses has many connections."""
    limited = settings(**{"kbroker.max.unauthenticated.connections": "100"})
    with serve("--user", "ada:secret", *limited) as server, ThreadPoolExecutor(40) as pool:

        def guess(number: int) -> None:
            try:
                with HttpClient(server.url) as http:
                    answer = http.ask("GET", "/topics", headers=basic("ada", f"guess-{number}"))
                    assert answer.status in (401, 429)
            except ConnectionError:
                pass  # evicted

        guesses = [pool.submit(guess, number) for number in range(120)]
        with HttpClient(server.url) as http:
            http._connection.source_address = ("127.0.0.9", 0)
            assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200
        for each in guesses:
            each.result()
        assert 1 <= server.log().count("login failed") <= 10, "the log tells of the first ones only"


# which passwords


def test_without_tls_and_plain_nobody_logs_in_and_is_told_why() -> None:
    scram = settings(listeners="SASL_PLAINTEXT://127.0.0.1:0", sasl_enabled_mechanisms="SCRAM-SHA-256")
    with serve("--user", "ada:secret", *scram) as server, HttpClient(server.url) as http:
        answer = http.get("/topics")
        assert answer.status == 403
        assert "PLAIN" in answer.json["detail"]
        assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 403
        assert "nobody can log in by HTTP" in server.log()


def test_http_may_have_mechanisms_of_its_own() -> None:
    own = settings(listeners="SASL_PLAINTEXT://127.0.0.1:0", sasl_enabled_mechanisms="SCRAM-SHA-256")
    own += ["--set", "listener.name.http.sasl.enabled.mechanisms=PLAIN"]
    with serve("--user", "ada:secret", *own) as server, HttpClient(server.url) as http:
        assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200


def test_users_of_the_listener_that_http_takes_after_are_let_in() -> None:
    module = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_eve="open-sesame";'
    jaas = ("--set", f"listener.name.sasl_plaintext.plain.sasl.jaas.config={module}")
    plain = settings(listeners="SASL_PLAINTEXT://127.0.0.1:0", sasl_enabled_mechanisms="PLAIN")
    with serve(*plain, *jaas) as server, HttpClient(server.url) as http:
        assert http.ask("GET", "/topics", headers=basic("eve", "open-sesame")).status == 200
        assert http.ask("GET", "/topics", headers=basic("eve", "sesame")).status == 401


# tokens


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module")
def lasting(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """With Basic and Bearer, and with endpoints that last."""
    keys = provider.write(tmp_path_factory.mktemp("keys") / "jwks.json")
    with serve(
        *("--user", "ada:secret", "--log-level", "trace"),
        *settings(
            sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256,OAUTHBEARER",
            sasl_oauthbearer_jwks_endpoint_url=keys,
            sasl_oauthbearer_expected_audience="kafka",
            sasl_oauthbearer_clock_skew_seconds="0",
        ),
        module="tests.http.lasting",
    ) as process:
        yield process


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_the_bearer_of_a_token_is_let_in(lasting: ServerProcess, provider: Provider) -> None:
    with HttpClient(lasting.url) as http:
        for _ in range(2):
            assert http.ask("GET", "/topics", headers=bearer(provider.token())).status == 200
        assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200


@pytest.mark.parametrize("wrong", [{"aud": "other"}, {"exp": 1}, {"key": "stranger"}, {"sub": None}], ids=str)
def test_a_token_that_is_not_valid_is_refused(
    lasting: ServerProcess, provider: Provider, wrong: dict[str, Any]
) -> None:
    claims = dict(wrong)
    if "key" in claims:
        claims["key"] = provider.stranger
    with HttpClient(lasting.url) as http:
        answer = http.ask("GET", "/topics", headers=bearer(provider.token(**claims)))
    assert (answer.status, answer.json["detail"]) == (401, "The token is not valid.")
    challenge = answer.headers["WWW-Authenticate"]
    assert 'Bearer realm="kbroker", error="invalid_token"' in challenge
    assert challenge.startswith("Basic ")


def test_a_token_in_the_query_is_for_event_streams_alone(lasting: ServerProcess, provider: Provider) -> None:
    path = f"?access_token={provider.token()}"
    with HttpClient(lasting.url) as http:
        assert http.get(f"/topics{path}").status == 401
        answer = http.get(f"/events{path}", Accept="text/event-stream")
        assert (answer.status, answer.body) == (200, b"data: User:joe\n\n")


def test_an_event_stream_ends_with_its_token(lasting: ServerProcess, provider: Provider) -> None:
    with HttpClient(lasting.url) as http:
        for token in short_lived(provider):
            answer = http.ask("GET", "/events?wait=1", headers=bearer(token))
            if answer.status == 200:
                break
        assert answer.body == b"data: User:joe\n\n"
        assert http.ask("GET", "/topics", headers=bearer(token)).status == 401


def short_lived(provider: Provider) -> Iterator[str]:
    """Tokens that end soon: the first one may be over before it is looked at."""
    for seconds in (2, 4, 8, 16):
        yield provider.token(exp=int(time.time()) + seconds)


def socket_of(server: ServerProcess, path: str, **options: Any) -> Any:
    from websockets.sync.client import connect

    return connect(server.url.replace("http", "ws", 1) + path, open_timeout=20, close_timeout=20, **options)


def base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_a_browsers_websocket_has_its_credentials_among_the_subprotocols(
    lasting: ServerProcess, provider: Provider
) -> None:
    for credentials, principal in (
        (f"bearer.{provider.token()}", "User:joe"),
        (f"basic.{base64url('ada:secret')}", "User:ada"),
    ):
        with socket_of(lasting, "/echo", subprotocols=["kbroker", credentials]) as websocket:
            assert websocket.subprotocol == "kbroker"
            assert websocket.recv(20) == principal


def test_a_websocket_has_a_header_or_a_token_in_its_query_as_well(
    lasting: ServerProcess, provider: Provider
) -> None:
    with socket_of(lasting, "/echo", additional_headers=basic("ada", "secret")) as websocket:
        assert websocket.recv(20) == "User:ada"
        websocket.send("still here")
        assert websocket.recv(20) == "still here"
    with socket_of(lasting, f"/echo?access_token={provider.token()}") as websocket:
        assert websocket.recv(20) == "User:joe"


def test_a_websocket_of_nobody_is_refused(lasting: ServerProcess, provider: Provider) -> None:
    from websockets.exceptions import InvalidStatus

    expired = provider.token(exp=1)
    for path, protocols in (
        ("/echo", None),
        ("/echo", ["kbroker", f"bearer.{expired}"]),
        ("/echo", ["kbroker", "basic.%"]),
        (f"/echo?access_token={expired}", None),
    ):
        with pytest.raises(InvalidStatus) as refused, socket_of(lasting, path, subprotocols=protocols):
            pass
        assert refused.value.response.status_code == 401


def test_a_websocket_ends_with_its_token(lasting: ServerProcess, provider: Provider) -> None:
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    for token in short_lived(provider):
        try:
            websocket = socket_of(lasting, "/echo", subprotocols=["kbroker", f"bearer.{token}"])
            break
        except InvalidStatus:
            continue
    with websocket:
        assert websocket.recv(20) == "User:joe"
        with pytest.raises(ConnectionClosed) as closed:
            websocket.recv(20)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "the token has expired")


def test_no_token_and_no_query_is_logged_even_when_something_fails(
    lasting: ServerProcess, provider: Provider
) -> None:
    token = provider.token()
    with HttpClient(lasting.url) as http:
        answer = http.ask("POST", f"/fail?access_token={token}", b"in-the-body", bearer(token))
        assert answer.status == 500
    with socket_of(lasting, f"/echo?access_token={token}", subprotocols=["kbroker", "x"]) as websocket:
        websocket.recv(20)
    assert "RuntimeError: of a test" in lasting.log()
    for secret in (token, token.split(".")[2], "in-the-body", "access_token"):
        assert secret not in lasting.log()


# delegation tokens


def test_a_delegation_token_is_a_name_and_a_password() -> None:
    from kbroker.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
    from tests.authentication.sasl_client import plain

    secret = settings(delegation_token_secret_key="of-a-test")
    with serve("--user", "ada:secret", *secret) as server, HttpClient(server.url) as http:
        with server.client() as client:
            plain(client, "ada", "secret")
            token = client.ask(CreateDelegationTokenRequest("User", "ada"), 3)
        given = basic(token.token_id, base64.b64encode(bytes(token.hmac)).decode())
        assert http.ask("GET", "/topics", headers=given).status == 200
        assert http.ask("GET", "/topics", headers=basic(token.token_id, "x")).status == 401
