"""What `kbroker serve` shows in a terminal: where it is, and three commands to try next."""

from __future__ import annotations

import shutil

from kbroker import __version__
from kbroker.cli.connection import DEFAULT
from kbroker.cli.program import program

_BOLD, _DIM, _CYAN, _END = "\033[1m", "\033[2m", "\033[36m", "\033[0m"


def banner(where: str, kept: str, more: str, options: str, *, color: bool) -> str:
    """``more``: further listeners and the control port, as they continue a sentence.

    ``options``: what commands need besides the address.
    """
    address = ("" if where == DEFAULT else f" -b {where}") + options
    kbroker = program()
    commands = (
        (f"{kbroker} topic create greetings", "make a topic"),
        (f"echo hello | {kbroker} produce greetings", "write to it"),
        (f"{kbroker} consume greetings --follow", "read it"),
    )
    width = max(len(command) + len(address) for command, _ in commands) + 3
    bold, dim, cyan, end = (_BOLD, _DIM, _CYAN, _END) if color else ("", "", "", "")
    rule = dim + "─" * min(width + 16, shutil.get_terminal_size().columns) + end
    lines = [
        rule,
        f"{bold}kbroker{end} {__version__} {dim}· Kafka without the JVM{end}",
        f"listening on {bold}{cyan}{where}{end}{more}",
        f"data in {kept}",
        "",
        *(f"  {cyan}{(command + address).ljust(width)}{end}{dim}{text}{end}" for command, text in commands),
        "",
        f"{dim}Ctrl-C stops it{end}",
        rule,
    ]
    return "\n".join(lines)
