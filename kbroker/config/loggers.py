"""The levels of this process's loggers, by Kafka's names for levels (KIP-412). They end with the process."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kbroker.config.resources import Change, Operation, is_operation
from kbroker.protocol.errors import ApiError, ErrorCode

ROOT = "root"
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": 5,
    "WARN": logging.WARNING,
}


def levels() -> dict[str, str]:
    """The level in force of every logger."""
    found = {ROOT: level_name(logging.getLogger().getEffectiveLevel())}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            found[name] = level_name(logger.getEffectiveLevel())
    return found


def level_name(level: int) -> str:
    """Kafka's name of the level; of one between two, that of the lower."""
    below = [(number, name) for name, number in LEVELS.items() if number <= level]
    return max(below)[1] if below else "TRACE"


def check(changes: Sequence[Change]) -> None:
    for name, operation, value in changes:
        if not is_operation(operation):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if operation in (Operation.APPEND, Operation.SUBTRACT):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{name}: {Operation(operation).name} is for lists, and a level is none",
            )
        if not _exists(name):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"There is no logger {name}.")
        if operation == Operation.SET and value not in LEVELS:
            raise ApiError(
                ErrorCode.INVALID_CONFIG, f'{name}: "{value}" is none of the levels {", ".join(LEVELS)}'
            )
        if operation == Operation.DELETE and name == ROOT:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{ROOT}: always has a level")


def apply(changes: Sequence[Change]) -> None:
    """Checked changes. A logger without a level of its own follows the one above it."""
    for name, operation, value in changes:
        level = LEVELS[value] if operation == Operation.SET and value is not None else logging.NOTSET
        logging.getLogger(None if name == ROOT else name).setLevel(level)


def _exists(name: str) -> bool:
    return name == ROOT or isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)
