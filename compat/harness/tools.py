"""Kafka's own command-line tools, by the names of their scripts.

All runs share one JVM (ToolServer.java): a hundred `kafka-topics --list` take 70 s with a JVM each
and 2 s this way. A tool that does not end in time costs that JVM; the next run gets a new one.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import jars, java
from .kafka import LOG4J2

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}
# These call System.exit and register shutdown hooks past Kafka's seams: each run is a JVM of its own.
OWN_JVM = frozenset(
    {"kafka-verifiable-consumer", "kafka-verifiable-producer", "kafka-verifiable-share-consumer"}
)
SOURCE = Path(__file__).with_name("ToolServer.java")
TOOLS_JAR = ("kafka-tools", "4.3.1")


class ToolTimeout(RuntimeError):
    """A tool did not end in time."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


class KafkaTools:
    """Runs tools, one at a time. `with KafkaTools() as tools: tools.run("kafka-topics", "--list", …)`."""

    def __init__(self, heap_mb: int = 256) -> None:
        self._heap_mb = heap_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as this object)
        self._lock = threading.Lock()

    def run(self, tool: str, *arguments: str, stdin: str | bytes = b"", timeout: float = 60) -> ToolResult:
        """Run one tool to its end."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        if tool in OWN_JVM:
            return _run_alone(tool, arguments, given, timeout)
        request = [_chunk(TOOLS[tool].encode()), struct.pack(">i", len(arguments))]
        request += [_chunk(argument.encode()) for argument in arguments]
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"".join([*request, _chunk(given)]))
            process.stdin.flush()
            reader = _Reader(process.stdout.fileno(), time.monotonic() + timeout)
            try:
                (exit_code,) = struct.unpack(">i", reader.take(4))
                stdout, stderr = reader.chunk(), reader.chunk()
            except (TimeoutError, EOFError) as error:
                self._end()
                self._log.seek(0)
                raise ToolTimeout(
                    f"{tool} {' '.join(arguments)}: {error}\n{self._log.read().decode()}"
                ) from error
        return ToolResult(exit_code, stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    def close(self) -> None:
        self._end()
        self._log.close()

    def __enter__(self) -> KafkaTools:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            tools_jar = jars.jar(*TOOLS_JAR)
            shared = os.pathsep.join(str(path) for path in jars.paths("kafka") if path != tools_jar)
            classes = java.compile_sources([SOURCE], "tool-server", shared)
            self._process = subprocess.Popen(
                _command("ToolServer", [str(tools_jar)], f"{classes}{os.pathsep}{shared}", self._heap_mb),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                bufsize=0,
            )
        return self._process

    def _end(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class _Reader:
    """Whole values from a pipe before a deadline."""

    def __init__(self, descriptor: int, deadline: float) -> None:
        self._descriptor = descriptor
        self._deadline = deadline

    def take(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            remaining = self._deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._descriptor], [], [], remaining)[0]:
                raise TimeoutError("did not end in time")
            part = os.read(self._descriptor, size - len(taken))
            if not part:
                raise EOFError("the JVM ended")
            taken += part
        return bytes(taken)

    def chunk(self) -> bytes:
        return self.take(struct.unpack(">i", self.take(4))[0])


def _command(main_class: str, arguments: Sequence[str], classpath: str, heap_mb: int = 128) -> list[str]:
    properties = {"log4j2.configurationFile": LOG4J2.as_uri()}
    return java.command(main_class, arguments, classpath=classpath, heap_mb=heap_mb, properties=properties)


def _run_alone(tool: str, arguments: Sequence[str], stdin: bytes, timeout: float) -> ToolResult:
    command = _command(TOOLS[tool], arguments, jars.classpath("kafka"))
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise ToolTimeout(f"{tool} {' '.join(arguments)}: did not end in time") from error
    return ToolResult(
        done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )


def _chunk(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
