"""`kbroker backup`: a consistent copy of a running broker's data directory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from kbroker.cli import connection, offline
from kbroker.cli.output import add_output_options, note, plural, print_json, say, size_text
from kbroker.cli.times import iso
from kbroker.exit_codes import OK, CommandFailed

_IMAGE_SECONDS = 600

_DESCRIPTION = """\
Copy the data directory of a running broker: all topics, offsets, groups, transactions, configs and users as
they were at one moment. The broker serves on meanwhile. It is asked by its HTTP port for an image of the
directory (hard links), which is copied from here: so this runs where the data directory is. With logins give
-X sasl.username=… and -X sasl.password=… of somebody who may alter the cluster.

The copy is whole once DIR has manifest.json, which is written last. 'kbroker restore' makes a data directory
of it. Of a broker that is stopped any copy of its data directory will do."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from kbroker.cli.http_port import add_http_option

    parser = commands.add_parser(
        "backup",
        help="copy the data directory of a running broker",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="where to: a new directory, or an empty one")
    add_http_option(parser)
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from kbroker.cli.http_port import told
    from kbroker.storage.files import Files
    from kbroker.storage.offline.backup import BackupError, content_of, make_backup

    files, directory = Files(), os.path.abspath(arguments.directory)
    if os.path.exists(directory) and os.listdir(directory):
        raise CommandFailed(f"{arguments.directory} is not empty: name a new directory")
    image = told(arguments, "POST", "/images", max(arguments.timeout, _IMAGE_SECONDS))
    try:
        if not os.path.isdir(image["path"]):
            raise CommandFailed(
                f"{image['path']} is not to be seen from here: run this where the broker's data directory is"
            )
        content = content_of(files, image["path"])
        with offline.progress("copying", content.size_bytes) as progress, _for_nobody_else():
            manifest = make_backup(files, image["path"], content, directory, progress)
    except BackupError as error:
        raise CommandFailed(f"no backup was made: {error}") from error
    finally:
        _remove(arguments, image["id"])
    if arguments.json:
        print_json(
            {
                "directory": directory,
                "time_ms": manifest.time_ms,
                "partitions": manifest.partitions,
                "files": len(manifest.files),
                "bytes": manifest.size_bytes,
            }
        )
    else:
        size = f"{plural(manifest.partitions, 'partition')}, {size_text(manifest.size_bytes)}"
        say(f"{directory}: {size}, as of {iso(manifest.time_ms)}")
    return OK


@contextmanager
def _for_nobody_else() -> Iterator[None]:
    """The catalog has secrets in it."""
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)


def _remove(arguments: argparse.Namespace, image_id: str) -> None:
    """The backup counts without it; the broker removes it itself, later."""
    from kbroker.cli.http_port import told

    try:
        told(arguments, "DELETE", f"/images/{image_id}", max(arguments.timeout, _IMAGE_SECONDS))
    except CommandFailed as error:
        note(f"kbroker: the image of the data directory stays for now: {error}")
