"""kbroker docs: the documentation at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbroker.cli import main, make_parser
from kbroker.cli.completion import walk

PAGES = Path(__file__).parents[2] / "docs"


def test_pages_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]}
    assert listed == {path.stem for path in PAGES.glob("*.md")}
    assert main(["docs", "quickstart"]) == 0
    assert capsys.readouterr().out == (PAGES / "quickstart.md").read_text()


def test_lines_about_something_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "configuration", "LOG.RETENTION.MS"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all("log.retention.ms" in line for line in lines)
    assert main(["docs", "configuration", "no such thing"]) == 1


def test_a_page_that_is_not_there_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "configuratoin"]) == 1
    assert "did you mean configuration?" in capsys.readouterr().err


def test_no_help_text_points_to_a_file_that_an_installed_kbroker_does_not_have() -> None:
    for path, parser in walk(make_parser()):
        assert "docs/" not in parser.format_help(), path
