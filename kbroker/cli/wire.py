"""`kbroker wire`: what Kafka's clients and brokers say to each other, explained."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.cli.output import add_output_options, note, print_table, say, stream
from kbroker.exit_codes import FOUND, OK, USAGE, CommandFailed

if TYPE_CHECKING:
    from kbroker.wire.frames import Explained
    from kbroker.wire.lines import Teller, Wanted
    from kbroker.wire.statistics import Statistics

_LISTEN = "127.0.0.1:19092"

_DECODE = """\
Explain frames that somebody has as bytes: a hex dump (xxd, hexdump, od, Wireshark's copies, a bytes literal,
plain hex) or the raw bytes. Frames may have their 4-byte length in front. A response is explained by the
request before it in the input, or by --response --api NAME --version N. A frame that cannot be read is told
with the byte and the field where that ends, and all that was read before. Exit code 4: there was one.

    xxd frame.bin | kbroker wire decode
    kbroker wire decode --hex 00000010001200000000000100066d792d617070 --json
    kbroker wire decode answer.hex --response --api Fetch --version 12"""

_CAPTURE = """\
Explain the Kafka connections in a capture of tcpdump or Wireshark: pcap or pcapng, also gzipped. Segments
that came twice or out of order are put in order. What is missing, and a connection that began before the
capture, cost the frames that they hit: explaining goes on at the next one, and says so.

    tcpdump -i any -w kafka.pcap port 9092
    kbroker wire capture kafka.pcap --errors-only"""

_PROXY = """\
Stand between clients and a Kafka, and print a line for each request and response. Clients connect to the
proxy's address. Bytes go on unchanged, but for the addresses of brokers in responses: these become ports of
the proxy (one for each broker, opened when it is first heard of), so that clients do not go past it. Ctrl-C
ends it with a summary. It speaks no TLS: neither with clients nor with brokers.

    kbroker wire proxy --upstream kafka.example:9092
    kbroker wire proxy --upstream 127.0.0.1:9092 --api Produce,Fetch --verbose"""

_LINES = """

Lines: time, connection, → request or ← response, API and version, correlation id, client id, size, and of
responses the time since the request; topics[partitions], groups, records, errors."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "wire", help="explain Kafka frames: a hex dump, a capture, or live as a proxy"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    decode = _action(actions, "decode", "explain frames given as hex or bytes", _DECODE, _decode)
    decode.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: standard input")
    decode.add_argument("--hex", metavar="HEX", help="instead of a file")
    decode.add_argument("--response", action="store_true", help="responses to --api in --version")
    decode.add_argument("--api", metavar="NAME", help="of --response: such as Fetch, or its key")
    decode.add_argument("--version", type=int, metavar="N", help="of --response")
    lengths = decode.add_mutually_exclusive_group()
    lengths.add_argument(
        "--length",
        dest="lengths",
        action="store_true",
        default=None,
        help="each frame has its length in front",
    )
    lengths.add_argument(
        "--no-length", dest="lengths", action="store_false", help="one frame, without its length"
    )
    decode.add_argument("--brief", action="store_true", help="a line for each frame, without its fields")
    _add_payload_options(decode)

    capture = _action(
        actions, "capture", "explain what tcpdump or Wireshark captured", _CAPTURE + _LINES, _capture
    )
    capture.add_argument("file", metavar="FILE", help="pcap or pcapng, also gzipped; - is standard input")
    capture.add_argument(
        "--port",
        type=int,
        action="append",
        help="of brokers; any number of times (default: 9092 and whatever looks like Kafka)",
    )
    capture.add_argument(
        "--summary", action="store_true", help="also calls, errors and times per API, at the end"
    )
    _add_line_options(capture)

    proxy = _action(actions, "proxy", "explain live, between clients and a broker", _PROXY + _LINES, _proxy)
    proxy.add_argument("--upstream", required=True, metavar="HOST:PORT", help="the broker")
    proxy.add_argument(
        "--listen",
        default=_LISTEN,
        metavar="HOST:PORT",
        help=f"for clients; port 0 is a free one (default {_LISTEN})",
    )
    proxy.add_argument(
        "--advertise",
        metavar="HOST",
        help="what clients are told as the proxy's host (default: the address at which they reached it)",
    )
    proxy.add_argument("--no-rewrite", action="store_true", help="leave the addresses of brokers as they are")
    proxy.add_argument("--summary-only", action="store_true", help="print the summary, no lines")
    _add_line_options(proxy)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    description: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = actions.add_parser(
        name, help=text, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_output_options(parser)
    parser.set_defaults(run=run)
    return parser


def _add_payload_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--payloads", action="store_true", help="also keys, values and headers of records, shortened"
    )
    parser.add_argument("--full", action="store_true", help="payloads unshortened")


def _add_line_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verbose", action="store_true", help="all fields")
    _add_payload_options(parser)
    parser.add_argument("--api", metavar="NAMES", help="only these, separated by commas: Produce,Fetch")
    parser.add_argument("--client-id", metavar="ID", help="only this client's")
    parser.add_argument("--errors-only", action="store_true", help="only what has an error or is unreadable")


def _wanted(arguments: argparse.Namespace) -> Wanted:
    from kbroker.protocol.messages import API_NAMES
    from kbroker.wire.fields import Shown
    from kbroker.wire.lines import Wanted

    shown = Shown(arguments.payloads or arguments.full, arguments.full)
    if arguments.action == "decode":
        return Wanted(arguments.json, not arguments.brief, shown, positions=True)
    apis = None
    if arguments.api is not None:
        apis = frozenset(API_NAMES[_api_key(name)].lower() for name in arguments.api.split(","))
    return Wanted(
        arguments.json,
        arguments.verbose or shown.payloads,
        shown,
        apis,
        arguments.client_id,
        arguments.errors_only,
    )


