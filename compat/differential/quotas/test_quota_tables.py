"""AlterClientQuotas and DescribeClientQuotas: what is taken, refused and found."""

from __future__ import annotations

import itertools

import pytest

from compat.harness.waiting import eventually

from .clients import entity, entry, set_quotas

BYTES = ("producer_byte_rate", 1000.0)


MARKER = "marker"
marks = itertools.count(1)


def alter(side, *entries, version=1, **fields):
    answer = side.ask("AlterClientQuotas", version, {"Entries": list(entries), **fields})
    settle(side)
    if isinstance(answer, dict):
        for each in answer["Entries"]:
            each["Entity"] = named(each["Entity"])
        answer["Entries"].sort(key=str)
    return answer


def settle(side):
    """A broker of Kafka hears of quotas a moment after they are set, in their order."""
    mark = float(next(marks))
    set_quotas(side, entity(user=MARKER), producer_byte_rate=mark)

    def is_known():
        return any(
            value["Value"] == mark
            for each in all_quotas(side)
            if named(each["Entity"]) == {"user": MARKER}
            for value in each["Values"]
        )

    eventually(is_known)


def all_quotas(side):
    return side.raw("DescribeClientQuotas", 1, {"Components": [], "Strict": False})["Entries"]


def named(parts):
    return dict(sorted((part["EntityType"], part["EntityName"]) for part in parts))


def describe(side, *components, strict=False, version=1):
    wanted = [dict(zip(("EntityType", "MatchType", "Match"), each, strict=True)) for each in components]
    answer = side.ask("DescribeClientQuotas", version, {"Components": wanted, "Strict": strict})
    if isinstance(answer, dict) and answer["Entries"] is not None:
        found = [
            [named(each["Entity"]), dict(sorted((value["Key"], value["Value"]) for value in each["Values"]))]
            for each in answer["Entries"]
        ]
        answer["Entries"] = sorted((each for each in found if each[0] != {"user": MARKER}), key=str)
    return answer


ALTERED = {
    "a user": entry(entity(user="alice"), BYTES),
    "the default user": entry(entity(user=None), BYTES),
    "a client id": entry(entity(client_id="a"), BYTES),
    "both": entry(entity(user="alice", client_id="a"), BYTES),
    "both defaults": entry(entity(user=None, client_id=None), BYTES),
    "a user with strange letters": entry(entity(user="CN=älice, O=<default>/x"), BYTES),
    "every quota of a client": entry(
        entity(user="alice"),
        ("producer_byte_rate", 1.0),
        ("consumer_byte_rate", 2.0),
        ("request_percentage", 2.5),
        ("controller_mutation_rate", 0.5),
    ),
    "an address": entry(entity(ip="10.0.0.1"), ("connection_creation_rate", 5.0)),
    "the default address": entry(entity(ip=None), ("connection_creation_rate", 1000.0)),
    "an address of IPv6": entry(entity(ip="::1"), ("connection_creation_rate", 5000.0)),
    "an address that is none": entry(entity(ip="300.1.1.1"), ("connection_creation_rate", 5.0)),
    "an empty address": entry(entity(ip=""), ("connection_creation_rate", 5.0)),
    "an address and a user": entry(entity(ip="10.0.0.1", user="alice"), ("connection_creation_rate", 5.0)),
    "no entity": entry([], BYTES),
    "no entity and no quota": entry([]),
    "an unknown type": entry(entity(group="g"), BYTES),
    "an empty type": entry([{"EntityType": "", "EntityName": "x"}], BYTES),
    "an empty user": entry(entity(user=""), BYTES),
    "a type twice": entry([*entity(user="alice"), *entity(user="bob")], BYTES),
    "an unknown quota": entry(entity(user="alice"), ("bytes", 5.0)),
    "a known and an unknown quota": entry(entity(user="alice"), BYTES, ("bytes", 5.0)),
    "an address's quota of a user": entry(entity(user="alice"), ("connection_creation_rate", 5.0)),
    "a user's quota of an address": entry(entity(ip="10.0.0.1"), BYTES),
    "zero": entry(entity(user="alice"), ("producer_byte_rate", -0.0001)),
    "below zero": entry(entity(user="alice"), ("request_percentage", -5.0)),
    "a fraction of a byte": entry(entity(user="alice"), ("producer_byte_rate", 1.5)),
    "nearly a whole byte": entry(entity(user="alice"), ("producer_byte_rate", 1.0000001)),
    "a fraction of a connection": entry(entity(ip="10.0.0.1"), ("connection_creation_rate", 1.5)),
    "the largest LONG": entry(entity(user="alice"), ("producer_byte_rate", float(1 << 63))),
    "above a LONG": entry(entity(user="alice"), ("producer_byte_rate", 1e19)),
    "the largest INT": entry(entity(ip="10.0.0.1"), ("connection_creation_rate", float((1 << 31) - 1))),
    "above an INT": entry(entity(ip="10.0.0.1"), ("connection_creation_rate", float(1 << 31))),
    "a huge percentage": entry(entity(user="alice"), ("request_percentage", 1e300)),
    "infinity": entry(entity(user="alice"), ("request_percentage", float("inf"))),
    "a quota twice": entry(entity(user="alice"), BYTES, ("producer_byte_rate", 5.0)),
    "nothing": entry(entity(user="alice")),
    "the removal of nothing": entry(entity(user="alice"), ("producer_byte_rate", None)),
    "the removal of an unknown quota": entry(entity(user="alice"), ("bytes", None)),
}


