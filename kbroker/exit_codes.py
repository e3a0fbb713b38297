"""The exit codes of the command line, which scripts can rely on, and the failure that carries one."""

from __future__ import annotations

OK = 0
FAILED = 1  # what was asked for could not be done
USAGE = 2  # the command line makes no sense
UNREACHABLE = 3  # no broker answers at the given address
FOUND = 4  # a check was made and found something: damage, a problem of the setup, lag, pending changes
INTERRUPTED = 130  # Ctrl-C


class CommandFailed(Exception):
    """The command could not do what was asked; the text is for the user."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
