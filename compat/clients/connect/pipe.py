"""Two connectors, and a topic between them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from compat.clients.connect.worker import ConnectWorker
from compat.harness.waiting import eventually


class Pipe:
    """Lines from a source file through a topic into a sink file; the topic names the two connectors."""

    def __init__(self, worker: ConnectWorker, topic: str, directory: Path) -> None:
        self.source, self.sink = f"{topic}-source", f"{topic}-sink"
        self.source_file, self.sink_file = directory / "source.txt", directory / "sink.txt"
        self.source_file.touch()
        source = {"connector.class": "FileStreamSource", "file": str(self.source_file), "topic": topic}
        sink = {"connector.class": "FileStreamSink", "file": str(self.sink_file), "topics": topic}
        for name, config in ((self.source, source), (self.sink, sink)):
            worker.put(f"/connectors/{name}/config", {**config, "tasks.max": "1"})

    @property
    def sink_group(self) -> str:
        return f"connect-{self.sink}"

    def write(self, lines: Iterable[str]) -> None:
        with self.source_file.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def wait_for(self, lines: list[str]) -> None:
        """Until the sink file has exactly these lines, in order, none twice."""

        def arrived() -> list[str]:
            return self.sink_file.read_text().splitlines() if self.sink_file.exists() else []

        assert eventually(arrived, lambda found: len(found) >= len(lines), seconds=60) == lines

    def delete(self, worker: ConnectWorker) -> None:
        for name in (self.source, self.sink):
            worker.delete(f"/connectors/{name}")
