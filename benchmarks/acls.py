"""What an authorizer costs: `python -m benchmarks.acls`.

A decision, remembered and new, among few and many ACLs; and the processor time that a broker in memory takes
for a Produce and a Fetch, without an authorizer and with one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from benchmarks.raw import fetch_frame, produce_frame, pump
from kbroker.catalog.memory import MemoryCatalog
from kbroker.requests.context import Peer, RequestContext
from kbroker.security.acl_authorizer import AclAuthorizer
from kbroker.security.acl_bindings import AclBinding
from kbroker.security.acl_store import AclStore
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

ROUNDS = 3
REQUESTS = 20_000
TOPIC = "t"
_LISTENING = re.compile(r"listening on \S+?:(\d+)")
_TICKS = os.sysconf("SC_CLK_TCK")
AUTHORIZER = {"authorizer.class.name": "kbroker", "allow.everyone.if.no.acl.found": "true"}


def decisions(acls: int) -> tuple[float, float]:
    """Nanoseconds of a remembered decision, and of a new one."""
    store = AclStore(MemoryCatalog(), ())
    allow = (AclOperation.READ, Permission.ALLOW)
    store.create(
        AclBinding(AclResourceType.TOPIC, f"p{number}-", PatternType.PREFIXED, "User:ANONYMOUS", "*", *allow)
        for number in range(acls)
    )
    authorizer = AclAuthorizer(store, ("User:admin",), allow_without_acls=False)
    context = RequestContext(0, 9, 1, "x", 0, Peer("PLAINTEXT", ("127.0.0.1", 1), ("127.0.0.1", 2)))

    def asked() -> None:
        assert authorizer.authorize(context, AclOperation.READ, AclResourceType.TOPIC, "p0-orders")

    def asked_anew() -> None:
        authorizer._decisions.clear()
        asked()

    number = 100_000
    remembered, new = (
        timeit.timeit(call, timer=time.process_time, number=number) for call in (asked, asked_anew)
    )
    return remembered / number * 1e9, new / number * 1e9


@contextmanager
def broker(settings: dict[str, str]) -> Iterator[tuple[int, int]]:
    """Port and process id."""
    command = [sys.executable, "-m", "kbroker", "serve", "--port", "0", "--in-memory"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        found = next(match for line in process.stdout if (match := _LISTENING.search(line)))
        try:
            yield int(found[1]), process.pid
        finally:
            process.terminate()


def processor_seconds(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def costs(settings: dict[str, str], requests: int) -> tuple[float, float]:
    """Microseconds of processor time for a Produce of 100 bytes, and for a Fetch."""
    with broker(settings) as (port, process_id):
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
        admin.close()
        taken = []
        for frame in (produce_frame(TOPIC, 0, 100), fetch_frame(TOPIC, 1000)):
            pump(("127.0.0.1", port), [frame], requests // 10 + 1)
            before = processor_seconds(process_id)
            pump(("127.0.0.1", port), [frame], requests)
            taken.append((processor_seconds(process_id) - before) / requests * 1e6)
        return taken[0], taken[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    requests = max(100, int(REQUESTS * parser.parse_args().scale))
    for acls in (1, 10_000):
        remembered, new = decisions(acls)
        print(f"a decision among {acls:,} ACLs: {remembered:.0f} ns, {new:.0f} ns if it is new")
    for name, settings in (("without an authorizer", {}), ("with an authorizer", AUTHORIZER)):
        rounds = [costs(settings, requests) for _ in range(ROUNDS if requests == REQUESTS else 1)]
        produce, fetch = (median(times) for times in zip(*rounds, strict=True))
        print(f"{name}: a Produce takes {produce:.1f} µs, a Fetch {fetch:.1f} µs")


if __name__ == "__main__":
    main()
