"""`kbroker docs`: the pages of the documentation, at hand where kbroker is installed.

A wheel holds them in kbroker/docs/; in a checkout they stand beside the package.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from kbroker.cli.output import print_table, stream
from kbroker.exit_codes import OK, CommandFailed

_DESCRIPTION = """\
Show a page of the documentation; without a page, list them. In a terminal it is laid out, elsewhere it is
Markdown.

    kbroker docs quickstart
    kbroker docs configuration retention             the lines about it"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "docs",
        help="show the documentation",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("page", nargs="?", metavar="PAGE")
    parser.add_argument("text", nargs="?", metavar="TEXT", help="only lines with this text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    pages = {path.stem: path for path in sorted(_directory().glob("*.md"))}
    if arguments.page is None:
        print_table(("PAGE", "ABOUT"), [(name, _title(path)) for name, path in pages.items()])
        return OK
    if arguments.page not in pages:
        from kbroker.cli.suggestions import did_you_mean

        hint = did_you_mean(arguments.page, pages)
        raise CommandFailed(f"there is no page {arguments.page}: 'kbroker docs' lists them{hint}")
    text = pages[arguments.page].read_text(encoding="utf-8")
    if arguments.text is not None:
        _print_lines(text, arguments.text, arguments.page)
    elif sys.stdout.isatty():
        _lay_out(text)
    else:
        stream(text.removesuffix("\n"))
    return OK


def _directory() -> Path:
    package = Path(__file__).parents[1]
    installed = package / "docs"
    return installed if installed.is_dir() else package.parent / "docs"


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").rstrip()


def _print_lines(text: str, wanted: str, page: str) -> None:
    lines = [line for line in text.splitlines() if wanted.lower() in line.lower()]
    if not lines:
        raise CommandFailed(f"page {page} says nothing of {wanted}")
    for line in lines:
        stream(line)


def _lay_out(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "-R")  # let the pager show what is bold
    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))
