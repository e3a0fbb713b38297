"""CRC32C by the processor's own instruction: `crc32c(data, value=0) -> int`.

The `crc32c` package imports importlib.metadata and argparse to learn its own version, some 40 ms of every
start of the broker. Its extension module alone loads in 1 ms, so that is what is loaded (docs/adr/0002).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _load() -> Callable[..., int]:
    package = PathFinder.find_spec("crc32c")
    if package is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            extension = module_from_spec(spec)
            spec.loader.exec_module(extension)
            function: Callable[..., int] = extension.crc32c
            return function
    from crc32c import crc32c as function

    return function


crc32c = _load()
