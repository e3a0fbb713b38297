"""Kafka Streams' WordCountDemo with exactly_once_v2."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from compat.harness import jars, java
from compat.harness.kafka import LOG4J2

INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"  # WordCountDemo's
DEMO = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"

# Of a member of a classic group; the broker sets those of a streams group.
_TIMEOUTS = "session.timeout.ms=6000\nheartbeat.interval.ms=500\n"


class WordCount:
    """The application, on its own JVM."""

    def __init__(
        self,
        bootstrap: str,
        application_id: str,
        directory: Path,
        login: Mapping[str, str] | None = None,
        *,
        protocol: str = "classic",
    ) -> None:
        """``login``: configs of its clients. ``protocol``: of its group."""
        directory.mkdir(exist_ok=True)
        self._log = directory / "streams.log"
        self._settings = directory / "streams.properties"
        self._settings.write_text(
            f"application.id={application_id}\n"
            f"bootstrap.servers={bootstrap}\n"
            f"state.dir={directory / 'state'}\n"
            "processing.guarantee=exactly_once_v2\n"
            "commit.interval.ms=50\n"
            "num.stream.threads=2\n"
            f"group.protocol={protocol}\n" + (_TIMEOUTS if protocol == "classic" else "") +
            # Without RocksDB: what is lost with the process is read back from the changelog.
            "dsl.store.suppliers.class="
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers\n"
            + "".join(f"{name}={value}\n" for name, value in (login or {}).items())
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        classpath = f"{jars.classpath('kafka')}:{jars.classpath('streams')}"
        with self._log.open("ab") as log:
            self._process = java.start(
                java.command(
                    DEMO,
                    [str(self._settings)],
                    classpath=classpath,
                    properties={"log4j2.configurationFile": LOG4J2.as_uri()},
                ),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """As a user ends it: it commits and leaves its group."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(60)
