"""A definition says whether a setting does something; here the code is asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.resource_configs import GROUP_CONFIGS
from kbroker.config.topic_configs import TOPIC_CONFIGS

ROOT = Path(__file__).parents[2]

# Read by kbroker.config itself, on behalf of others.
READ_BY_CONFIG = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "listener.security.protocol.map",
    "kbroker.validate.records",
    "listeners",
    "log.dir",
}
DEFAULTS = {
    synonym
    for definition in (*TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values())
    if definition.applies
    for synonym in definition.synonyms
}
BOUNDS = re.compile(
    r"group\.consumer\.(min|max)\.(assignment\.interval|heartbeat\.interval|session\.timeout)\.ms"
)


@pytest.fixture(scope="module")
def named() -> set[str]:
    """Everything in quotes in the code of the broker, not of commands that are its clients."""
    sources = [*(ROOT / "kbroker").glob("**/*.py"), *(ROOT / "storage").glob("**/*.py")]
    others = {"config", "cli", "pipeline"}
    code = [source.read_text() for source in sources if others.isdisjoint(source.relative_to(ROOT).parts)]
    code.append((ROOT / "kbroker/cli/serve.py").read_text())
    return set(re.findall(r'"([a-z0-9.]+)"', "".join(code)))


def test_what_is_said_to_have_an_effect_is_read(named):
    said = {name for name, definition in BROKER_CONFIGS.items() if definition.applies}
    bounds = {name for name in said if BOUNDS.fullmatch(name)}
    assert said - named - READ_BY_CONFIG - DEFAULTS - bounds == set(), "define these as accepted"


def test_what_is_said_to_have_no_effect_is_not_read(named):
    said = {name for name, definition in BROKER_CONFIGS.items() if not definition.applies}
    assert said & named == set(), "define these as honoured"
