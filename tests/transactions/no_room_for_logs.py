"""kbroker whose logs find no room on the disk while the file named in NO_ROOM exists; its catalog does."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from kbroker.cli import main
from kbroker.storage.files import Files

_full = Path(os.environ["NO_ROOM"])
_write_at = Files.write_at


def write_at(*arguments: Any) -> int:
    if _full.exists():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return _write_at(*arguments)


if __name__ == "__main__":
    Files.write_at = write_at  # type: ignore[method-assign]
    raise SystemExit(main())
