"""The commands of docs/dead-letters.md, run as they stand there, on a free port."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess

TEXT = (Path(__file__).parents[2] / "docs/dead-letters.md").read_text()


def test_from_nothing_to_a_letter_that_is_back(tmp_path: Path) -> None:
    block = re.search(r"((?:^    kbroker[^\n]+\n|^    echo[^\n]+\n)+)", TEXT, re.MULTILINE)
    assert block is not None
    serve, *commands = (line.strip() for line in block[1].splitlines())
    assert serve == "kbroker serve"
    said = {}
    with ServerProcess("--data", str(tmp_path / "data")) as broker:
        for command in commands:
            before, _, own = command.rpartition(" | ")
            words = shlex.split(own)
            assert words[0] == "kbroker"
            done = subprocess.run(
                [sys.executable, "-m", *words, "-b", broker.bootstrap],
                input=" ".join(shlex.split(before)[1:]) + "\n",
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            said[" ".join(words[1:3])] = done.stdout
    assert "Offset rejected by client." in said["dlq list"]
    assert "from    orders-0@42, share group billing, 5 deliveries" in said["dlq show"]
    assert said["dlq replay"] == "1 record sent to orders\n"
    assert said["consume orders"] == '17 {"amount": -1}\n'
    assert said["dlq purge"].split() == ["PARTITION", "DELETED", "START", "0", "1", "1"]


SETTINGS = re.compile(r"^\| `([a-z.]+)` \| (group|topic|broker) \|", re.MULTILINE).findall(TEXT)


@pytest.mark.parametrize(("setting", "of"), SETTINGS)
def test_every_setting_that_is_named_does_something(setting: str, of: str) -> None:
    from kbroker.config.broker_configs import BROKER_CONFIGS
    from kbroker.config.resource_configs import GROUP_CONFIGS
    from kbroker.config.topic_configs import TOPIC_CONFIGS

    assert {"group": GROUP_CONFIGS, "topic": TOPIC_CONFIGS, "broker": BROKER_CONFIGS}[of][setting].applies
