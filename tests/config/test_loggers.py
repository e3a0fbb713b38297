"""Levels of loggers under Kafka's names."""

from __future__ import annotations

import logging

import pytest

from kbroker.config import loggers


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (1, "TRACE"),
        (5, "TRACE"),
        (logging.DEBUG, "DEBUG"),
        (logging.INFO, "INFO"),
        (25, "INFO"),
        (logging.WARNING, "WARN"),
        (logging.ERROR, "ERROR"),
        (logging.CRITICAL, "FATAL"),
        (99, "FATAL"),
    ],
)
def test_levels_have_kafkas_names(level, name):
    assert loggers.level_name(level) == name


def test_a_logger_without_a_level_shows_the_one_it_inherits():
    parent = logging.getLogger("kbroker.test.inherited")
    logging.getLogger("kbroker.test.inherited.child")
    parent.setLevel(logging.ERROR)
    try:
        assert loggers.levels()["kbroker.test.inherited.child"] == "ERROR"
    finally:
        parent.setLevel(logging.NOTSET)


def test_a_name_that_only_leads_to_loggers_is_none():
    logging.getLogger("kbroker.test.placeholder.leaf")
    assert "kbroker.test.placeholder" not in loggers.levels()
