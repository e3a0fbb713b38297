"""For all tests: Ctrl-C reaches the programs they start, brokers have no HTTP port unless they are asked for
one, and what failed before a rerun is shown.

A run that was put into the background inherits an ignored SIGINT, and its children would too.
"""

from __future__ import annotations

import os
import signal

import pytest

os.environ.setdefault("KBROKER_HTTP_PORT", "off")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A test that passed the second time has failed by chance the first, which is a defect: show how."""
    failed = terminalreporter.stats.get("rerun", [])
    if failed:
        terminalreporter.section(f"{len(failed)} failed, and ran again", red=True)
    for report in failed:
        terminalreporter.section(f"{report.nodeid} ({report.when})", sep="_", red=True)
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_line(f"--- {title} ---")
            terminalreporter.write_line(text)
