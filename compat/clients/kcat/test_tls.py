"""kcat over TLS."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from compat.harness.tls import TlsServer, librdkafka_configs
from tests.support.certificates import Certificates

pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed (Debian and Ubuntu: apt install kcat)"
)


def test_lines_come_back(mutual_tls_server: TlsServer, topic: str, certificates: Certificates) -> None:
    configs = librdkafka_configs(certificates, certificates.client)
    options = [option for name, value in configs.items() for option in ("-X", f"{name}={value}")]
    command = ["kcat", "-b", mutual_tls_server.tls_bootstrap, *options, "-t", topic]
    lines = "".join(f"line {number}\n" for number in range(500))
    subprocess.run([*command, "-P"], input=lines, text=True, check=True, timeout=60)
    done = subprocess.run(
        [*command, "-C", "-e", "-q"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == lines
