"""How tests run pytest in a process of its own, as somebody's test suite does."""

from __future__ import annotations

import sys

# Hypothesis, which no inner suite uses, takes four fifths of the time that pytest needs to start.
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
