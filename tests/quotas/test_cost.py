"""What a broker without quotas pays for them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from tests.handlers.conftest import Cluster
from kbroker.protocol.messages.metadata import MetadataRequest
cluster = Cluster({"node.id": "1"})
cluster.send(MetadataRequest(), 9)
cluster.catalog.close()
print(sorted(name for name in sys.modules if name.startswith(("kbroker.quotas", "kbroker.security.audit"))))
"""


def test_a_broker_without_quotas_and_audit_log_loads_nothing_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
