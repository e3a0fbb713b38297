"""The map in docs/architecture.md and the contract in pyproject.toml name the rooms that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROOM = re.compile(r"^\| `([a-z0-9_/.]+)` \|", re.MULTILINE)


def rooms_of(package: Path) -> set[str]:
    """The folders of a package that hold modules, however deep, by their path in the repository."""
    return {
        f"{folder.parent.relative_to(ROOT)}/"
        for folder in package.glob("**/__init__.py")
        if "__pycache__" not in folder.parts
    }


def test_the_map_names_every_room_and_none_that_is_gone() -> None:
    named = set(_ROOM.findall((ROOT / "docs/architecture.md").read_text()))
    there = rooms_of(ROOT / "protocol") | rooms_of(ROOT / "storage") | rooms_of(ROOT / "kbroker")
    there = {room for room in there if not room.startswith(("kbroker/protocol/", "kbroker/storage/"))}
    there -= {"kbroker/"}
    there |= {f"kbroker/{path.name}" for path in (ROOT / "kbroker").glob("*.py")} - {"kbroker/__init__.py"}
    # The rooms of a group coordinator stand in its line.
    there -= {
        room for room in there if room.startswith("kbroker/coordinators/groups/") and room.count("/") > 3
    }
    assert named == there


def test_the_map_has_the_order_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    order = {name: depth for depth, layer in enumerate(layers) for name in layer.split(" | ")}
    mapped = [
        room.removeprefix("kbroker/").split("/")[0].removesuffix(".py")
        for room in _ROOM.findall((ROOT / "docs/architecture.md").read_text())
    ]
    depths = [order[name] for name in mapped]
    assert depths == sorted(depths)
    assert set(mapped) == set(order)
