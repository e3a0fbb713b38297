"""For all tests: Ctrl-C reaches the programs they start.

A run that was put into the background inherits an ignored SIGINT, and its children would too.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
