"""Delegation tokens: created, renewed, expired, described, and logged in with."""

from __future__ import annotations

import base64
import time
from typing import Any

from compat.differential.pair import Pair
from compat.harness import sasl
from compat.harness.sasl import ALICE, CLOSED, Client
from compat.harness.side import Side
from compat.harness.waiting import eventually

HOUR_MS = 3_600_000


class Tokens:
    """Answers with what differs from run to run taken out: ids, HMACs, and the exact times."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.admin = sasl.logged_in(side.server.bootstrap)
        self.alice = sasl.logged_in(side.server.bootstrap, *ALICE)
        self.seen: list[Any] = []
        self.issued_ms = 0

    def create(self, client: Client, version: int = 3, **values: Any) -> dict[str, Any]:
        given = {"Renewers": [], "MaxLifetimeMs": -1}
        if version >= 3:
            given |= {"OwnerPrincipalType": None, "OwnerPrincipalName": None}
        answer: dict[str, Any] = client.ask("CreateDelegationToken", version, given | values)
        self.issued_ms = answer["IssueTimestampMs"]
        self._see("create", answer)
        return answer

    def renew(self, client: Client, mac: bytes, period_ms: int, version: int = 2) -> None:
        self._see(
            "renew", client.ask("RenewDelegationToken", version, {"Hmac": mac, "RenewPeriodMs": period_ms})
        )

    def expire(self, client: Client, mac: bytes, period_ms: int, version: int = 2) -> None:
        values = {"Hmac": mac, "ExpiryTimePeriodMs": period_ms}
        self._see("expire", client.ask("ExpireDelegationToken", version, values))

    def described(self, client: Client, owners: list[str] | None, version: int = 3) -> list[dict[str, Any]]:
        asked = None
        if owners is not None:
            asked = [{"PrincipalType": "User", "PrincipalName": owner} for owner in owners]
        answer = client.ask("DescribeDelegationToken", version, {"Owners": asked})
        found: list[dict[str, Any]] = answer["Tokens"]
        return found

    def until_known(self, token: dict[str, Any]) -> None:
        """A Kafka broker hears of it from its controller."""
        ids = lambda: [each["TokenId"] for each in self.described(self.admin, None)]  # noqa: E731
        eventually(lambda: token["TokenId"] in ids())

    def log_in(self, token: dict[str, Any], mechanism: str = "SCRAM-SHA-256") -> tuple[Client, Any]:
        client = Client(self.side.server.bootstrap)
        password = base64.b64encode(token["Hmac"]).decode()
        return client, client.scram(mechanism, token["TokenId"], password, ",tokenauth=true")

    def _see(self, what: str, answer: dict[str, Any]) -> None:
        shown = {}
        for name, value in answer.items():
            if name in ("Hmac", "TokenId"):
                value = f"{len(value)} long"
            elif name.endswith("TimestampMs") and value > 0:
                value = f"{round((value - self.issued_ms) / HOUR_MS)} hours"
            shown[name] = value
        self.seen.append([what, shown])

    def close(self) -> list[Any]:
        self.admin.close()
        self.alice.close()
        return self.seen


def test_tokens_are_created(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        tokens = Tokens(side)
        renewer = {"PrincipalType": "User", "PrincipalName": "alice"}
        for version in (1, 2, 3):
            tokens.create(tokens.admin, version, Renewers=[renewer])
        tokens.create(tokens.admin, MaxLifetimeMs=2 * HOUR_MS)
        tokens.create(tokens.admin, MaxLifetimeMs=1 << 62)
        tokens.create(tokens.admin, Renewers=[renewer, {"PrincipalType": "Group", "PrincipalName": "g"}])
        tokens.create(tokens.admin, OwnerPrincipalType="User", OwnerPrincipalName="alice")
        tokens.create(tokens.admin, OwnerPrincipalType="User", OwnerPrincipalName="")
        return tokens.close()

    pair.same(scenario)


def test_tokens_are_renewed_and_expire(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        tokens = Tokens(side)
        token = tokens.create(tokens.admin)
        tokens.until_known(token)
        mac = token["Hmac"]
        for period_ms in (-1, 0, 2 * HOUR_MS, 1 << 50):
            tokens.renew(tokens.admin, mac, period_ms)
        tokens.renew(tokens.alice, mac, -1)
        tokens.renew(tokens.admin, b"unknown", -1)
        tokens.renew(tokens.admin, mac, HOUR_MS, 1)
        for period_ms in (2 * HOUR_MS, 1 << 50):
            tokens.expire(tokens.admin, mac, period_ms)
        tokens.expire(tokens.alice, mac, -1)
        tokens.expire(tokens.admin, b"unknown", -1)
        tokens.expire(tokens.admin, mac, 0, 1)
        eventually(lambda: _expired(tokens, mac))
        tokens.renew(tokens.admin, mac, -1)
        tokens.expire(tokens.admin, mac, 5)
        tokens.expire(tokens.admin, mac, -1)
        eventually(lambda: token["TokenId"] not in str(tokens.described(tokens.admin, None)))
        tokens.expire(tokens.admin, mac, -1)
        return tokens.close()

    pair.same(scenario)


def _expired(tokens: Tokens, mac: bytes) -> bool:
    answer = tokens.admin.ask("RenewDelegationToken", 2, {"Hmac": mac, "RenewPeriodMs": 1})
    return bool(answer["ErrorCode"])


def _known_to_have_expired(tokens: Tokens, token: dict[str, Any]) -> bool:
    """The millisecond in which it expires still belongs to its life."""
    found = [each for each in tokens.described(tokens.admin, None) if each["TokenId"] == token["TokenId"]]
    return all(each["ExpiryTimestamp"] < time.time_ns() // 1_000_000 for each in found)


def test_tokens_are_described(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        tokens = Tokens(side)
        renewers = [{"PrincipalType": "User", "PrincipalName": "alice"}]
        token = tokens.create(tokens.admin, Renewers=renewers)
        tokens.until_known(token)
        seen = []
        for version in (1, 2, 3):
            for owners in (None, [], ["admin"], ["alice"], ["nobody"]):
                for client in (tokens.admin, tokens.alice):
                    found = tokens.described(client, owners, version)
                    seen.append([each["Renewers"] for each in found if each["TokenId"] == token["TokenId"]])
        tokens.close()
        return seen

    pair.same(scenario)


def test_who_logs_in_by_a_token_is_its_owner_and_makes_no_others(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        tokens = Tokens(side)
        token = tokens.create(tokens.admin)
        tokens.until_known(token)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            client, answer = tokens.log_in(token, mechanism)
            answer["SessionLifetimeMs"] = round(answer["SessionLifetimeMs"] / HOUR_MS)
            tokens.seen.append([mechanism, answer, client.is_in()])
            tokens.create(client)
            tokens.renew(client, token["Hmac"], -1)
            tokens.expire(client, token["Hmac"], -1)
            tokens.seen.append(client.ask("DescribeDelegationToken", 3, {"Owners": None}))
            client.close()
        forged = token | {"Hmac": bytes(64)}
        client, answer = tokens.log_in(forged)
        tokens.seen.append([answer, client.is_in()])
        client.close()
        return tokens.close()

    pair.same(scenario)


def test_an_expired_token_lets_nobody_in(pair: Pair) -> None:
    def scenario(side: Side) -> Any:
        tokens = Tokens(side)
        token = tokens.create(tokens.admin)
        tokens.until_known(token)
        tokens.expire(tokens.admin, token["Hmac"], 0)
        eventually(lambda: _known_to_have_expired(tokens, token))
        client, answer = tokens.log_in(token)
        inside = answer != CLOSED and client.is_in()
        client.close()
        tokens.close()
        return inside

    pair.same(scenario)
