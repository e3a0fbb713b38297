"""`kbroker user`, on a running broker and in the directory of one that does not run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.authentication.sasl_client import Scram, plain
from tests.support.server_process import ServerProcess

LISTENER = (
    *("--set", "listeners=SASL_PLAINTEXT://127.0.0.1:0"),
    *("--set", "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN"),
)


def user(*arguments: str, password: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kbroker", "user", *arguments],
        input=f"{password}\n" if password else "",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def can_log_in(server: ServerProcess, name: str, password: str) -> bool:
    codes = []
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        with server.client() as client:
            codes.append(Scram(mechanism, name, password).log_in(client).error_code)
    with server.client() as client:
        codes.append(plain(client, name, password).error_code)
    assert len(set(codes)) == 1
    return codes[0] == 0


def test_the_first_user_comes_offline_and_makes_the_others(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert user("create", "admin", "--data", data, password="first").returncode == 0
    again = user("create", "admin", "--data", data, password="other")
    assert again.returncode == 1
    assert "there is a user admin" in again.stderr
    with ServerProcess("--data", data, *LISTENER) as server:
        assert can_log_in(server, "admin", "first")
        login = [
            *(
                "-b",
                server.bootstrap,
                "-X",
                "security.protocol=SASL_PLAINTEXT",
                "-X",
                "sasl.mechanism=SCRAM-SHA-256",
            ),
            *("-X", "sasl.username=admin", "-X", "sasl.password=first"),
        ]
        assert user("create", "bob", *login, password="pw").stdout == "created user bob\n"
        assert can_log_in(server, "bob", "pw")
        assert user("password", "bob", *login, password="pw2").returncode == 0
        assert not can_log_in(server, "bob", "pw")
        assert can_log_in(server, "bob", "pw2")
        listed = json.loads(user("list", "--json", *login).stdout)
        assert [each["user"] for each in listed] == ["admin", "bob"]
        assert user("delete", "bob", *login).returncode == 0
        assert not can_log_in(server, "bob", "pw2")
        assert "there is no user bob" in user("delete", "bob", *login).stderr
        assert "in use by a running broker" in user("list", "--data", data).stderr
    assert user("list", "--data", data).stdout.split()[2:3] == ["admin"]


def test_a_password_is_expected_on_standard_input(tmp_path: Path) -> None:
    done = user("create", "admin", "--data", str(tmp_path))
    assert done.returncode == 2
    assert "a password is expected" in done.stderr
