"""What was set to protect the broker, and would not: kbroker refuses it rather than run open.

Which configs promise protection stands in their definitions. For one listener they stand under
``listener.name.LISTENER.``, for one SASL mechanism of it under ``listener.name.LISTENER.MECHANISM.``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kbroker.config.broker_configs import base_name, broker_definition
from kbroker.config.definition import InvalidConfig


def broken_promises(configs: Mapping[str, str], closed_listeners: Collection[str] = ()) -> str | None:
    """One sentence about those of the configs that promise what kbroker does not do, if there are any.

    What is said of listeners that are not opened promises nothing.
    """
    names = sorted(
        name
        for name, text in configs.items()
        if _promises(name, text) and _listener(name) not in closed_listeners
    )
    if not names:
        return None
    return f"{', '.join(names)}: kbroker does not protect in this way; to run without, remove it"


def _promises(name: str, text: str) -> bool:
    definition = broker_definition(name)
    if definition is None or not definition.protects:
        return False
    try:
        return definition.parse(text) not in (definition.default, "", ())
    except InvalidConfig:
        return True


def _listener(name: str) -> str | None:
    """The listener whose config it is, in upper case; None: that of the broker."""
    return None if base_name(name) == name else name.split(".", 3)[2].upper()
