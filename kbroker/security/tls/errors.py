"""What is wrong with keys, certificates or other settings of TLS."""

from __future__ import annotations


class TlsError(ValueError):
    """In one line: which setting, which file, why. Never what a password or a key is."""
