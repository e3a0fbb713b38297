"""A process with a broker in it is killed with -9: what it was told is there, and nothing half."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kbroker.local import LocalBroker, TopicPartition
from tests.local.scenario import scenario

WRITER = Path(__file__).with_name("writing_process.py")
_LINES = 400


def killed_while_it_writes(data: Path) -> list[list[str]]:
    """What it said it was told."""
    process = subprocess.Popen([sys.executable, str(WRITER), str(data)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        try:
            lines = [process.stdout.readline() for _ in range(_LINES)]
        finally:
            process.kill()
        lines += process.stdout.readlines()
    return [line.split() for line in lines if line.endswith("\n")]


@scenario
async def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for _ in range(3):
        said = killed_while_it_writes(data)
        published = [list(map(int, line[1:])) for line in said if line[0] == "published"]
        assert published
        committed: dict[TopicPartition, int] = {}
        for line in said:
            if line[0] == "committed":
                committed[TopicPartition("t", int(line[1]))] = int(line[2])
        assert committed
        async with LocalBroker(data=data) as broker:
            found: dict[tuple[int, int], str] = {}
            for partition, end in (await broker.offsets("t")).items():
                fetched = await broker.fetch("t", partition, max_records=10_000, max_bytes=16 << 20)
                assert fetched.next_offset == end
                found |= {(partition, record.offset): record.text() for record in fetched.records}
            for partition, offset, number in published:
                assert found[partition, offset] == str(number)
            offsets = await broker.committed("g")
            for at, offset in committed.items():
                assert offsets[at].offset >= offset
            async with broker.transaction("copier"):
                pass  # what was open is aborted
            copied = await broker.fetch("copied", isolation="read_committed", max_records=10_000)
            assert copied.next_offset == (await broker.offsets("copied"))[0], "nothing is open"
            copies = [record.text() for record in copied.records]
            assert copies
            assert len(copies) == len(set(copies))
            done = await broker.committed("copy")
            ends = {at.partition: each.offset for at, each in done.items()}
            assert set(copies) == {
                f"{partition}-{offset}" for partition, offset in found if offset < ends.get(partition, 0)
            }
            pairs = [
                [each.text() for each in (await broker.fetch(topic, isolation="read_committed")).records]
                for topic in ("a", "b")
            ]
            assert pairs[0] == pairs[1], "of what is published together all is there or nothing"
            assert {line[1] for line in said if line[0] == "pair"} <= set(pairs[0])
