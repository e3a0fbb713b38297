"""docs/configuration.md is what the definitions say."""

from __future__ import annotations

from pathlib import Path

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.docs import page
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.coordinators.groups import heartbeat_pacing
from kbroker.coordinators.groups.classic import initial_delay

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_up_to_date():
    message = "write it again: python -m kbroker.config.docs > docs/configuration.md"
    assert DOCUMENT.read_text(encoding="utf-8") == page(), message


def test_every_config_is_on_the_page():
    text = page()
    for name in (*BROKER_CONFIGS, *TOPIC_CONFIGS):
        assert f"| `{name}` |" in text


def test_where_the_default_is_adaptive_the_page_says_so() -> None:
    lines = [line.split("|") for line in page().splitlines() if line.startswith("| `")]
    rows = {line[1].strip(" `"): line[3] for line in lines}
    delay = rows["group.initial.rebalance.delay.ms"]
    assert f"{initial_delay.QUIET_MS} ms" in delay
    assert f"{initial_delay.MAX_MS // 1000} s" in delay
    for name in ("group.consumer.assignment.interval.ms", "consumer.assignment.interval.ms"):
        assert f"{heartbeat_pacing.ASSIGNMENT_INTERVAL_MS} ms" in rows[name]
        assert "(Kafka: `1000`)" in rows[name]
