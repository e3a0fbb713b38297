"""A shortage of descriptors is over when it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import descriptor_shortage


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--fsync",)], ids=["written", "fsync"])
def test_clients_get_on_after_every_shortage_of_descriptors(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    survived = descriptor_shortage.run(6, data=tmp_path / "data", seed=1, arguments=arguments)
    assert survived.ok, survived
    assert survived.records.acknowledged > 0
