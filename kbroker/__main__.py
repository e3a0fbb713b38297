"""`kbroker` and `python -m kbroker`."""

from __future__ import annotations

import sys

from kbroker.cli import main

if __name__ == "__main__":
    sys.exit(main())
