"""A Connect worker that logs in over TLS and may do no more than it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat.clients.connect.pipe import Pipe
from compat.clients.connect.worker import ConnectWorker
from compat.clients.rights import allow
from compat.harness.sasl import ALICE, SaslServer
from compat.harness.waiting import eventually

pytestmark = pytest.mark.java


def test_it_works_with_the_rights_it_needs_and_not_beyond_them(
    guarded_server: SaslServer, unique: Callable[[str], str], tmp_path: Path
) -> None:
    group, topic, forbidden = unique("connect"), unique("lines"), unique("forbidden")
    rights = {
        f"topic {group}*": "read write create describe_configs",  # its configs, offsets and statuses
        f"group {group}": "read",
        f"topic {topic}": "read write create",
        f"group connect-{topic}-sink": "read",
    }
    allow(guarded_server, ALICE[0], rights)
    login = guarded_server.java_configs(*ALICE)
    with ConnectWorker(guarded_server.bootstrap, group, tmp_path, login) as worker:
        pipe = Pipe(worker, topic, tmp_path)
        pipe.write(["one", "two", "three"])
        pipe.wait_for(["one", "two", "three"])
        (tmp_path / "other").mkdir()
        other = Pipe(worker, forbidden, tmp_path / "other")
        other.write(["never"])
        states = eventually(
            lambda: [part["state"] for part in worker.status(other.source)],
            lambda found: found[-1] == "FAILED",
            seconds=60,
        )
        assert states == ["RUNNING", "FAILED"]
        assert "TopicAuthorizationException" in worker.output()
