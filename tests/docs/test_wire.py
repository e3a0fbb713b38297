"""What docs/wire.md shows of `kbroker wire decode` is what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kbroker.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()
EXAMPLES = re.findall(r"```\n\$ (kbroker wire decode .*)\n((?:.*\n)*?)```", PAGE)


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=["whole", "broken"])
def test_decoding(command: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(shlex.split(command)[1:])
    assert capsys.readouterr().out == output
