"""`kbroker acl`: who may do what, in the words of Kafka's own kafka-acls."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from kbroker.cli import connection
from kbroker.cli.output import add_output_options, plural, print_rows, say
from kbroker.exit_codes import OK, USAGE, CommandFailed

_ANY = "any"
_CLUSTER = "kafka-cluster"
_RESOURCES = ("topic", "group", "transactional-id", "delegation-token", "user-principal")
_TYPE_OF = {"user-principal": "USER"}
_PRODUCER = ("WRITE", "DESCRIBE", "CREATE")
_CONSUMER = ("READ", "DESCRIBE")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("acl", help="access control lists: add, list, remove")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    add = _action(actions, "add", "let principals do something to resources, or forbid it")
    _add_resources(add)
    _add_principals(add)
    add.set_defaults(run=_add)

    listing = _action(actions, "list", "the ACLs, all or those of some resources and principals")
    _add_resources(listing)
    listing.add_argument("--principal", metavar="User:NAME", help="those of this principal")
    add_output_options(listing)
    listing.set_defaults(run=_list)

    remove = _action(actions, "remove", "remove the ACLs that fit; what is not named may be anything")
    _add_resources(remove)
    _add_principals(remove)
    remove.add_argument("--yes", action="store_true", help="remove all ACLs if nothing is named")
    remove.set_defaults(run=_remove)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    connection.add_connection_options(parser)
    return parser


def _add_resources(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("resources")
    for name in _RESOURCES:
        options.add_argument(f"--{name}", metavar="NAME", action="append", default=[], help=argparse.SUPPRESS)
    options.add_argument("--cluster", action="store_true", help="the cluster as a whole")
    options.add_argument(
        "--resource-pattern-type",
        choices=("literal", "prefixed", "match", _ANY),
        help="how names are meant: as they are (the default; * is every name), or as the start of names; "
        "to list and remove also match, all that speaks of a name, and any",
    )
    options.description = (
        "--topic NAME, --group NAME, --transactional-id NAME, --delegation-token NAME, "
        "--user-principal NAME, each any number of times"
    )


def _add_principals(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("who and what")
    for word, text in (("allow", "may"), ("deny", "may not, whatever else allows it")):
        options.add_argument(
            f"--{word}-principal", metavar="User:NAME", action="append", default=[], help=f"who {text}"
        )
        options.add_argument(
            f"--{word}-host", metavar="ADDRESS", action="append", default=[], help="from where (default *)"
        )
    options.add_argument(
        "--operation", metavar="NAME", action="append", default=[], help="Read, Write, … (default All)"
    )
    options.add_argument("--producer", action="store_true", help="what a producer of the topics needs")
    options.add_argument("--consumer", action="store_true", help="what a consumer of topics and groups needs")


def _add(arguments: argparse.Namespace) -> int:
    admin = connection.kafka().admin
    if not arguments.allow_principal and not arguments.deny_principal:
        raise CommandFailed("who? Write --allow-principal User:NAME, or --deny-principal", USAGE)
    kind = (arguments.resource_pattern_type or "literal").upper()
    if kind not in ("LITERAL", "PREFIXED"):
        raise CommandFailed("an ACL names resources as literal or prefixed", USAGE)
    pattern_type = admin.ACLResourcePatternType[kind]
    patterns = [
        (admin.ResourcePattern(admin.ResourceType[type_], name, pattern_type), operations)
        for type_, name, operations in _wanted(arguments)
    ]
    if not patterns:
        raise CommandFailed("on what? Write --topic NAME, --group NAME, --cluster, …", USAGE)
    acls = [
        admin.ACL(principal, host, _operation(operation), admin.ACLPermissionType[permission], pattern)
        for permission, principal, host in _who(arguments)
        for pattern, operations in patterns
        for operation in operations
    ]
    with connection.admin(arguments) as client:
        result = client.create_acls(acls)
    if result["failed"]:
        raise CommandFailed(str(result["failed"][0]))
    say(f"added {plural(len(acls), 'ACL')}")
    return OK


def _list(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        found = [acl for each in _filters(arguments, None, None) for acl in _described(client, each)]
    columns = {
        "principal": "PRINCIPAL",
        "permission": "PERMISSION",
        "operation": "OPERATION",
        "resource": "RESOURCE",
        "name": "NAME",
        "pattern": "PATTERN",
        "host": "HOST",
    }
    rows = sorted(
        (
            {
                "principal": acl.principal,
                "permission": acl.permission_type.name,
                "operation": acl.operation.name,
                "resource": acl.resource_pattern.resource_type.name,
                "name": acl.resource_pattern.resource_name,
                "pattern": acl.resource_pattern.pattern_type.name,
                "host": acl.host,
            }
            for acl in found
        ),
        key=lambda row: tuple(row.values()),
    )
    print_rows(arguments, rows, columns)
    return OK


def _remove(arguments: argparse.Namespace) -> int:
    who: list[tuple[str, str | None, str | None]] = [*_who(arguments)] or [(_ANY.upper(), None, None)]
    filters = [
        each
        for permission, principal, host in who
        for operation in _operations(arguments) or (_ANY.upper(),)
        for each in _filters(arguments, principal, host, operation, permission)
    ]
    named = _wanted(arguments) or arguments.allow_principal or arguments.deny_principal or arguments.operation
    if not named and not arguments.yes:
        raise CommandFailed("this would remove all ACLs: name some, or write --yes", USAGE)
    removed = 0
    with connection.admin(arguments) as client:
        for _, acls, problem in client.delete_acls(filters):
            _check(problem)
            removed += len(acls)
    say(f"removed {plural(removed, 'ACL')}")
    return OK


def _described(client: Any, wanted: Any) -> Sequence[Any]:
    acls, problem = client.describe_acls(wanted)
    _check(problem)
    found: Sequence[Any] = acls
    return found


def _check(problem: Any) -> None:
    """What kafka-python found: a class or an instance of an error, that of no error among them."""
    if problem is not None and problem.errno:
        raise CommandFailed(str(problem))


def _wanted(arguments: argparse.Namespace) -> list[tuple[str, str, Sequence[str]]]:
    """The resources that are named: type, name, and what is done to them."""
    types = {option: _TYPE_OF.get(option, option.upper().replace("-", "_")) for option in _RESOURCES}
    wanted = [
        (type_, name, _operations_on(arguments, type_))
        for option, type_ in types.items()
        for name in getattr(arguments, option.replace("-", "_"))
    ]
    if arguments.cluster:
        wanted.append(("CLUSTER", _CLUSTER, _operations_on(arguments, "CLUSTER")))
    return wanted


def _operations_on(arguments: argparse.Namespace, type_: str) -> Sequence[str]:
    operations = dict.fromkeys(_operations(arguments))
    if getattr(arguments, "producer", False) and type_ in ("TOPIC", "TRANSACTIONAL_ID"):
        operations |= dict.fromkeys(_PRODUCER if type_ == "TOPIC" else _PRODUCER[:2])
    if getattr(arguments, "consumer", False) and type_ in ("TOPIC", "GROUP"):
        operations |= dict.fromkeys(_CONSUMER if type_ == "TOPIC" else _CONSUMER[:1])
    return tuple(operations) or ("ALL",)


def _operations(arguments: argparse.Namespace) -> list[str]:
    """As the protocol writes them; DescribeConfigs and describe-configs are DESCRIBE_CONFIGS."""
    known = {name.replace("_", ""): name for name in connection.kafka().admin.ACLOperation.__members__}
    found = []
    for given in getattr(arguments, "operation", []):
        name = known.get(given.upper().replace("_", "").replace("-", ""))
        if name is None:
            raise CommandFailed(f"there is no operation {given}: one of {', '.join(known.values())}", USAGE)
        found.append(name)
    return found


def _operation(name: str) -> Any:
    return connection.kafka().admin.ACLOperation[name]


def _who(arguments: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Permission, principal and host."""
    for word in ("allow", "deny"):
        for principal in getattr(arguments, f"{word}_principal"):
            if ":" not in principal:
                raise CommandFailed(f"{principal} is not TYPE:NAME: write User:{principal}", USAGE)
            for host in getattr(arguments, f"{word}_host") or ("*",):
                yield word.upper(), principal, host


def _filters(
    arguments: argparse.Namespace,
    principal: str | None,
    host: str | None,
    operation: str = "ANY",
    permission: str = "ANY",
) -> Iterator[Any]:
    admin = connection.kafka().admin
    named: list[tuple[str, str | None]] = [(type_, name) for type_, name, _ in _wanted(arguments)]
    kind = (arguments.resource_pattern_type or _ANY).upper()
    for type_, name in named or [(_ANY.upper(), None)]:
        pattern = admin.ResourcePatternFilter(
            admin.ResourceType[type_], name, admin.ACLResourcePatternType[kind]
        )
        yield admin.ACLFilter(
            principal or getattr(arguments, "principal", None),
            host,
            _operation(operation),
            admin.ACLPermissionType[permission],
            pattern,
        )
