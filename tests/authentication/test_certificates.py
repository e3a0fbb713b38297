"""A certificate is no login: a listener with SASL_SSL asks for one all the same."""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path

from tests.support.certificates import Certificates, as_arguments
from tests.support.server_process import ServerProcess


def test_who_shows_a_certificate_is_still_asked_and_not_taken_for_logged_in(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    audit = tmp_path / "audit.log"
    settings = certificates.broker_settings(client_auth="required") | {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "kbroker.audit.log.file": str(audit),
    }
    with ServerProcess("--in-memory", "--user", "alice:pw", *as_arguments(settings)) as server:
        with socket.create_connection(server.address, timeout=20) as plain:
            context = certificates.client_context(certificates.client)
            with context.wrap_socket(plain, server_hostname="localhost") as secured:
                frame = struct.pack(">hhih", 60, 0, 1, -1) + b"\0\0\0"  # DescribeCluster
                secured.sendall(struct.pack(">i", len(frame)) + frame)
                assert secured.recv(1) == b""
        server.stop()
    told = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(each["event"], each["outcome"]) for each in told] == [("login", "failure")]
