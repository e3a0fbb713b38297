"""docs/configuration.md is what the definitions say."""

from __future__ import annotations

from pathlib import Path

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.docs import page
from kbroker.config.topic_configs import TOPIC_CONFIGS

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_up_to_date():
    message = "write it again: python -m kbroker.config.docs > docs/configuration.md"
    assert DOCUMENT.read_text(encoding="utf-8") == page(), message


def test_every_config_is_on_the_page():
    text = page()
    for name in (*BROKER_CONFIGS, *TOPIC_CONFIGS):
        assert f"| `{name}` |" in text
