"""`kbroker restore`: a data directory made of a backup."""

from __future__ import annotations

import argparse

from kbroker.cli import offline
from kbroker.cli.output import add_output_options, plural, print_json, say, size_text
from kbroker.cli.times import iso
from kbroker.exit_codes import FOUND, OK, USAGE, CommandFailed

_DESCRIPTION = """\
Make a data directory of a backup of 'kbroker backup'. Every file is checked against the manifest on the way.
DIR gets its name when all of it is there, or is not made at all. 'kbroker serve --data DIR' then starts on
it, as after a crash at the moment of the backup: 'kbroker verify DIR' checks it before.

--check only checks that the backup is whole. Exit code 4: it is not."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "restore",
        help="make a data directory of a backup",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("backup", metavar="BACKUP", help="what 'kbroker backup' made")
    parser.add_argument(
        "directory", nargs="?", metavar="DIR", help="the data directory: a new one, or an empty one"
    )
    parser.add_argument("--check", action="store_true", help="only check the backup")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from kbroker.storage.files import Files
    from kbroker.storage.offline.backup import BackupError, check_backup, read_manifest, restore_backup

    if arguments.check == (arguments.directory is not None):
        raise CommandFailed("name a directory to restore into, or only --check the backup", USAGE)
    files = Files()
    try:
        manifest = read_manifest(files, arguments.backup)
        with offline.progress(
            "checking" if arguments.check else "restoring", manifest.size_bytes
        ) as progress:
            if arguments.check:
                check_backup(files, arguments.backup, manifest, progress)
            else:
                restore_backup(files, arguments.backup, manifest, arguments.directory, progress)
    except BackupError as error:
        raise CommandFailed(str(error), FOUND) from error
    where = arguments.backup if arguments.check else arguments.directory
    if arguments.json:
        print_json(
            {
                "directory": where,
                "time_ms": manifest.time_ms,
                "partitions": manifest.partitions,
                "files": len(manifest.files),
                "bytes": manifest.size_bytes,
            }
        )
    else:
        what = "all is well" if arguments.check else "restored"
        size = f"{plural(manifest.partitions, 'partition')}, {size_text(manifest.size_bytes)}"
        say(f"{where}: {what}, {size}, as of {iso(manifest.time_ms)}")
    return OK
