"""Certificates for tests: a private authority, what it signed, and the settings of brokers and clients."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Sequence
from pathlib import Path

from kbroker.security.tls.authority import Authority, Issued

HOSTS = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """Files in a directory."""

    def __init__(self, directory: Path, name: str = "test CA") -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(datetime.datetime.now(datetime.UTC), 2, name)
        self.ca = directory / "ca.pem"
        self.ca.write_text(self.authority.own.certificate)
        self.broker = self.store("broker", self.authority.issue_broker(HOSTS))
        self.client = self.store("alice", self.authority.issue_client("alice"))

    def store(self, name: str, issued: Issued) -> Path:
        """A key and its certificate in one file."""
        path = self.directory / f"{name}.pem"
        path.write_text(issued.key + issued.certificate)
        (self.directory / f"{name}.key").write_text(issued.key)
        (self.directory / f"{name}.crt").write_text(issued.certificate)
        return path

    def broker_settings(self, *, client_auth: str = "none", **more: str) -> dict[str, str]:
        settings = {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "ssl.client.auth": client_auth,
        }
        return settings | {name.replace("__", "-").replace("_", "."): value for name, value in more.items()}

    def client_context(
        self, store: Path | None = None, *, version: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        if store is not None:
            context.load_cert_chain(store)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context


def as_arguments(settings: dict[str, str]) -> Sequence[str]:
    return [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
