"""Both brokers with a listener that speaks TLS beside the plain one, and how clients are told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.certificates import Certificates

from . import server
from .broker import KBrokerProcess
from .kafka import RealKafka


def store_settings(certificates: Certificates, client_auth: str = "none") -> dict[str, str]:
    """Of a broker, without its listeners."""
    settings = certificates.broker_settings(client_auth=client_auth)
    del settings["listeners"]
    return settings


class TlsKafka(RealKafka):
    def __init__(self, settings: Mapping[str, str], *, heap_mb: int = 512) -> None:
        super().__init__(settings, heap_mb=heap_mb)
        self.tls_port = 0

    @property
    def tls_bootstrap(self) -> str:
        return f"localhost:{self.tls_port}"

    def _server_properties(self, controller_port: int) -> str:
        (self.tls_port,) = server.free_ports(1)
        lines = super()._server_properties(controller_port).splitlines()
        for index, line in enumerate(lines):
            if line.startswith(("listeners=", "advertised.listeners=")):
                host = self.host if line.startswith("listeners=") else "localhost"
                lines[index] = f"{line},SSL://{host}:{self.tls_port}"
        protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL"
        return "\n".join([*lines, f"listener.security.protocol.map={protocols}", ""])


class TlsKbroker(KBrokerProcess):
    def __init__(self, settings: Mapping[str, str]) -> None:
        (self.tls_port,) = server.free_ports(1)
        listeners = f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{self.tls_port}"
        advertised = f"SSL://localhost:{self.tls_port}"
        super().__init__({**settings, "listeners": listeners, "advertised.listeners": advertised})

    @property
    def tls_bootstrap(self) -> str:
        return f"localhost:{self.tls_port}"


def java_properties(certificates: Certificates, store: Path | None = None, **more: str) -> str:
    """A file for --command-config."""
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
    }
    if store is not None:
        properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    properties |= {name.replace("_", "."): value for name, value in more.items()}
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def librdkafka_configs(certificates: Certificates, store: Path | None = None) -> dict[str, str]:
    configs = {"security.protocol": "SSL", "ssl.ca.location": str(certificates.ca)}
    if store is not None:
        configs |= {
            "ssl.certificate.location": str(store.with_suffix(".crt")),
            "ssl.key.location": str(store.with_suffix(".key")),
        }
    return configs


def kafka_python_configs(certificates: Certificates, store: Path | None = None) -> dict[str, str]:
    configs = {"security_protocol": "SSL", "ssl_cafile": str(certificates.ca)}
    if store is not None:
        configs |= {
            "ssl_certfile": str(store.with_suffix(".crt")),
            "ssl_keyfile": str(store.with_suffix(".key")),
        }
    return configs


TlsServer = TlsKafka | TlsKbroker
