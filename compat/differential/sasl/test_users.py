"""SCRAM users: altered and described, with every mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.differential.pair import Pair
from compat.harness import sasl
from compat.harness.sasl import upsertion
from compat.harness.side import Side
from compat.harness.waiting import eventually


def alter(
    side: Side, upsertions: list[dict[str, Any]], deletions: list[tuple[str, int]] | None = None
) -> Any:
    admin = sasl.logged_in(side.server.bootstrap)
    gone = [{"Name": name, "Mechanism": mechanism} for name, mechanism in deletions or []]
    answer = admin.ask("AlterUserScramCredentials", 0, {"Deletions": gone, "Upsertions": upsertions})
    admin.close()
    return sorted(answer["Results"], key=lambda result: str(result["User"]))


def described(side: Side, names: list[str] | None) -> Any:
    admin = sasl.logged_in(side.server.bootstrap)
    asked = None if names is None else [{"Name": name} for name in names]
    answer = admin.ask("DescribeUserScramCredentials", 0, {"Users": asked})
    admin.close()
    answer["Results"].sort(key=lambda result: str(result["User"]))
    for result in answer["Results"]:
        result["CredentialInfos"].sort(key=lambda info: int(info["Mechanism"]))
    return answer


def test_users_come_change_and_go(pair: Pair, unique: Callable[[str], str]) -> None:
    one, two = unique("one"), unique("two")

    def scenario(side: Side) -> Any:
        seen = [alter(side, [upsertion(one, "a"), upsertion(two, "b", 2)])]
        seen.append(alter(side, [upsertion(one, "a", 2, 8192)]))
        eventually(lambda: len(described(side, [one])["Results"][0]["CredentialInfos"]) == 2)
        seen.append(described(side, [one, two]))
        seen.append(alter(side, [], [(one, 1), (two, 2)]))
        eventually(lambda: described(side, [two])["Results"][0]["ErrorCode"] != 0)
        seen.append(described(side, [one, two]))
        return seen

    pair.same(scenario)


def test_users_that_cannot_be(pair: Pair, unique: Callable[[str], str]) -> None:
    name = unique("user")
    others = [unique("other") for _ in range(4)]

    def scenario(side: Side) -> Any:
        return [
            alter(
                side,
                [
                    upsertion("", "x"),
                    upsertion(others[0], "x", 0),
                    upsertion(others[1], "x", 3),
                    upsertion(others[2], "x", 1, 4095),
                    upsertion(others[3], "x", 2, 16385),
                ],
            ),
            alter(side, [upsertion(name, "x"), upsertion(name, "x", 2)]),
            alter(side, [upsertion(name, "x")], [(name, 1)]),
            alter(side, [], [(name, 1), (name, 1), ("", 1)]),
            alter(side, [upsertion(name, "x")]),
            alter(side, [upsertion(name, "x")], [(name, 1)]),
            alter(side, [], [(name, 2)]),
            alter(side, [], [(name, 7)]),
            alter(side, []),
        ]

    pair.same(scenario)


def test_users_that_are_not_described(pair: Pair) -> None:
    pair.same(lambda side: described(side, ["alice", "alice", "nobody", ""]))


def test_all_users_are_described(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        known = ("admin", "alice")
        return [
            [each for each in described(side, names)["Results"] if each["User"] in known]
            for names in (None, [])
        ]

    pair.same(scenario)
