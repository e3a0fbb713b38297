"""Prometheus' own tool, where it is installed: Debian's package `prometheus` has it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not installed (apt install prometheus): rules are not executed here",
)


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Case(NamedTuple):
    """Series as they come each minute, and how many alerts of that name fire at a time."""

    alert: str
    series: Mapping[str, str]
    minute: int
    firing: int


def check(rules: Path, cases: Sequence[Case], directory: Path) -> None:
    tests: list[dict[str, Any]] = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}})',
                    "eval_time": f"{case.minute}m",
                    "exp_samples": [{"labels": "{}", "value": case.firing}] if case.firing else [],
                }
            ],
        }
        for case in cases
    ]
    file = directory / "cases.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", file)
