"""What the tools print, as values."""

from __future__ import annotations

from compat.clients.java.conftest import Run


def rows(output: str) -> list[dict[str, str]]:
    """The rows of all tables in the output, by column name; a table starts with a line of column names."""
    found: list[dict[str, str]] = []
    columns: list[str] = []
    for line in output.replace("COORDINATOR (ID)", "COORDINATOR ID").splitlines():
        if line.startswith("GROUP "):
            columns = line.split()
        elif line.strip() and columns:
            found.append(dict(zip(columns, line.split(), strict=False)))
    return found


def committed(run: Run, group: str) -> dict[int, int]:
    """The committed offsets of a group that reads one topic, by partition."""
    described = rows(run("kafka-consumer-groups", "--describe", "--group", group).stdout)
    found = {int(row["PARTITION"]): row["CURRENT-OFFSET"] for row in described}
    return {partition: int(offset) for partition, offset in found.items() if offset != "-"}
