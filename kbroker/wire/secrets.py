"""What is never shown, however much is asked for: what somebody could log in with."""

from __future__ import annotations

import re
from typing import Final

from kbroker.wire.tree import Node

HIDDEN: Final = "<hidden>"

_FIELDS: Final = frozenset({"auth_bytes", "hmac", "salt", "salted_password"})
_CONFIGS: Final = re.compile(
    r"passw|secret|credential|token|jaas|scram|private|keystore\.key|api\.?key|user\.info", re.IGNORECASE
)
_NAMES: Final = ("name", "config_name")


def hides(node: Node, parent: Node | None) -> bool:
    """Whether a field is a secret: by its name, or as the value of a config with such a name."""
    if node.name in _FIELDS:
        return True
    if node.name not in ("value", "config_value") or parent is None:
        return False
    return any(_CONFIGS.search(str(parent.get(name) or "")) for name in _NAMES)
