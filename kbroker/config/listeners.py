"""Where the broker listens and what it advertises: ``name://host:port``, separated by commas, as in Kafka.

A listener's name says which protocol it speaks (listener.security.protocol.map). Listeners named in
controller.listener.names belong to Kafka's controller and are left out. An empty host is every interface;
IPv6 addresses stand in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kbroker.config.errors import SettingError

KAFKA, CONTROL, HTTP, GRPC, METRICS = "kafka", "control", "http", "grpc", "metrics"
"""What is spoken on a listener."""
HTTP_NAME, GRPC_NAME, METRICS_NAME = "HTTP", "GRPC", "METRICS"
"""Of the listeners that are kbroker's own, beside those for Kafka's protocol."""
PLAINTEXT = "PLAINTEXT"
_PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENTRY = r"([a-zA-Z][a-zA-Z0-9_-]*)://(\[([0-9a-fA-F:.%_]*)\]|[^\[\]:/]*):([0-9]{1,5})"


class Listener(NamedTuple):
    name: str
    host: str
    port: int
    protocol: str = KAFKA
    security_protocol: str = PLAINTEXT

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    return host.startswith("127.") or host in ("localhost", "::1")


def parse_listeners(
    entries: Sequence[str], protocol_map: str, controller_names: Sequence[str] = ()
) -> tuple[Listener, ...]:
    """The listeners to open."""
    protocols = parse_protocol_map(protocol_map)
    left_out = {name.upper() for name in controller_names}
    listeners = [_parse(entry, "listeners") for entry in entries]
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise SettingError(f"listeners: the name {name} appears twice; each listener needs its own")
    listeners = [listener for listener in listeners if listener.name not in left_out]
    if not listeners:
        raise SettingError(f"listeners: no listener for clients in {','.join(entries)}")
    for name, what in ((HTTP_NAME, "HTTP API"), (GRPC_NAME, "gRPC API"), (METRICS_NAME, "metrics")):
        if name in names:
            raise SettingError(
                f"listeners: {name} is the listener of kbroker's {what} (kbroker.{name.lower()}.port); "
                "one for Kafka's protocol needs another name"
            )
    _check_ports(listeners)
    return tuple(_with_protocol(listener, protocols) for listener in listeners)


def door(
    name: str, protocol: str, port: str | None, like: Listener, protocol_map: str, host: str | None = None
) -> Listener | None:
    """A listener for another protocol than Kafka's, which takes after one of Kafka's: on its host, and as
    protected, unless the map of protocols names this one. None: there is none.
    """
    if port is None or port.lower() == "off":
        return None
    security_protocol = parse_protocol_map(protocol_map).get(name, like.security_protocol)
    return Listener(name, like.host if host is None else host, int(port), protocol, security_protocol)


def _with_protocol(listener: Listener, protocols: Mapping[str, str]) -> Listener:
    protocol = protocols.get(listener.name)
    if protocol is None:
        raise SettingError(f"listeners: listener.security.protocol.map names no protocol for {listener.name}")
    return listener._replace(security_protocol=protocol)


def parse_advertised(
    entries: Sequence[str], listeners: Sequence[Listener], controller_names: Sequence[str] = ()
) -> dict[str, Listener]:
    """What to tell the clients of each listener named."""
    left_out = {name.upper() for name in controller_names}
    known = {listener.name for listener in listeners}
    advertised: dict[str, Listener] = {}
    for entry in entries:
        listener = _parse(entry, "advertised.listeners")
        if listener.name in left_out:
            continue
        if listener.name not in known:
            raise SettingError(
                f"advertised.listeners: there is no listener named {listener.name}, "
                f"only {', '.join(sorted(known))}"
            )
        if listener.name in advertised:
            raise SettingError(f"advertised.listeners: the name {listener.name} appears twice")
        if listener.host in ("0.0.0.0", "::"):
            raise SettingError(
                f"advertised.listeners: clients cannot connect to {listener.host}; give a real address"
            )
        if not listener.host or listener.port == 0:
            raise SettingError(f"advertised.listeners: {entry} is not an address that clients can connect to")
        advertised[listener.name] = listener
    return advertised


def parse_protocol_map(text: str) -> dict[str, str]:
    """Listener names, in upper case, to security protocols."""
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        protocol = protocol.strip().upper()
        if not colon or protocol not in _PROTOCOLS:
            raise SettingError(
                f"listener.security.protocol.map: {entry} is not NAME:PROTOCOL with a protocol of "
                f"{', '.join(_PROTOCOLS)}"
            )
        protocols[name.strip().upper()] = protocol
    return protocols


def advertise_first(entries: Sequence[str], address: str) -> str:
    """advertised.listeners with the first listener at host:port: what --advertise means."""
    name = _parse(entries[0], "listeners").name
    return str(_parse(f"{name}://{address}", "--advertise", shown=address))


def move_first(entries: Sequence[str], host: str | None, port: int | None) -> tuple[str, ...]:
    """The listeners with the first one's host or port replaced: what --host and --port mean."""
    first = _parse(entries[0], "listeners")
    moved = first._replace(
        host=first.host if host is None else host.strip("[]"), port=first.port if port is None else port
    )
    return (str(moved), *entries[1:])


def _parse(entry: str, setting: str, shown: str | None = None) -> Listener:
    match = re.fullmatch(_ENTRY, entry.strip())
    if match is None:
        wanted = "HOST:PORT" if shown else "NAME://HOST:PORT"
        raise SettingError(f"{setting}: {shown or entry} is not {wanted}")
    name, host, bracketed, port = match[1], match[2], match[3], int(match[4])
    if port > 65535:
        raise SettingError(f"{setting}: {shown or entry}: the port is above 65535")
    return Listener(name.upper(), host if bracketed is None else bracketed, port)


def _check_ports(listeners: Sequence[Listener]) -> None:
    """A port may be used twice only at different addresses."""
    taken: set[tuple[str, int]] = set()
    for listener in listeners:
        everywhere = ("", listener.port)
        here = (listener.host, listener.port)
        clash = (
            here in taken
            or everywhere in taken
            or (not listener.host and any(p == listener.port for _, p in taken))
        )
        if listener.port and clash:
            raise SettingError(f"listeners: port {listener.port} is given to two listeners")
        taken.add(here)
