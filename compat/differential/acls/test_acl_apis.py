"""CreateAcls, DescribeAcls, DeleteAcls: what they take, what they find, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from compat.differential.acls.cases import in_order
from compat.differential.acls.users import (
    ALL,
    ALLOW,
    ANY,
    CLUSTER,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    SETTINGS,
    TOPIC,
    WRITE,
    acl,
)
from compat.differential.pair import Pair
from compat.harness.side import Side, versions
from compat.harness.waiting import eventually

MATCH, DENY, UNKNOWN, NOT_YET = 2, 2, 0, 99


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {**SETTINGS, "super.users": "User:ANONYMOUS"}


def wanted(
    type_: int = ANY,
    name: str | None = None,
    pattern: int = ANY,
    principal: str | None = None,
    host: str | None = None,
    operation: int = ANY,
    permission: int = ANY,
) -> dict[str, Any]:
    return {
        "ResourceTypeFilter": type_,
        "ResourceNameFilter": name,
        "PatternTypeFilter": pattern,
        "PrincipalFilter": principal,
        "HostFilter": host,
        "Operation": operation,
        "PermissionType": permission,
    }


def describe(side: Side, version: int = 3, **more: Any) -> Any:
    return in_order(side.ask("DescribeAcls", version, wanted(**more)))


def create(side: Side, *acls: dict[str, Any], version: int = 3) -> Any:
    """The answer, when what it tells of is known."""
    answer = side.ask("CreateAcls", version, {"Creations": list(acls)})
    if isinstance(answer, dict):
        for asked, result in zip(acls, answer["Results"], strict=True):
            if result["ErrorCode"] == 0:
                eventually(lambda asked=asked: describe(side, name=asked["ResourceName"])["Resources"])
    return answer


def delete(side: Side, *filters: dict[str, Any], version: int = 3) -> Any:
    return in_order(side.ask("DeleteAcls", version, {"Filters": list(filters)}))


def clear(side: Side) -> None:
    delete(side, wanted())
    eventually(lambda: not describe(side)["Resources"])


ACLS = {
    "literal": acl(TOPIC, "orders", READ),
    "prefixed": acl(TOPIC, "ord", READ, pattern=PREFIXED),
    "every topic": acl(TOPIC, "*", READ),
    "a prefix that is a star": acl(TOPIC, "*", READ, pattern=PREFIXED),
    "everybody": acl(TOPIC, "orders", ALL, principal="User:*"),
    "denied": acl(GROUP, "orders", READ, permission=DENY),
    "cluster": acl(CLUSTER, "kafka-cluster", READ),
    "a prefix of the cluster": acl(CLUSTER, "kafka-cluster", READ, pattern=PREFIXED),
    "another cluster": acl(CLUSTER, "kafka", READ),
    "any cluster": acl(CLUSTER, "*", READ),
    "an operation that the type has not": acl(GROUP, "g", WRITE),
    "a user": acl(7, "User:alice", 13),
    "a token": acl(6, "token", 8),
    "two phases": acl(5, "txn", 15),
    "no name": acl(TOPIC, "", READ),
    "any type": acl(ANY, "orders", READ),
    "a type of the future": acl(NOT_YET, "orders", READ),
    "unknown type": acl(UNKNOWN, "orders", READ),
    "any operation": acl(TOPIC, "orders", ANY),
    "an operation of the future": acl(TOPIC, "orders", NOT_YET),
    "unknown operation": acl(TOPIC, "orders", UNKNOWN),
    "any pattern": acl(TOPIC, "orders", READ, pattern=ANY),
    "match": acl(TOPIC, "orders", READ, pattern=MATCH),
    "a pattern of the future": acl(TOPIC, "orders", READ, pattern=NOT_YET),
    "unknown pattern": acl(TOPIC, "orders", READ, pattern=UNKNOWN),
    "any permission": acl(TOPIC, "orders", READ, permission=ANY),
    "a permission of the future": acl(TOPIC, "orders", READ, permission=NOT_YET),
    "unknown permission": acl(TOPIC, "orders", READ, permission=UNKNOWN),
    "no host": acl(TOPIC, "orders", READ, ""),
    "a host name": acl(TOPIC, "orders", READ, "localhost"),
    "a network": acl(TOPIC, "orders", READ, "10.0.0.0/8"),
    "a name that no topic has": acl(TOPIC, "a b/c", READ),
    "no name of a user": acl(TOPIC, "orders", READ, principal="User:"),
    "another kind of principal": acl(TOPIC, "orders", READ, principal="Group:admins"),
}


@pytest.mark.parametrize("name", ACLS)
def test_an_acl_is_created_or_refused(pair: Pair, name: str) -> None:
    def scenario(side: Side) -> Any:
        clear(side)
        answers = {version: create(side, ACLS[name], version=version) for version in versions("CreateAcls")}
        return answers, describe(side), delete(side, wanted())

    pair.same(scenario)


@pytest.mark.parametrize("bad", ["no name", "another cluster", "any operation", "a type of the future"])
def test_those_that_make_sense_are_created_beside_those_that_do_not(pair: Pair, bad: str) -> None:
    def scenario(side: Side) -> Any:
        clear(side)
        good = ACLS["literal"]
        return create(side, good, ACLS[bad], good, ACLS["prefixed"]), describe(side), create(side)

    pair.same(scenario)


FILTERS = {
    "all": {},
    "topics": {"type_": TOPIC},
    "a name": {"name": "orders"},
    "a name, literal": {"name": "orders", "pattern": LITERAL},
    "a name, prefixed": {"name": "orders", "pattern": PREFIXED},
    "a prefix": {"name": "ord", "pattern": PREFIXED},
    "what matches": {"type_": TOPIC, "name": "orders", "pattern": MATCH},
    "what matches another": {"type_": TOPIC, "name": "ordinary", "pattern": MATCH},
    "what matches a star": {"type_": TOPIC, "name": "*", "pattern": MATCH},
    "what matches no name": {"type_": TOPIC, "pattern": MATCH},
    "what matches an empty name": {"name": "", "pattern": MATCH},
    "an empty name": {"name": ""},
    "a star": {"name": "*", "pattern": LITERAL},
    "prefixes": {"pattern": PREFIXED},
    "a principal": {"principal": "User:*"},
    "nobody": {"principal": "User:nobody"},
    "a host": {"host": "localhost"},
    "any host": {"host": "*"},
    "an operation": {"operation": READ},
    "all operations": {"operation": ALL},
    "a permission": {"permission": DENY},
    "allowed": {"permission": ALLOW},
    "a type of the future": {"type_": NOT_YET},
    "a pattern of the future": {"pattern": NOT_YET},
    "an operation of the future": {"operation": NOT_YET},
    "a permission of the future": {"permission": NOT_YET},
    "unknown type": {"type_": UNKNOWN},
    "unknown pattern": {"pattern": UNKNOWN},
    "unknown operation": {"operation": UNKNOWN},
    "unknown permission": {"permission": UNKNOWN},
}
GOOD = [
    "literal",
    "prefixed",
    "every topic",
    "a prefix that is a star",
    "everybody",
    "denied",
    "cluster",
    "a host name",
]


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_finds_and_deletes(pair: Pair, name: str) -> None:
    def scenario(side: Side) -> Any:
        clear(side)
        create(side, *(ACLS[each] for each in GOOD))
        eventually(lambda: sum(len(each["Acls"]) for each in describe(side)["Resources"]) == len(GOOD))
        found = {version: describe(side, version, **FILTERS[name]) for version in versions("DescribeAcls")}
        gone = delete(side, wanted(**FILTERS[name]), wanted(type_=GROUP))
        return found, gone

    pair.same(scenario)


def test_a_request_has_a_limit(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        clear(side)
        many = [acl(TOPIC, f"t{number}", READ) for number in range(10_001)]
        answer = side.ask("CreateAcls", 3, {"Creations": many})
        refused = sorted({each["ErrorCode"] for each in answer["Results"]})
        for first in (0, 6000):
            side.ask("CreateAcls", 3, {"Creations": many[first : first + 6000]})
        eventually(lambda: len(describe(side)["Resources"]) >= 10_001, seconds=60)
        gone = delete(side, wanted(), wanted(name="t1"), wanted())
        return refused, [(each["ErrorCode"], len(each["MatchingAcls"])) for each in gone["FilterResults"]]

    pair.same(scenario)
