"""`kbroker dlq`: dead letters, why they are there, and the way back."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from kbroker.cli import connection, times
from kbroker.cli.output import add_output_options, note, print_json, print_table
from kbroker.exit_codes import OK

_DESCRIPTION = """\
Dead letters: records that could not be processed, in a topic of their own. Headers tell where they came from
and why: those of share groups, Kafka Connect, Kafka Streams and kbroker pipeline are understood.

    kbroker dlq list                                         the topics, and what is in them
    kbroker dlq show dlq.orders --reason rejected -n 5       some records, with everything
    kbroker dlq replay dlq.orders --dry-run                  what would be sent back, and where to
    kbroker dlq replay dlq.orders --rate 100                 send it back, each record once
    kbroker dlq purge dlq.orders --replayed                  delete what was sent back"""
_WIDEST = 60  # letters of a reason in a table
_COLUMNS = {
    "topic": "TOPIC", "from_topic": "FROM", "group": "GROUP", "reason": "REASON", "records": "RECORDS",
    "sent_back": "SENT BACK", "oldest": "OLDEST", "newest": "NEWEST",
}  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from kbroker.cli.dlq_letters import add_filters

    parser = commands.add_parser(
        "dlq",
        help="dead letters: list, show, replay, purge",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = _action(actions, "list", "dead-letter topics, and what is in them by origin and reason", _list)
    listing.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        help="a name or a pattern such as 'dlq.*' (default: topics whose name has the prefix, or whose last "
        "records are dead letters)",
    )
    listing.add_argument("--prefix", default="dlq.", help="of the names of dead-letter topics (default dlq.)")
    listing.add_argument(
        "--scan", type=int, default=100_000, metavar="N",
        help="count the newest N records of a topic (default 100000)",
    )  # fmt: skip

    show = _action(actions, "show", "dead letters with origin, reason, key, value and headers", _show)
    show.add_argument("topic", metavar="TOPIC")
    show.add_argument("-f", "--format", help="print records as 'kbroker consume -f' does")
    add_filters(show)

    replay = _action(
        actions,
        "replay",
        "send dead letters back to where they came from, each at most once",
        _replay,
        more="Records go to the topic and partition they came from, with their own key, value and headers. "
        "The topic TOPIC.replayed remembers what was sent.",
    )
    replay.add_argument("topic", metavar="TOPIC")
    add_filters(replay)
    replay.add_argument("--to", metavar="OTHER", help="to this topic; the key decides about the partition")
    replay.add_argument("--by-key", action="store_true", help="let the key decide about the partition")
    replay.add_argument("--rate", type=_positive, metavar="N", help="at most so many records per second")
    replay.add_argument("--dry-run", action="store_true", help="only tell what would be sent")

    purge = _action(actions, "purge", "delete the oldest dead letters of a topic", _purge)
    purge.add_argument("topic", metavar="TOPIC")
    purge.add_argument(
        "-p", "--partition", type=int, action="append", help="only this one; any number of times"
    )
    where = purge.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--offset", type=int, help="delete what lies below this offset")
    where.add_argument(
        "--before", type=times.timestamp_ms, metavar="TIME", help=f"delete what is older: {times.HELP}"
    )
    where.add_argument(
        "--replayed", action="store_true", help="delete from the start what was sent back, without a gap"
    )
    where.add_argument("--all", action="store_true", help="delete every record that is there now")
    purge.add_argument("--yes", action="store_true", help="do not ask")


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number above 0")
    return int(text)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
    more: str = "",
) -> argparse.ArgumentParser:
    described = f"{text[0].upper()}{text[1:]}. {more}".rstrip()
    parser = actions.add_parser(name, help=text, description=described)
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)
    return parser


def _list(arguments: argparse.Namespace) -> int:
    from kbroker.cli.dlq_summary import summaries

    with connection.admin(arguments) as client:
        found = summaries(client, arguments)
    if arguments.json:
        print_json(found)
        return OK
    if not found:
        note(
            f"there are no dead-letter topics: none is named {arguments.prefix}…, none ends with dead letters"
        )
        return OK
    print_table(list(_COLUMNS.values()), [list(row) for topic in found for row in _rows(topic)])
    for topic in found:
        if topic["looked_at"] < topic["offsets"]:
            counted = f"{topic['looked_at']:,} of {topic['offsets']:,} offsets"
            note(f"{topic['topic']}: only the newest {counted} were counted")
    return OK


def _rows(topic: dict[str, Any]) -> Iterator[list[object]]:
    for cause in topic["causes"]:
        reason = cause["reason"] or ("-" if cause["kind"] else "no dead letters, by their headers")
        row = {
            **cause,
            "topic": topic["topic"],
            "reason": reason if len(reason) <= _WIDEST else reason[: _WIDEST - 1] + "…",
            "oldest": times.iso(cause["oldest"]),
            "newest": times.iso(cause["newest"]),
        }
        yield [row[key] for key in _COLUMNS]
    if not topic["causes"]:
        yield [topic["topic"], None, None, None, 0, 0, None, None]


def _show(arguments: argparse.Namespace) -> int:
    from kbroker.cli.dlq_show import show

    return show(arguments)


def _replay(arguments: argparse.Namespace) -> int:
    from kbroker.cli.dlq_replay import replay

    return replay(arguments)


def _purge(arguments: argparse.Namespace) -> int:
    from kbroker.cli.dlq_purge import purge

    return purge(arguments)
