"""listeners, advertised.listeners and the flags that move them."""

from __future__ import annotations

import pytest

from kbroker.config.errors import SettingError
from kbroker.config.listeners import Listener, parse_advertised, parse_listeners
from kbroker.config.settings import Settings

MAP = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL:SASL_SSL,INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"


def test_the_default_is_loopback_at_kafkas_port():
    settings = Settings.load()
    assert settings.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert settings.advertised_address("PLAINTEXT") is None


def test_several_named_listeners_are_taken_in_their_order():
    listeners = parse_listeners(("inside://:9092", "OUTSIDE://10.0.0.1:9094"), MAP)
    assert listeners == (Listener("INSIDE", "", 9092), Listener("OUTSIDE", "10.0.0.1", 9094))


def test_ipv6_addresses_stand_in_brackets():
    (listener,) = parse_listeners(("PLAINTEXT://[::1]:9092",), MAP)
    assert listener == Listener("PLAINTEXT", "::1", 9092)
    assert str(listener) == "PLAINTEXT://[::1]:9092"


def test_listeners_of_kafkas_controller_are_left_out():
    listeners = parse_listeners(("PLAINTEXT://:9092", "CONTROLLER://:9093"), MAP, ("CONTROLLER",))
    assert [listener.name for listener in listeners] == ["PLAINTEXT"]
    advertised = parse_advertised(
        ("PLAINTEXT://localhost:9092", "CONTROLLER://localhost:9093"), listeners, ("CONTROLLER",)
    )
    assert advertised == {"PLAINTEXT": Listener("PLAINTEXT", "localhost", 9092)}


def test_one_port_may_serve_two_addresses():
    listeners = parse_listeners(("INSIDE://127.0.0.1:9092", "OUTSIDE://[::1]:9092"), MAP)
    assert {listener.port for listener in listeners} == {9092}


def test_port_zero_may_be_given_to_every_listener():
    assert len(parse_listeners(("INSIDE://:0", "OUTSIDE://:0"), MAP)) == 2


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (("localhost:9092",), "localhost:9092 is not NAME://HOST:PORT"),
        (("PLAINTEXT://::1:9092",), "is not NAME://HOST:PORT"),
        (("PLAINTEXT://:99999",), "the port is above 65535"),
        (("PLAINTEXT://:1", "plaintext://:2"), "the name PLAINTEXT appears twice"),
        (("INSIDE://:9092", "OUTSIDE://:9092"), "port 9092 is given to two listeners"),
        (("INSIDE://127.0.0.1:9092", "OUTSIDE://:9092"), "port 9092 is given to two listeners"),
        (("NEW://:9093",), "names no protocol for NEW"),
        (("CONTROLLER://:9093",), "no listener for clients"),
    ],
)
def test_a_listener_that_cannot_be_opened_is_explained(entries, problem):
    with pytest.raises(SettingError) as error:
        parse_listeners(entries, MAP, ("CONTROLLER",))
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (("OTHER://host:1",), "there is no listener named OTHER, only PLAINTEXT"),
        (("PLAINTEXT://0.0.0.0:9092",), "clients cannot connect to 0.0.0.0"),
        (("PLAINTEXT://[::]:9092",), "clients cannot connect to ::"),
        (("PLAINTEXT://host:0",), "is not an address that clients can connect to"),
        (("PLAINTEXT://:9092",), "is not an address that clients can connect to"),
        (("PLAINTEXT://a:1", "PLAINTEXT://b:1"), "appears twice"),
    ],
)
def test_an_address_that_clients_cannot_use_is_not_advertised(entries, problem):
    with pytest.raises(SettingError) as error:
        parse_advertised(entries, [Listener("PLAINTEXT", "", 9092)])
    assert problem in str(error.value)


def test_a_protocol_map_that_is_none_is_explained():
    with pytest.raises(SettingError, match="PLAINTEXT:TELNET is not NAME:PROTOCOL"):
        Settings.load(flags={"listener.security.protocol.map": "PLAINTEXT:TELNET"})


def test_host_and_port_move_the_first_listener_and_leave_the_others():
    settings = Settings.load(
        flags={
            "listeners": "PLAINTEXT://:9092,OTHER://:9094",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        },
        host="::1",
        port=0,
    )
    assert settings.listeners == (Listener("PLAINTEXT", "::1", 0), Listener("OTHER", "", 9094))


def test_advertise_names_the_first_listener_whatever_it_is_called():
    flags = {"listeners": "EDGE://:9092", "listener.security.protocol.map": "EDGE:PLAINTEXT"}
    settings = Settings.load(flags=flags, advertise="[2001:db8::1]:19092")
    assert settings.advertised_address("EDGE") == ("2001:db8::1", 19092)


def test_advertise_wants_host_and_port():
    with pytest.raises(SettingError, match="--advertise: somewhere is not HOST:PORT"):
        Settings.load(advertise="somewhere")


# HTTP's


def http_of(**settings: str) -> Listener | None:
    flags = {name.replace("_", "."): text for name, text in settings.items()}
    return Settings.load(flags={"kbroker.http.port": "8080"} | flags).http_listener()


