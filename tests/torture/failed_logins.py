"""Wrong logins by the thousand, eight at a time, while honest clients come, go and stay: they must be served.

Passwords are guessed by every mechanism, for users that there are and that there are not; some leave in the
middle of an exchange. Nothing of it may stay in memory, and neither log may be filled by it.
`python -m tests.torture.failed_logins --cycles 200` for long runs: 10,000 wrong logins with the waits that
failures cost, and as many without.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.authentication.sasl_client import Scram, is_in, plain
from tests.support.raw_client import RawClient
from tests.support.raw_topics import create, produce, read
from tests.support.server_process import ServerProcess, eventually

LOGINS = 50  # of a cycle
ATTACKERS = 8
MOST_MEMORY_BYTES = 32 << 20  # more than before
MOST_LOG_LINES = 100
MOST_AUDIT_LINES = 1000
MOST_SECONDS = 2  # of an honest login
WITHOUT_WAITS = ("--set", "connection.failed.authentication.delay.ms=0")
_USER, _PASSWORD = "admin", "secret"
_TOPIC = "t"


class Survived(NamedTuple):
    wrong: int  # logins
    seconds: float
    honest: int  # logins
    records: int  # of the client that stayed
    slowest_ms: float  # of the honest
    grown_bytes: int
    log_lines: int
    audit_lines: int
    let_in: int  # of those with a wrong password
    lost: int  # records
    tracebacks: int

    @property
    def ok(self) -> bool:
        return (
            self.honest > 0
            and self.records > 0
            and self.slowest_ms < MOST_SECONDS * 1000
            and self.grown_bytes < MOST_MEMORY_BYTES
            and self.log_lines < MOST_LOG_LINES
            and self.audit_lines - self.honest < MOST_AUDIT_LINES
            and not any(self[-3:])
        )


class Honest(threading.Thread):
    """Comes, logs in, asks and goes, again and again; and writes a record over a connection that stays."""

    def __init__(self, server: ServerProcess) -> None:
        super().__init__(daemon=True)
        self.logins = 0
        self.values: list[bytes] = []
        self.slowest = 0.0
        self.error: BaseException | None = None
        self._server = server
        self._over = threading.Event()

    def run(self) -> None:
        try:
            with self._server.client() as staying:
                log_in(staying)
                assert create(staying, _TOPIC, 1) is ErrorCode.NONE
                while not self._over.is_set():
                    self._once(staying)
        except BaseException as error:
            self.error = error

    def _once(self, staying: RawClient) -> None:
        began = time.monotonic()
        with self._server.client() as client:
            log_in(client)
            assert is_in(client)
        value = b"%d" % self.logins
        assert produce(staying, _TOPIC, 0, value) is ErrorCode.NONE
        self.values.append(value)
        self.logins += 1
        self.slowest = max(self.slowest, time.monotonic() - began)

    def stop(self) -> None:
        self._over.set()
        self.join(60)
        if self.error is not None:
            raise self.error


def log_in(client: RawClient) -> None:
    assert plain(client, _USER, _PASSWORD).error_code == ErrorCode.NONE


def run(
    cycles: int, *, directory: Path, seed: int = 0, arguments: tuple[str, ...] = (), logins: int = LOGINS
) -> Survived:
    audit = directory / "audit.log"
    with ServerProcess(
        *("--data", str(directory / "data"), "--user", f"{_USER}:{_PASSWORD}"),
        *("--set", "kbroker.login.failure.delay.max.ms=0"),  # all come from one address
        *("--set", f"kbroker.audit.log.file={audit}"),
        *arguments,
    ) as server:
        with server.client() as client:
            log_in(client)  # the password is remembered from now on
        _attack(server, random.Random(seed))  # what is loaded with the first of them
        before = grown = server.memory_bytes()
        honest = Honest(server)
        honest.start()
        began = time.monotonic()
        let_in = 0
        with ThreadPoolExecutor(ATTACKERS) as attackers:
            for cycle in range(cycles):
                chances = [random.Random(f"{seed} {cycle} {number}") for number in range(logins)]
                let_in += sum(attackers.map(lambda chance: _attack(server, chance), chances))
                grown = max(grown, server.memory_bytes())
        seconds = time.monotonic() - began
        honest.stop()
        with server.client() as client:
            log_in(client)
            found = read(client, _TOPIC, 0)
        eventually(lambda: server.memory_bytes() - before < MOST_MEMORY_BYTES)
        log = server.log()
        assert server.stop() == 0
    return Survived(
        wrong=cycles * logins,
        seconds=seconds,
        honest=honest.logins,
        records=len(found),
        slowest_ms=honest.slowest * 1000,
        grown_bytes=grown - before,
        log_lines=log.count("login failed"),
        audit_lines=audit.read_text().count("\n"),
        let_in=let_in,
        lost=int(found != honest.values),
        tracebacks=log.count("Traceback"),
    )


def _attack(server: ServerProcess, chance: random.Random) -> bool:
    """Whether it was let in."""
    name = chance.choice((_USER, f"nobody-{chance.randrange(1000)}"))
    guess = chance.randbytes(8).hex()
    kind = chance.choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "a wrong proof", "leaves"))
    with server.client() as client:
        if kind == "PLAIN":
            return _is_let_in(plain(client, name, guess).error_code)
        if kind.startswith("SCRAM"):
            return _is_let_in(Scram(kind, name, guess).log_in(client).error_code)
        client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)
        client.ask(SaslAuthenticateRequest(Scram("SCRAM-SHA-256", _USER, guess).first), 2)
        if kind == "leaves":
            return False
        return _is_let_in(client.ask(SaslAuthenticateRequest(b"c=biws,r=x,p=AAAA"), 2).error_code)


def _is_let_in(code: int) -> bool:
    return code != ErrorCode.SASL_AUTHENTICATION_FAILED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    ok = True
    for arguments in ((), WITHOUT_WAITS):
        with tempfile.TemporaryDirectory() as directory:
            survived = run(given.cycles, directory=Path(directory), seed=given.seed, arguments=arguments)
        ok = ok and survived.ok
        print(f"{' '.join(arguments)} seed={given.seed}: {survived}")  # noqa: T201
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
