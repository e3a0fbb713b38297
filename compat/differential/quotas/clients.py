"""Clients with names of their own, so that a quota is theirs alone; and quotas set and described."""

from __future__ import annotations

import socket
import struct
import uuid
from typing import Any

from compat.harness import wire
from compat.harness.connection import Connection


class NamedConnection(Connection):
    """A connection whose requests have this client id."""

    def __init__(self, bootstrap: str, client_id: str, source: str | None = None) -> None:
        """``source``: the address to come from."""
        super().__init__(bootstrap)
        self.client_id = client_id
        if source is not None:
            self.close()
            host, _, port = bootstrap.rpartition(":")
            self._socket = socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0))

    def send_body(self, api_key: int, version: int, body: bytes, *, flexible: bool) -> int:
        self._correlation_id += 1
        client_id = self.client_id.encode()
        header = struct.pack(">hhih", api_key, version, self._correlation_id, len(client_id)) + client_id
        frame = header + (b"\0" if flexible else b"") + body
        self.send_bytes(struct.pack(">i", len(frame)) + frame)
        return self._correlation_id

    def supported(self, api_name: str, version: int, values: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request without the fields that this version does not have."""
        return self.ask(api_name, version, wire.supported(wire.apis()[api_name].request, version, values))


def entity(**names: str | None) -> list[dict[str, Any]]:
    """`client_id` stands for client-id."""
    return [{"EntityType": type_.replace("_", "-"), "EntityName": name} for type_, name in names.items()]


def entry(parts: list[dict[str, Any]], *ops: tuple[str, float | None]) -> dict[str, Any]:
    return {
        "Entity": parts,
        "Ops": [{"Key": key, "Value": value or 0.0, "Remove": value is None} for key, value in ops],
    }


def set_quotas(side: Any, parts: list[dict[str, Any]], **values: float | None) -> None:
    answer = side.raw("AlterClientQuotas", 1, {"Entries": [entry(parts, *values.items())]})
    assert [each["ErrorCode"] for each in answer["Entries"]] == [0], answer


def a_client(side: Any, **values: float) -> NamedConnection:
    """A new client with these quotas."""
    client_id = f"quota-{uuid.uuid4().hex}"
    set_quotas(side, entity(client_id=client_id), **values)
    return NamedConnection(side.server.bootstrap, client_id)
