"""The gRPC API (docs/grpc.md), loaded with its first connection."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PROTO: Final = Path(__file__).with_name("kbroker.proto")
"""Its declarations, of which clients in any language are made."""
