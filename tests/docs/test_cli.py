"""docs/cli.md says what the parsers say."""

from __future__ import annotations

import sys

import pytest

from docs import cli
from kbroker.cli import COMMANDS


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="argparse words its help differently from 3.12 on"
)
def test_the_page_is_up_to_date() -> None:
    assert cli.TARGET.read_text() == cli.text(), "run python -m docs.cli"


def test_every_command_is_on_the_page() -> None:
    page = cli.TARGET.read_text()
    for command in COMMANDS:
        assert f"## kbroker {command}\n" in page


def test_options_that_commands_share_are_said_once() -> None:
    assert cli.TARGET.read_text().count("where the broker is") == 1
