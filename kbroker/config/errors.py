"""What goes wrong before a broker runs."""

from __future__ import annotations


class SettingError(Exception):
    """A setting that cannot be taken. The message is for the user, as it stands."""
