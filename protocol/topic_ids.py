"""The first version of each API that names topics by their id (KIP-516)."""

from __future__ import annotations

from typing import Final

FETCH_SINCE: Final = 13
METADATA_SINCE: Final = 10  # beside the name
OFFSET_COMMIT_SINCE: Final = 10
OFFSET_FETCH_SINCE: Final = 10
PRODUCE_SINCE: Final = 13
