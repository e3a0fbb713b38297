"""What a misspelled command, flag or config was probably meant to be."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable

_UNKNOWN_FLAG = re.compile(r"^unrecognized arguments: (.*)$", re.DOTALL)
_UNKNOWN_CHOICE = re.compile(r"invalid choice: '?([^'\s]+)'?")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "; did you mean x?" where something known is close"""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def of_configs(kind: str, names: Iterable[str]) -> str:
    """For configs of a topic, broker or group that may be misspelled."""
    known = _known_configs(kind)
    return "".join(did_you_mean(name, known) for name in names if name not in known)


def unknown_configs(kind: str, names: Iterable[str]) -> list[str]:
    known = _known_configs(kind)
    return [name for name in names if known and name not in known]


def _known_configs(kind: str) -> Iterable[str]:
    from kbroker.config.broker_configs import BROKER_CONFIGS
    from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
    from kbroker.config.topic_configs import TOPIC_CONFIGS

    return {
        "topic": TOPIC_CONFIGS,
        "broker": BROKER_CONFIGS,
        "group": GROUP_CONFIGS,
        "client_metrics": CLIENT_METRICS_CONFIGS,
    }.get(kind, ())


def of_usage(parser: argparse.ArgumentParser, message: str) -> str:
    """For what argparse says of a command line."""
    if match := _UNKNOWN_FLAG.match(message):
        flags = [flag for action in parser._actions for flag in action.option_strings]
        return next(
            (hint for word in match[1].split() if (hint := did_you_mean(word.partition("=")[0], flags))), ""
        )
    if match := _UNKNOWN_CHOICE.search(message):
        choices = [str(choice) for action in parser._actions for choice in action.choices or ()]
        return did_you_mean(match[1], choices)
    return ""


def parser_of(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the command or action that was chosen."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return parser_of(action.choices[getattr(parsed, action.dest)], parsed)
    return parser
