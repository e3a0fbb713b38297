"""kafka-python, the client of the commands, where there is one that they can work with.

A project that has kbroker beside it may need another version, or none (docs/adr/0023): the broker and the
fixtures do not care, a command says what it needs.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

from kbroker.exit_codes import CommandFailed

OLDEST = "3.0.12"


def load() -> Any:
    """The package ``kafka``. Raises CommandFailed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # its own, while it is imported
            import kafka
    except (ImportError, SyntaxError):  # none, or one that is older than this Python
        raise _missing("there is none") from None
    version = str(getattr(kafka, "__version__", "0"))
    if _numbers(version) < _numbers(OLDEST):
        raise _missing(f"this is {version}")
    return kafka


def _missing(found: str) -> CommandFailed:
    return CommandFailed(
        f"this command needs kafka-python {OLDEST} or newer, and {found}: "
        f"pip install 'kafka-python>={OLDEST}', or install kbroker into an environment of its own"
    )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
