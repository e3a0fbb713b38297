"""A broker without sockets or threads."""

from __future__ import annotations

from tests.handlers.conftest import cluster, logs, settings

__all__ = ["cluster", "logs", "settings"]
