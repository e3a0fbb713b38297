"""What a broker whose clients push nothing pays for their metrics."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from tests.handlers.conftest import Cluster
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
cluster = Cluster({"node.id": "1"})
cluster.send(ApiVersionsRequest("client", "1.0"), 4)
cluster.catalog.close()
prefixes = ("kbroker.telemetry", "kbroker.observability.client_metrics")
print(sorted(name for name in sys.modules if name.startswith(prefixes)))
"""


def test_a_broker_that_nobody_asks_for_subscriptions_loads_nothing_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
