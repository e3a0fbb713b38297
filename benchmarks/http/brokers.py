"""A broker under load by HTTP, as users run it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

from benchmarks.compare.brokers import BenchKbroker

_SERVING = re.compile(r"HTTP on http://([^:\s]+):(\d+)")


class HttpBroker(BenchKbroker):
    def __init__(self, checkout: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        """``checkout``: of another version."""
        super().__init__(checkout, {"kbroker.http.port": "0", **(settings or {})})

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def http_address(self) -> tuple[str, int]:
        found = _SERVING.search(self.output())
        assert found is not None
        return found[1], int(found[2])

    def cluster_id(self) -> str:
        host, port = self.http_address
        with urlopen(f"http://{host}:{port}/", timeout=60) as answer:
            return str(json.load(answer)["clusterId"])
