"""The server-side assignors of consumer groups (KIP-848), by the names clients ask for."""

from __future__ import annotations

from kbroker.coordinators.groups.assignors.range_assignor import assign_range
from kbroker.coordinators.groups.assignors.spec import Assignor
from kbroker.coordinators.groups.assignors.uniform import assign_uniform

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
