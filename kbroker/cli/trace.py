"""`kbroker trace`: what happened to records of topics that are traced."""

from __future__ import annotations

import argparse
from typing import Any

from kbroker.cli import http_client
from kbroker.cli.output import add_output_options, note, print_json, print_rows, print_table
from kbroker.cli.times import HELP, iso, timestamp_ms
from kbroker.exit_codes import OK
from kbroker.storage.trace_events import EVENTS

_COLUMNS = {
    "traceId": "TRACE",
    "time": "BEGAN",
    "ms": "MS",
    "spans": "SPANS",
    "topics": "TOPICS",
    "status": "STATUS",
    "events": "EVENTS",
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "trace",
        help="traces of records: list, show",
        description="What happened to records of topics that are traced: those with the config "
        "kbroker.trace.sampling, see 'kbroker docs traces'.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    text = "the newest traces, or those with a record that answers to all that is asked"
    listing = actions.add_parser("list", help=text, description=text[0].upper() + text[1:] + ".")
    listing.add_argument("-t", "--topic", help="of this topic")
    listing.add_argument("-p", "--partition", type=int, metavar="N", help="in this partition")
    listing.add_argument("-o", "--offset", type=int, metavar="N", help="with this offset")
    listing.add_argument("-k", "--key", help="with this key")
    listing.add_argument("--since", type=timestamp_ms, metavar="TIME", help=HELP)
    listing.add_argument("--until", type=timestamp_ms, metavar="TIME", help="the same")
    listing.add_argument("--status", choices=("ok", "error"), help="how something with the record ended")
    listing.add_argument("--event", choices=EVENTS, metavar="EVENT", help=", ".join(EVENTS))
    listing.add_argument("-n", "--limit", type=int, default=20, metavar="N", help="at most (default 20)")
    add_output_options(listing)
    http_client.add_http_options(listing)
    listing.set_defaults(run=_list)

    text = "what happened in one trace, in its order"
    show = actions.add_parser("show", help=text, description=text[0].upper() + text[1:] + ".")
    show.add_argument("trace", metavar="ID", help="the second part of a record's traceparent")
    add_output_options(show)
    http_client.add_http_options(show)
    show.set_defaults(run=_show)


def _list(arguments: argparse.Namespace) -> int:
    found = http_client.get(
        arguments,
        "/traces/search",
        {
            "topic": arguments.topic,
            "partition": arguments.partition,
            "offset": arguments.offset,
            "key": arguments.key,
            "from": arguments.since,
            "to": arguments.until,
            "status": arguments.status,
            "event": arguments.event,
            "limit": arguments.limit,
        },
    )["traces"]
    rows = [{**trace, "time": iso(trace["timestamp"]), "ms": f"{trace['durationMs']:.1f}"} for trace in found]
    if rows or arguments.json:
        print_rows(arguments, found if arguments.json else rows, _COLUMNS)
    else:
        note("no trace: kbroker.trace.sampling says which records have one, see 'kbroker docs traces'")
    return OK


def _show(arguments: argparse.Namespace) -> int:
    found = http_client.get(arguments, f"/traces/{arguments.trace}")
    if arguments.json:
        print_json(found)
        return OK
    spans = found["spans"]
    begin_ns = int(spans[0]["startTimeUnixNano"])
    depths = _depths(spans)
    print_table(
        ("AFTER MS", "TOOK MS", "EVENT", "STATUS", "TOPIC", "PARTITION", "OFFSET", "KEY", "MORE"),
        [
            (
                f"{(int(span['startTimeUnixNano']) - begin_ns) / 1e6:.3f}",
                f"{(int(span['endTimeUnixNano']) - int(span['startTimeUnixNano'])) / 1e6:.3f}",
                "  " * depths[span["spanId"]] + span["event"],
                span["status"],
                span["topic"],
                span["partition"],
                span["offset"],
                span.get("key", span.get("keyBase64")),
                " ".join(f"{name}={value}" for name, value in span["attributes"].items()) or None,
            )
            for span in spans
        ],
        f"{found['traceId']}, {iso(begin_ns // 1_000_000)}",
    )
    return OK


def _depths(spans: list[dict[str, Any]]) -> dict[str, int]:
    """How deep each span lies below the first that the broker knows of its record."""
    parents = {span["spanId"]: span["parentSpanId"] for span in spans}
    depths: dict[str, int] = {}
    for span_id in parents:
        path = []
        at = span_id
        while at in parents and at not in depths and at not in path:
            path.append(at)
            at = parents[at]
        depth = depths.get(at, -1)
        for each in reversed(path):
            depth += 1
            depths[each] = depth
    return depths