def clear(side):
    """Remove all quotas there are."""
    for each in all_quotas(side):
        ops = [(value["Key"], None) for value in each["Values"]]
        side.raw("AlterClientQuotas", 1, {"Entries": [entry(each["Entity"], *ops)]})
    settle(side)


@pytest.fixture(autouse=True)
def no_quotas(pair):
    def cleared(side):
        clear(side)
        return describe(side)

    pair.same(cleared)
    yield
    pair.same(cleared)


@pytest.mark.parametrize("case", ALTERED)
def test_alteration_of(pair, case):
    def scenario(side):
        seen = []
        for version in (0, 1):
            seen += [
                alter(side, ALTERED[case], version=version, ValidateOnly=True),
                describe(side, version=version),
                alter(side, ALTERED[case], version=version),
                describe(side, version=version),
            ]
            clear(side)
        return seen

    pair.same(scenario)


def test_several_entities_are_judged_each_for_itself(pair):
    def scenario(side):
        return [
            alter(
                side,
                entry(entity(user="alice"), BYTES),
                entry(entity(user=""), BYTES),
                entry(entity(client_id="a"), ("request_percentage", 5.0)),
            ),
            alter(
                side,
                entry(entity(user="bob"), BYTES),
                entry(entity(user="bob"), ("request_percentage", 5.0)),
                entry(entity(user="carol"), ("bytes", 5.0)),
                entry(entity(user="carol"), BYTES),
            ),
            alter(side),
            describe(side),
        ]

    pair.same(scenario)


def test_quotas_are_altered_one_by_one_and_removed(pair):
    def scenario(side):
        alice = entity(user="alice")
        return [
            alter(side, entry(alice, BYTES)),
            alter(side, entry(alice, ("request_percentage", 5.0), ("producer_byte_rate", 7.0))),
            describe(side),
            alter(side, entry(alice, ("producer_byte_rate", None), ("consumer_byte_rate", 9.0))),
            describe(side),
            alter(side, entry(alice, ("request_percentage", None), ("consumer_byte_rate", None))),
            describe(side),
        ]

    pair.same(scenario)


EXACT, DEFAULT, ANY = 0, 1, 2
FILTERS = {
    "everything": [],
    "a user": [("user", EXACT, "alice")],
    "a user that has none": [("user", EXACT, "nobody")],
    "an empty user": [("user", EXACT, "")],
    "the default user": [("user", DEFAULT, None)],
    "any user": [("user", ANY, None)],
    "any client id": [("client-id", ANY, None)],
    "any user with any client id": [("user", ANY, None), ("client-id", ANY, None)],
    "a user with the default client id": [("user", EXACT, "alice"), ("client-id", DEFAULT, None)],
    "any address": [("ip", ANY, None)],
    "the default address": [("ip", DEFAULT, None)],
    "an address": [("ip", EXACT, "10.0.0.1")],
    "an address and a user": [("ip", ANY, None), ("user", ANY, None)],
    "a type twice": [("user", ANY, None), ("user", DEFAULT, None)],
    "an unknown type": [("group", ANY, None)],
    "an empty type": [("", ANY, None)],
    "an unknown match": [("user", 3, None)],
    "a negative match": [("user", -1, None)],
    "an exact match without a name": [("user", EXACT, None)],
    "a default with a name": [("user", DEFAULT, "alice")],
    "any with a name": [("user", ANY, "alice")],
}


@pytest.mark.parametrize("case", FILTERS)
def test_a_filter_for(pair, case):
    def scenario(side):
        alter(
            side,
            entry(entity(user="alice"), BYTES),
            entry(entity(user=None), BYTES),
            entry(entity(user="alice", client_id="a"), BYTES, ("request_percentage", 12.5)),
            entry(entity(user="alice", client_id=None), BYTES),
            entry(entity(user=None, client_id="a"), BYTES),
            entry(entity(client_id="a"), BYTES),
            entry(entity(client_id=None), BYTES),
            entry(entity(ip="10.0.0.1"), ("connection_creation_rate", 5.0)),
            entry(entity(ip=None), ("connection_creation_rate", 5000.0)),
        )
        return [
            describe(side, *FILTERS[case], strict=strict, version=version)
            for version in (0, 1)
            for strict in (False, True)
        ]

    pair.same(scenario)
