"""docs/pipeline.md names every option and every action."""

from __future__ import annotations

import argparse

from docs import pipeline_options
from kbroker.cli import make_parser


def test_the_page_is_up_to_date() -> None:
    assert pipeline_options.TARGET.read_text() == pipeline_options.text(), (
        "run python -m docs.pipeline_options"
    )


def test_every_action_of_the_command_is_on_the_page() -> None:
    page = pipeline_options.TARGET.read_text()
    (commands,) = (a for a in make_parser(["pipeline"])._actions if isinstance(a, argparse._SubParsersAction))
    parser = commands.choices["pipeline"]
    (actions,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    assert set(actions.choices) >= {"run", "check", "init", "demo", "replay", "status"}
    for name, action in actions.choices.items():
        assert f"`kbroker pipeline {name}" in page or f"`… {name}" in page, name
        flags = [flag for each in action._actions for flag in each.option_strings if flag.startswith("--")]
        assert [flag for flag in flags if flag != "--help" and flag not in page] == []