def _api_key(name: str) -> int:
    from kbroker.protocol.messages import API_NAMES

    name = name.strip()
    for key, known in API_NAMES.items():
        if name.lower() == known.lower() or name == str(key):
            return key
    from kbroker.cli.suggestions import did_you_mean

    raise CommandFailed(f"there is no API {name}{did_you_mean(name, API_NAMES.values())}", USAGE)


def _decode(arguments: argparse.Namespace) -> int:
    from kbroker.wire.hex_input import NotHex, chunks
    from kbroker.wire.lines import Teller
    from kbroker.wire.loose_frames import Hints, explained_frames

    response_to = None
    if arguments.response:
        if arguments.api is None or arguments.version is None:
            raise CommandFailed(
                "--response needs --api NAME and --version N: a response does not tell them", USAGE
            )
        response_to = _api_key(arguments.api), arguments.version
    data = arguments.hex.encode() if arguments.hex is not None else _content(arguments.file)
    if not data.strip():
        raise CommandFailed("there is nothing to decode")
    try:
        found = chunks(data)
    except NotHex as error:
        raise CommandFailed(f"{error}: give hex, the output of xxd or hexdump, or raw bytes") from error
    teller = Teller(_wanted(arguments))
    problems = 0
    for explained in explained_frames(found, Hints(arguments.lengths, response_to)):
        problems += explained.problem is not None
        _print_frame(teller, explained)
    return FOUND if problems else OK


def _print_frame(teller: Teller, explained: Explained) -> None:
    """A frame that came by itself: without a time and a connection."""
    import json

    from kbroker.wire.connection import Event
    from kbroker.wire.fields import as_lines
    from kbroker.wire.lines import frame_text

    told = teller.told(Event(0, 0.0, explained))
    if teller.wanted.json:
        shown = teller.as_object(told)
        del shown["time"], shown["connection"]
        stream(json.dumps(shown, ensure_ascii=False))
        return
    stream(frame_text(explained, told.subjects))
    if teller.wanted.verbose:
        for line in as_lines(explained, teller.wanted.shown, positions=True):
            stream(line)
        if explained.problem is not None:
            stream(f"{explained.problem.position:6}  ^ {explained.problem.reason}")
    if explained.problem is not None and explained.problem.path == "request_api_key":
        note("kbroker: if it is a response, say what it answers: --response --api NAME --version N")


def _content(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as file:
        return file.read()


def _capture(arguments: argparse.Namespace) -> int:
    from kbroker.wire.capture import Capture
    from kbroker.wire.lines import Teller
    from kbroker.wire.pcap import NoCapture, packets
    from kbroker.wire.statistics import Statistics

    teller, statistics = Teller(_wanted(arguments)), Statistics()
    capture = Capture(frozenset(arguments.port or ()))
    source = sys.stdin.buffer if arguments.file == "-" else open(arguments.file, "rb")  # noqa: SIM115
    try:
        with source:
            for event in capture.events(packets(source)):
                told = teller.told(event)
                statistics.add(told)
                for line in teller.lines(told):
                    stream(line)
    except NoCapture as error:
        raise CommandFailed(f"{arguments.file}: {error}") from error
    if arguments.summary:
        _print_summary(arguments, statistics)
    note(capture.summary())
    return OK


def _proxy(arguments: argparse.Namespace) -> int:
    import uvloop

    upstream = _address(arguments.upstream, "--upstream")
    listen = _address(arguments.listen, "--listen")
    return int(uvloop.run(_run_proxy(arguments, upstream, listen)))


async def _run_proxy(
    arguments: argparse.Namespace, upstream: tuple[str, int], listen: tuple[str, int]
) -> int:
    import asyncio
    import signal

    from kbroker.wire.connection import Event
    from kbroker.wire.lines import Teller
    from kbroker.wire.proxy import Proxy
    from kbroker.wire.statistics import Statistics

    teller, statistics = Teller(_wanted(arguments)), Statistics()

    def tell(event: Event) -> None:
        told = teller.told(event)
        statistics.add(told)
        if not arguments.summary_only:
            for line in teller.lines(told):
                say(line)
            sys.stdout.flush()

    proxy = Proxy(upstream, listen, tell, rewrites=not arguments.no_rewrite, advertise=arguments.advertise)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        await proxy.start()
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # Python repeats the address there
        raise CommandFailed(
            f"cannot listen on {arguments.listen}: {reason}. Name another with --listen"
        ) from error
    host, port = proxy.address
    note(f"listening on {host}:{port} for {arguments.upstream}; Ctrl-C ends it")
    await stopped.wait()
    await proxy.stop()
    _print_summary(arguments, statistics)
    return OK


def _address(text: str, option: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise CommandFailed(f"{option} {text} is not HOST:PORT", USAGE)
    return host.strip("[]"), int(port)


def _print_summary(arguments: argparse.Namespace, statistics: Statistics) -> None:
    from kbroker.wire.statistics import COLUMNS

    rows = statistics.rows()
    if arguments.json:
        import json

        say(json.dumps({"summary": rows}))
    elif rows:
        say()
        print_table(list(COLUMNS.values()), [[row[key] for key in COLUMNS] for row in rows])
