"""Web pages: those that may use HTTP, those that try without being asked, and names given to this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess

from .test_listener import settings
from .test_logins import basic, serve, socket_of

APP = "https://app.example:8443"
EVIL = "http://evil.example"
FORM = {"Content-Type": "text/plain"}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """As it comes: nobody is asked who they are, no page is named."""
    with serve(module="tests.http.lasting") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def open_to_app() -> Iterator[ServerProcess]:
    with serve(*settings({"kbroker.http.cors.origins": APP}), module="tests.http.lasting") as process:
        yield process


def authority(server: ServerProcess) -> str:
    return urlsplit(server.url).netloc


def allowed(answer: Answer) -> tuple[str | None, str | None]:
    headers = answer.headers
    return headers["Access-Control-Allow-Origin"], headers["Access-Control-Allow-Credentials"]


# a broker that no page was named to


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost:3000", "https://127.0.0.1", "x"])
def test_what_a_page_posts_without_asking_is_refused_and_not_done(http: HttpClient, origin: str) -> None:
    """No browser asks before it sends text/plain to 127.0.0.1."""
    answer = http.ask("POST", "/topics", b'{"name": "by-a-page"}', FORM | {"Origin": origin})
    assert answer.status == 403
    assert "kbroker.http.cors.origins" in answer.json["detail"]
    assert allowed(answer) == (None, None)
    assert http.get("/topics/by-a-page").status == 404
    rest = http.ask(
        "POST", "/topics/x", b"{}", {"Content-Type": "application/vnd.kafka.json.v2+json", "Origin": origin}
    )
    assert (rest.status, rest.json["error_code"]) == (403, 40301)


def test_the_brokers_own_pages_may_do_everything(server: ServerProcess, http: HttpClient) -> None:
    host = authority(server)
    for origin in (f"http://{host}", f"HTTP://{host}", f"https://{host}"):  # a proxy before it speaks TLS
        made = http.post("/topics", {"name": "own"}, {"Origin": origin, "Sec-Fetch-Site": "same-origin"})
        assert made.status in (201, 409)
        assert allowed(made) == (None, None)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_images_and_links_of_other_sites_get_the_documentation_alone(http: HttpClient, site: str) -> None:
    assert http.get("/topics", Sec_Fetch_Site=site).status == 403
    assert http.get("/docs", Sec_Fetch_Site=site).status == 200
    assert http.get("/topics", Sec_Fetch_Site="none").status == 200


def test_a_browser_that_asks_before_is_told_no(http: HttpClient) -> None:
    asked = {"Origin": EVIL, "Access-Control-Request-Method": "DELETE"}
    answer = http.ask("OPTIONS", "/topics/orders", headers=asked)
    assert answer.status == 403
    assert allowed(answer) == (None, None)


def test_a_websocket_of_another_page_is_refused(server: ServerProcess) -> None:
    from websockets.exceptions import InvalidStatus

    for origin in (EVIL, "null"):
        with pytest.raises(InvalidStatus) as refused, socket_of(server, "/echo", origin=origin):
            pass
        assert refused.value.response.status_code == 403
    with socket_of(server, "/echo", origin=f"http://{authority(server)}") as websocket:
        assert websocket.recv(20) == "User:ANONYMOUS"


# names that somebody gave to 127.0.0.1


def asked_as(server: ServerProcess, host: str) -> int:
    with HttpClient(server.url) as http:
        return http.ask("GET", "/topics", headers={"Host": host}).status


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "EVIL.example.",
        "127.0.0.1.evil.example",
        "127.0.0.1.nip.io:80",
        "localhost.evil.example",
        "1.2.3.4x",
        "a.[::1]",
    ],
)
def test_by_a_name_that_anybody_may_have_given_it_nothing_is_served(server: ServerProcess, host: str) -> None:
    assert asked_as(server, host) == 403


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        "LOCALHOST:8080",
        "[::1]:8080",
        "kbroker",
        "a.localhost",
        "1.2.3.4",
    ],
)
def test_by_addresses_and_names_of_its_own_it_is(server: ServerProcess, host: str) -> None:
    assert asked_as(server, host) == 200


def test_names_that_are_known_are_served_too() -> None:
    known = settings(
        {
            "kbroker.http.hosts": "kafka.corp.example",
            "kbroker.http.cors.origins": "https://console.corp.example:444",
            "advertised.listeners": "PLAINTEXT://broker.corp.example:9092",
        }
    )
    with serve(*known) as server:
        for host in ("kafka.corp.example", "Broker.corp.example:80", "console.corp.example"):
            assert asked_as(server, host) == 200
        assert asked_as(server, "corp.example") == 403


def test_where_logins_are_asked_for_any_name_will_do() -> None:
    with serve("--user", "ada:secret") as server, HttpClient(server.url) as http:
        given = basic("ada", "secret") | {"Host": "behind.a.proxy"}
        assert http.ask("GET", "/topics", headers=given).status == 200


def test_a_client_without_a_name_is_no_browser(server: ServerProcess) -> None:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
        stream.sendall(b"GET /topics HTTP/1.0\r\n\r\n")
        assert stream.recv(100).startswith(b"HTTP/1.1 200 ")


# pages that were named


def test_a_page_that_was_named_reads_and_writes(open_to_app: ServerProcess) -> None:
    with HttpClient(open_to_app.url) as http:
        made = http.post("/topics", {"name": "t"}, {"Origin": APP})
        assert made.status == 201
        assert allowed(made) == (APP, "true")
        assert made.headers["Vary"] == "Origin"
        assert "Location" in made.headers["Access-Control-Expose-Headers"]
        missing = http.get("/topics/none", Origin=APP)
        assert missing.status == 404
        assert allowed(missing) == (APP, "true"), "a page has to read what is wrong"
        assert http.get("/topics", Origin=EVIL).status == 403
        assert http.get("/topics").headers["Vary"] == "Origin"
    with socket_of(open_to_app, "/echo", origin=APP) as websocket:
        assert websocket.recv(20) == "User:ANONYMOUS"


def test_a_browser_that_asks_before_is_told_what_may_be_done(open_to_app: ServerProcess) -> None:
    asked = {
        "Origin": APP,
        "Access-Control-Request-Method": "DELETE",
        "Access-Control-Request-Headers": "authorization, x-client-id",
        "Access-Control-Request-Private-Network": "true",
    }
    with HttpClient(open_to_app.url) as http:
        answer = http.ask("OPTIONS", "/topics/orders", headers=asked)
    assert (answer.status, answer.body) == (204, b"")
    assert allowed(answer) == (APP, "true")
    assert "DELETE" in answer.headers["Access-Control-Allow-Methods"]
    assert answer.headers["Access-Control-Allow-Headers"] == "authorization, x-client-id"
    assert answer.headers["Access-Control-Allow-Private-Network"] == "true"
    assert answer.headers["Access-Control-Max-Age"] == "600"
    assert "Origin" in answer.headers["Vary"]


def test_what_a_browser_asks_needs_no_login() -> None:
    named = settings({"kbroker.http.cors.origins": APP})
    asked = {"Origin": APP, "Access-Control-Request-Method": "GET"}
    with serve("--user", "ada:secret", *named) as server, HttpClient(server.url) as http:
        assert http.ask("OPTIONS", "/topics", headers=asked).status == 204
        refused = http.get("/topics", Origin=APP)
        assert refused.status == 401
        assert allowed(refused) == (APP, "true")
        assert http.ask("GET", "/topics", headers=basic("ada", "secret") | {"Origin": APP}).status == 200


def test_nonsense_in_what_a_browser_asks_is_not_sent_back(open_to_app: ServerProcess) -> None:
    asked = {"Origin": APP, "Access-Control-Request-Method": "x"}
    with HttpClient(open_to_app.url) as http:
        for wanted in ("a: b", "é", "x" * 2001):
            given = asked | {"Access-Control-Request-Headers": wanted}
            answer = http.ask("OPTIONS", "/topics", headers=given)
            assert answer.status == 204
            assert "Access-Control-Allow-Headers" not in answer.headers


# all pages


def test_all_pages_are_served_but_not_with_what_a_browser_adds() -> None:
    anybody = settings({"kbroker.http.cors.origins": "*"})
    with serve("--user", "ada:secret", *anybody) as server, HttpClient(server.url) as http:
        refused = http.ask("GET", "/topics", headers=basic("ada", "secret") | {"Origin": EVIL})
        assert refused.status == 403
        assert allowed(refused) == ("*", None)
        assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200
    with serve(*anybody) as server, HttpClient(server.url) as http:
        for origin in (EVIL, "null"):
            answer = http.get("/topics", Origin=origin)
            assert answer.status == 200
            assert allowed(answer) == ("*", None)


def test_origins_are_altered_at_run_time(server: ServerProcess) -> None:
    with HttpClient(server.url) as http:
        assert http.get("/topics", Origin=APP).status == 403
        for value, status in ((APP.upper(), 200), (None, 403)):
            change = {"kbroker.http.cors.origins": value}
            assert http.ask("PATCH", "/cluster/configs", json_body=change).status == 200
            assert http.get("/topics", Origin=APP).status == status


@pytest.mark.parametrize(
    "value", ["app.example", "https://app.example/", "https://*.example", "https://a?b", " , "]
)
def test_an_origin_that_is_none_is_refused(http: HttpClient, value: str) -> None:
    change = {"kbroker.http.cors.origins": value}
    assert http.ask("PATCH", "/cluster/configs", json_body=change).status == 400
