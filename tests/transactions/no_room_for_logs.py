"""kbroker whose logs find no room on the disk while the file named in NO_ROOM exists; its catalog does."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from kbroker.catalog.sqlite.file_names import all_names
from kbroker.cli import main
from kbroker.storage import files
from kbroker.storage.files import OpenFile
from kbroker.storage.interface import Buffer

_full = Path(os.environ["NO_ROOM"])


class Files(files.Files):
    def __init__(self) -> None:
        super().__init__()
        self._of_catalog: set[int] = set()

    def open(self, path: str, **how: Any) -> OpenFile:
        file = super().open(path, **how)
        (self._of_catalog.add if os.path.basename(path) in all_names() else self._of_catalog.discard)(file.fd)
        return file

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        if file.fd not in self._of_catalog and _full.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write_at(file, data, position)


if __name__ == "__main__":
    files.Files = Files  # type: ignore[misc]
    raise SystemExit(main())
