"""Both brokers at once for the comparisons; topics and producers for the real clients."""

from __future__ import annotations

from compat.differential.conftest import both_brokers, pair

__all__ = ["both_brokers", "pair"]
