"""What a broker without streams groups pays for them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from tests.handlers.conftest import Cluster
from kbroker.protocol.messages.list_groups import ListGroupsRequest
cluster = Cluster({"node.id": "1"})
cluster.create("t")
cluster.send(ListGroupsRequest(), 5)
cluster.catalog.close()
print(sorted(name for name in sys.modules if name.startswith("kbroker.") and "streams" in name))
"""


def test_a_broker_without_streams_groups_loads_nothing_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