TWO = {
    "listeners": "INSIDE://127.0.0.1:9092,OUTSIDE://10.0.0.5:9093",
    "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL",
    "sasl_enabled_mechanisms": "PLAIN",
}


def test_http_takes_after_the_first_listener():
    assert http_of() == Listener("HTTP", "127.0.0.1", 8080, "http", "PLAINTEXT")
    assert http_of(**TWO) == Listener("HTTP", "127.0.0.1", 8080, "http", "PLAINTEXT")
    assert http_of(kbroker_http_port="off") is None


def test_http_takes_after_the_listener_that_is_named():
    assert http_of(**TWO, kbroker_http_listener="outside") == Listener(
        "HTTP", "10.0.0.5", 8080, "http", "SASL_SSL"
    )
    with pytest.raises(SettingError, match="no listener named NOWHERE, only INSIDE, OUTSIDE"):
        http_of(**TWO, kbroker_http_listener="NOWHERE")


def test_http_may_have_a_host_and_a_protocol_of_its_own():
    own = {**TWO, "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL,HTTP:SASL_PLAINTEXT"}
    assert http_of(**own, kbroker_http_host="::1") == Listener("HTTP", "::1", 8080, "http", "SASL_PLAINTEXT")


def test_settings_for_http_alone_come_first_then_those_of_whom_it_takes_after():
    name = "connections.max.reauth.ms"
    flags = {key.replace("_", "."): text for key, text in TWO.items()} | {
        "kbroker.http.port": "8080",
        "kbroker.http.listener": "OUTSIDE",
        name: "1",
    }

    def of_http(**more: str) -> int:
        return Settings.load(flags=flags | more).of_listener("HTTP", name, "PLAIN")

    inside, outside, http = (f"listener.name.{each}." for each in ("inside", "outside", "http"))
    assert of_http(**{f"{inside}{name}": "2"}) == 1
    assert of_http(**{f"{outside}{name}": "3"}) == 3
    assert of_http(**{f"{outside}plain.{name}": "4", f"{outside}{name}": "3"}) == 4
    assert of_http(**{f"{outside}plain.{name}": "4", f"{http}{name}": "5"}) == 5


def test_no_listener_for_kafkas_protocol_has_the_name_of_http():
    protocols = {"listener.security.protocol.map": "HTTP:PLAINTEXT"}
    with pytest.raises(SettingError, match="HTTP is the listener of kbroker's HTTP API"):
        Settings.load(flags={"listeners": "http://:9092"} | protocols)


def test_a_listener_of_http_alone_may_ask_for_logins():
    flags = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,HTTP:SASL_PLAINTEXT"}
    with pytest.raises(SettingError, match="listener HTTP offers GSSAPI only"):
        Settings.load(flags=flags)
    users = {"kbroker.users": "a:b", "listener.name.http.sasl.enabled.mechanisms": "PLAIN"}
    assert Settings.load(flags=flags | users).http_listener("0").uses_sasl


# gRPC's


def grpc_of(**settings: str) -> Listener | None:
    flags = {name.replace("_", "."): text for name, text in settings.items()}
    return Settings.load(flags={"kbroker.grpc.port": "9094"} | flags).grpc_listener()


def test_grpc_has_a_listener_only_if_its_port_is_set():
    assert Settings.load().grpc_listener() is None
    assert grpc_of(kbroker_grpc_port="off") is None
    assert grpc_of() == Listener("GRPC", "127.0.0.1", 9094, "grpc", "PLAINTEXT")
    assert (
        Listener("GRPC", "127.0.0.1", 0, "grpc", "PLAINTEXT")
        in Settings.load(flags={"kbroker.grpc.port": "0"}).all_listeners
    )


def test_grpc_takes_after_the_listener_that_is_named():
    assert grpc_of(**TWO, kbroker_grpc_listener="OUTSIDE") == Listener(
        "GRPC", "10.0.0.5", 9094, "grpc", "SASL_SSL"
    )
    own = {**TWO, "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL,GRPC:SSL"}
    assert grpc_of(**own, kbroker_grpc_host="::1") == Listener("GRPC", "::1", 9094, "grpc", "SSL")
    with pytest.raises(SettingError, match=r"kbroker\.grpc\.listener: there is no listener named NOWHERE"):
        grpc_of(**TWO, kbroker_grpc_listener="NOWHERE")


def test_settings_for_grpc_alone_come_first():
    name = "connections.max.reauth.ms"
    flags = {key.replace("_", "."): text for key, text in TWO.items()} | {
        "kbroker.grpc.port": "9094",
        "kbroker.grpc.listener": "OUTSIDE",
        f"listener.name.outside.{name}": "3",
    }
    assert Settings.load(flags=flags).of_listener("GRPC", name, "PLAIN") == 3
    flags[f"listener.name.grpc.{name}"] = "4"
    assert Settings.load(flags=flags).of_listener("GRPC", name, "PLAIN") == 4


def test_no_listener_for_kafkas_protocol_has_the_name_of_grpc():
    protocols = {"listener.security.protocol.map": "GRPC:PLAINTEXT"}
    with pytest.raises(SettingError, match="GRPC is the listener of kbroker's gRPC API"):
        Settings.load(flags={"listeners": "grpc://:9092"} | protocols)
