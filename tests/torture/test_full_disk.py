"""A broker that lives on a full disk, through stops and kills."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import full_disk


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--fsync",)], ids=["written", "fsync"])
def test_what_was_acknowledged_is_there_after_every_start_without_room(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    survived = full_disk.run(6, directory=tmp_path / "disk", seed=1, arguments=arguments)
    assert survived.ok, survived
