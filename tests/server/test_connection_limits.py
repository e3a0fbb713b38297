"""How many connections may be open from one address."""

from __future__ import annotations

import pytest

from kbroker.config.definition import InvalidConfig
from kbroker.config.settings import Settings
from kbroker.network.connection_limits import ConnectionLimits
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.storage.worker import InlineWorker
from tests.support.raw_client import Closed
from tests.support.server_process import ServerProcess

PER_IP = "max.connections.per.ip is reached"
OVERRIDES = "max.connections.per.ip.overrides"


def limits(**flags: str) -> tuple[Settings, ConnectionLimits]:
    settings = Settings.load(flags={name.replace("_", "."): value for name, value in flags.items()})
    return settings, ConnectionLimits(settings, InlineWorker())


def test_an_address_may_have_so_many_connections_and_no_more() -> None:
    _, counted = limits(max_connections_per_ip="2")
    assert [counted.take("10.0.0.1") for _ in range(3)] == [None, None, PER_IP]
    assert counted.take("10.0.0.2") is None
    counted.give_back("10.0.0.1")
    counted.give_back("10.0.0.1")
    assert counted.take("10.0.0.1") is None


def test_all_addresses_share_the_limit_for_all() -> None:
    _, counted = limits(max_connections="1")
    assert counted.take("10.0.0.1") is None
    assert counted.take("10.0.0.2") == "max.connections is reached"


def test_an_override_takes_the_place_of_the_limit_for_every_address() -> None:
    overrides = "10.0.0.1:0, 10.0.0.2 : 2,0:0:0:0:0:0:0:1:1,[fe80::5]:1"
    _, counted = limits(max_connections_per_ip="1", max_connections_per_ip_overrides=overrides)
    assert counted.take("10.0.0.1") == PER_IP
    assert [counted.take("10.0.0.2") for _ in range(3)] == [None, None, PER_IP]
    assert [counted.take("::1") for _ in range(2)] == [None, PER_IP]
    assert [counted.take("fe80::5") for _ in range(2)] == [None, PER_IP]
    assert [counted.take("10.0.0.3") for _ in range(2)] == [None, PER_IP]


def test_an_override_may_name_a_host() -> None:
    _, counted = limits(max_connections_per_ip_overrides="localhost:1")
    assert [counted.take("127.0.0.1") for _ in range(2)] == [None, PER_IP]


def test_a_host_that_nobody_knows_is_logged_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    _, counted = limits(max_connections_per_ip_overrides="no-such-host.invalid:1,10.0.0.1:1")
    assert "no-such-host.invalid is not known" in caplog.text
    assert [counted.take("10.0.0.1") for _ in range(2)] == [None, PER_IP]


def test_overrides_may_change_while_the_broker_runs() -> None:
    settings, counted = limits()
    assert [counted.take("10.0.0.1") for _ in range(2)] == [None, None]
    settings.replace_dynamic({OVERRIDES: "10.0.0.1:2"}, {})
    assert counted.take("10.0.0.1") == PER_IP
    settings.replace_dynamic({}, {})
    assert counted.take("10.0.0.1") is None


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:", ":5", "10.0.0.1:-1", "10.0.0.1:x", "a:1,b"])
def test_what_is_not_host_and_count_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"overrides: .* is not HOST:COUNT"):
        Settings({OVERRIDES: text})[OVERRIDES]


def test_a_client_beyond_its_override_is_disconnected() -> None:
    with (
        ServerProcess("--in-memory", "--set", f"{OVERRIDES}=127.0.0.1:1") as server,
        server.client() as one,
        server.client() as two,
    ):
        assert one.ask(ApiVersionsRequest(), 0).error_code == 0
        with pytest.raises(Closed):
            two.ask(ApiVersionsRequest(), 0)
