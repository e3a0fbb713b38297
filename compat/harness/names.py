"""Names that no other test uses: for topics, groups, transactional ids.

All are equally long, and later ones sort behind earlier ones.
"""

from __future__ import annotations

import itertools
import time

RUN = f"{int(time.time()) % 1_000_000:06d}"
SUFFIX = rf"-{RUN}-\d{{5}}"  # what tells the names of two runs apart
_numbers = itertools.count()


def unique(stem: str) -> str:
    return f"{stem}-{RUN}-{next(_numbers):05d}"
