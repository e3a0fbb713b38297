"""`kbroker control`: make a broker misbehave, for tests in any language."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from kbroker.cli.output import add_output_options, print_json, say
from kbroker.exit_codes import OK, UNREACHABLE, CommandFailed

_DESCRIPTION = """\
Make a broker misbehave, and look at what clients sent. The broker must have been started with --control-port.

    kbroker serve --in-memory --control-port 9999
    kbroker control --port 9999 fail --api Produce --error NOT_LEADER_OR_FOLLOWER --times 2"""

Arguments = Callable[[argparse.Namespace], dict[str, Any]]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "control",
        help="inject faults into a test broker",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, required=True, help="the broker's control port")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    fail = _action(actions, "fail", "answer requests with an error", _limits(("error",)))
    fail.add_argument("--error", required=True, metavar="NAME", help="such as NOT_LEADER_OR_FOLLOWER")
    _add_limits(fail, 1, "how many requests (default 1, 0 means all)")
    delay = _action(actions, "delay", "let requests wait", _limits(("ms",)))
    delay.add_argument("--ms", type=int, required=True, help="how long")
    _add_limits(delay, 0, "how many requests (default 0, which means all)")
    _action(actions, "clear", "no more errors and delays")
    _action(actions, "drop_connections", "reset every client's connection", name="drop")
    _action(actions, "pause", "execute nothing, as a broker that hangs")
    _action(actions, "resume", "go on")
    advance = _action(
        actions,
        "advance_time",
        "let the broker's clock jump ahead",
        lambda given: {"ms": given.ms},
        name="advance-time",
    )
    advance.add_argument("ms", type=int, metavar="MS")
    _action(actions, "connections", "how many clients are connected")
    _action(actions, "requests", "what clients sent: api, version, client id")
    _action(actions, "forget_requests", "forget what clients sent", name="forget-requests")
    records = _action(actions, "records", "every record of a topic", lambda given: {"topic": given.topic})
    records.add_argument("topic", metavar="TOPIC")
    create = _action(
        actions,
        "create_topic",
        "make a topic",
        lambda given: {"name": given.topic, "partitions": given.partitions},
        name="create-topic",
    )
    create.add_argument("topic", metavar="TOPIC")
    create.add_argument("-p", "--partitions", type=int, default=1)


def _limits(names: tuple[str, ...]) -> Arguments:
    def arguments(given: argparse.Namespace) -> dict[str, Any]:
        own = {name: getattr(given, name) for name in names}
        return {**own, "api": given.api, "client_id": given.client_id, "times": given.times or None}

    return arguments


def _add_limits(parser: argparse.ArgumentParser, times: int, text: str) -> None:
    parser.add_argument("--api", metavar="NAME", help="only requests of this API, such as Produce")
    parser.add_argument("--client-id", metavar="ID", help="only requests of this client")
    parser.add_argument("--times", type=int, default=times, metavar="N", help=text)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    action: str,
    text: str,
    arguments: Arguments = lambda _: {},
    *,
    name: str | None = None,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name or action, help=text, description=text[0].upper() + text[1:] + ".")
    add_output_options(parser)
    parser.set_defaults(run=lambda given: _do(given, action, arguments(given)))
    return parser


def _do(given: argparse.Namespace, action: str, arguments: dict[str, Any]) -> int:
    from kbroker.testing.control_client import ControlClient, ControlError

    try:
        client = ControlClient(given.port)
    except OSError as error:
        raise CommandFailed(
            f"no control port at 127.0.0.1:{given.port} ({error.strerror}): start the broker with "
            f"'kbroker serve --control-port {given.port}'",
            UNREACHABLE,
        ) from error
    try:
        result = client.do(action, **arguments)
    except ControlError as error:
        raise CommandFailed(str(error)) from error
    finally:
        client.close()
    if given.json or result is not None:
        print_json(result)
    else:
        say("done")
    return OK
