"""kcat, an old librdkafka, logs in."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from compat.harness.sasl import ALICE, SaslServer

pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed (Debian and Ubuntu: apt install kcat)"
)


def listed(server: SaslServer, mechanism: str, password: str) -> subprocess.CompletedProcess[str]:
    configs = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(server.ca),
        "sasl.mechanism": mechanism,
        "sasl.username": ALICE[0],
        "sasl.password": password,
    }
    flags = [flag for name, value in configs.items() for flag in ("-X", f"{name}={value}")]
    command = ["kcat", "-b", server.bootstrap, "-L", "-m", "5", *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def librdkafka_version() -> list[int]:
    told = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", told)
    return [int(number) for number in found.groups()] if found else [0]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_lets_it_in_and_a_wrong_one_does_not(sasl_server: SaslServer, mechanism: str) -> None:
    if mechanism != "PLAIN" and librdkafka_version() < [2, 6, 1]:
        pytest.skip("its librdkafka sends a wrong nonce, which brokers refuse since Kafka 4")
    assert listed(sasl_server, mechanism, ALICE[1]).returncode == 0
    refused = listed(sasl_server, mechanism, "wrong")
    assert refused.returncode != 0
    assert "Authentication failed" in refused.stderr
