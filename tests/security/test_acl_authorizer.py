"""Decisions by ACLs, beside a model that looks at every binding every time."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.catalog.memory import MemoryCatalog
from kbroker.security import acl_authorizer
from kbroker.security.acl_authorizer import AclAuthorizer, host_address
from kbroker.security.acl_bindings import AclBinding, AclFilter
from kbroker.security.acl_store import TABLE, AclStore
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission
from kbroker.security.principal import Principal

READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
IMPLIED = {
    DESCRIBE: {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


class Asker(NamedTuple):
    principal: Principal
    peer_host: str


ALICE = Asker(Principal("User", "alice"), "10.0.0.1")
names = st.text("ab*", min_size=1, max_size=4)
bindings = st.builds(
    AclBinding,
    st.sampled_from([TOPIC, GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*", "Group:alice"]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1"]),
    st.sampled_from([operation for operation in AclOperation if operation > 1]),
    st.sampled_from([ALLOW, DENY]),
)
askers = st.builds(
    Asker,
    st.builds(Principal, st.sampled_from(["User", "Group"]), st.sampled_from(["alice", "bob", "root", "*"])),
    st.sampled_from(["10.0.0.1", "10.0.0.2", "::1", "::ffff:10.0.0.2"]),
)
questions = st.tuples(
    askers,
    st.sampled_from([operation for operation in AclOperation if operation > 2]),
    st.sampled_from([TOPIC, GROUP]),
    names,
)
HOSTS = {"::1": "0:0:0:0:0:0:0:1", "::ffff:10.0.0.2": "10.0.0.2"}


def store(*bindings: AclBinding) -> AclStore:
    acls = AclStore(MemoryCatalog(), ())
    acls.create(bindings)
    return acls


def allowed(
    asker: Asker,
    operation: AclOperation,
    kind: AclResourceType,
    name: str,
    bindings: list[AclBinding],
    otherwise: bool,
) -> bool:
    """The rules, one after the other."""
    who, host = str(asker.principal), HOSTS.get(asker.peer_host, asker.peer_host)
    if who == "User:root":
        return True
    about = [
        each
        for each in bindings
        if each.resource_type is kind
        and (
            name.startswith(each.resource_name)
            if each.pattern_type is PREFIXED
            else each.resource_name in (name, "*")
        )
    ]
    if not about:
        return otherwise
    matching = [each for each in about if each.principal in (who, "User:*") and each.host in (host, "*")]
    if any(each.permission is DENY and each.operation in (operation, ALL) for each in matching):
        return False
    enough = {operation, ALL} | IMPLIED.get(operation, set())
    return any(each.permission is ALLOW and each.operation in enough for each in matching)


@given(st.lists(bindings, max_size=12), st.lists(questions, min_size=1, max_size=8), st.booleans())
def test_decisions_follow_the_rules_also_when_bindings_come_and_go(
    given_bindings: list[AclBinding],
    asked: list[tuple[Asker, AclOperation, AclResourceType, str]],
    otherwise: bool,
) -> None:
    catalog = MemoryCatalog()
    acls = AclStore(catalog, ())
    authorizer = AclAuthorizer(acls, ["User:root"], allow_without_acls=otherwise)
    there: list[AclBinding] = []

    def compare(authorizer: AclAuthorizer) -> None:
        for question in asked * 2:  # the second time they are remembered
            assert authorizer.authorize(*question) is allowed(*question, there, otherwise)

    for binding in given_bindings:
        acls.create([binding])
        there.append(binding)
        compare(authorizer)
    stored = [row.key for row in catalog.snapshot().entries if row.table == TABLE]
    compare(AclAuthorizer(AclStore(catalog, stored), ["User:root"], allow_without_acls=otherwise))
    for binding in given_bindings:
        acls.delete([binding])
        there = [each for each in there if each != binding]
        compare(authorizer)
    assert len(acls) == 0
    assert catalog.snapshot().entries == []


@given(st.lists(bindings, max_size=8), askers, st.sampled_from([READ, WRITE]))
def test_who_may_do_something_to_a_named_resource_may_do_it_to_some(
    given_bindings: list[AclBinding], asker: Asker, operation: AclOperation
) -> None:
    """Of the names in question one shows it, unless no name does."""
    acls = store(*given_bindings)
    authorizer = AclAuthorizer(acls, ["User:root"], allow_without_acls=False)
    some = authorizer.authorize_by_resource_type(asker, operation, TOPIC)
    named = {each.resource_name for each in given_bindings} | {"hardcode"}
    if any(authorizer.authorize(asker, operation, TOPIC, name) for name in named if name != "*"):
        assert some


def test_a_prefix_may_be_as_long_as_a_name_and_no_longer() -> None:
    authorizer = AclAuthorizer(
        store(AclBinding(TOPIC, "abc", PREFIXED, "User:alice", "*", READ, ALLOW)),
        (),
        allow_without_acls=False,
    )
    asked = {name: authorizer.authorize(ALICE, READ, TOPIC, name) for name in ("ab", "abc", "abcd", "bc")}
    assert asked == {"ab": False, "abc": True, "abcd": True, "bc": False}


def test_a_super_user_may_what_is_denied() -> None:
    denied = AclBinding(TOPIC, "*", LITERAL, "User:*", "*", ALL, DENY)
    authorizer = AclAuthorizer(store(denied), ["User:alice"], allow_without_acls=False)
    assert authorizer.authorize(ALICE, READ, TOPIC, "t")
    assert authorizer.authorize_by_resource_type(ALICE, READ, TOPIC)
    assert not authorizer.authorize(ALICE._replace(principal=Principal("User", "bob")), READ, TOPIC, "t")


def test_what_is_remembered_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_authorizer, "_MOST_DECISIONS", 10)
    authorizer = AclAuthorizer(store(), (), allow_without_acls=True)
    for number in range(25):
        authorizer.authorize(ALICE, READ, GROUP, f"group {number}")
        authorizer.authorize(ALICE, READ, GROUP, f"group {number}" * 100)
    assert len(authorizer._decisions) == 5


@pytest.mark.parametrize(
    ("host", "as_java_writes_it"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a0:1", "2001:db8:0:0:0:0:a0:1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("not:an:address", "not:an:address"),
    ],
)
def test_an_address_is_compared_as_java_writes_it(host: str, as_java_writes_it: str) -> None:
    assert host_address(host) == as_java_writes_it


@given(bindings)
def test_a_binding_is_stored_as_text_and_found_by_a_filter_of_itself(binding: AclBinding) -> None:
    assert AclBinding.of_text(binding.to_text()) == binding
    assert AclFilter(*binding).matches(binding)
