"""Requests that carry their own credentials: who they are, what is remembered, and what failing costs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kbroker.authentication.credentials import Identity, LoginRefused, RequestLogins
from kbroker.authentication.opening import open_logins
from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.pending import Pending
from kbroker.security.audit import AuditLog
from kbroker.security.principal import Principal
from kbroker.security.scram_credentials import of_password, random_salt
from kbroker.storage.worker import InlineWorker
from tests.handlers import logged_in
from tests.handlers.conftest import Cluster

from .provider import Provider

LISTENER = "listener.name.sasl_plaintext."
HOST = "10.0.0.7"
ALICE = Principal("User", "alice")


class Clocked:
    """A scheduler whose time a test lets pass."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.waiting: list[tuple[int, Any]] = []

    def after(self, delay_ms: int, callback: Any) -> Any:
        entry = (self.now_ms + delay_ms, callback)
        self.waiting.append(entry)
        return lambda: self.waiting.remove(entry)

    def soon(self, callback: Any) -> None:
        callback()

    def pass_time(self, cluster: Cluster, ms: int) -> None:
        self.now_ms += ms
        cluster.now_ms += ms
        for entry in [each for each in self.waiting if each[0] <= self.now_ms]:
            self.waiting.remove(entry)
            entry[1]()


class CountingWorker(InlineWorker):
    def __init__(self) -> None:
        self.checks = 0

    def run(self, function: Any) -> Any:
        self.checks += 1
        return InlineWorker.run(self, function)


class SlowWorker:
    """Does nothing before it is asked to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Any, Pending[Any]]] = []

    def run(self, function: Any) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self.waiting.append((function, pending))
        return pending


class Audit:
    """The events of logins."""

    login = AuditLog.login

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def _add(self, level: int, event: dict[str, Any]) -> None:
        self.events.append(event)

    def _add_unless_repeated(self, event: dict[str, Any]) -> None:
        self.events.append(event)


@pytest.fixture
def settings() -> dict[str, str]:
    return logged_in.SETTINGS | {"kbroker.users": "carol:hunter2"}


@pytest.fixture
def scheduler(cluster: Cluster) -> Clocked:
    cluster.broker.scheduler = cluster.scheduler = Clocked()  # type: ignore[assignment]
    return cluster.scheduler  # type: ignore[return-value]


@pytest.fixture
def worker(cluster: Cluster) -> CountingWorker:
    worker = CountingWorker()
    cluster.broker.worker = worker
    return worker


@pytest.fixture
def audit(cluster: Cluster) -> Audit:
    cluster.broker.audit = audit = Audit()  # type: ignore[assignment]
    return audit


@pytest.fixture
def logins(cluster: Cluster, scheduler: Clocked, worker: CountingWorker, audit: Audit) -> RequestLogins:
    return RequestLogins(open_logins(cluster.broker)["SASL_PLAINTEXT"])


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def put(cluster: Cluster, name: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
    credential = of_password(mechanism, password, random_salt())
    cluster.broker.users.save({f"{mechanism}/{name}": credential.to_text(mechanism)})


def identified(answer: Identity | Pending[Identity]) -> Identity:
    return answer.result() if isinstance(answer, Pending) else answer


def refused(cluster: Cluster, answer: Any) -> LoginRefused:
    """What is heard once the wait is over, and not before."""
    assert isinstance(answer, Pending)
    assert not answer.done
    cluster.scheduler.pass_time(cluster, 100)  # type: ignore[attr-defined]
    with pytest.raises(LoginRefused) as failure:
        answer.result()
    return failure.value


# who it is


def test_users_of_all_three_places_have_their_names(cluster: Cluster, logins: RequestLogins) -> None:
    put(cluster, "bob", "stored")
    for name, password in (("alice", "alice-secret"), ("bob", "stored"), ("carol", "hunter2")):
        identity = identified(logins.identify(basic(name, password), HOST))
        assert identity == Identity(Principal("User", name), "Basic")


def test_the_scheme_may_be_written_in_any_case(logins: RequestLogins) -> None:
    given = basic("alice", "alice-secret").replace("Basic ", "bASIC  ")
    assert identified(logins.identify(given, HOST)).principal == ALICE


@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
def test_a_password_of_other_letters_is_taken_in_both_charsets(
    cluster: Cluster, logins: RequestLogins, charset: str
) -> None:
    put(cluster, "zoë", "gänse:füßchen")
    given = base64.b64encode("zoë:gänse:füßchen".encode(charset)).decode()
    assert identified(logins.identify(f"Basic {given}", HOST)).principal.name == "zoë"


@pytest.mark.parametrize(
    "authorization",
    [
        basic("alice", "wrong"),
        basic("nobody", "alice-secret"),
        basic("alice", ""),
        basic("", "alice-secret"),
        "Basic " + base64.b64encode(b"alice").decode(),
        "Basic !!!",
        "Basic",
        "Basic é",
        "",
        " ",
        "Bearer x.y.z",
        "Digest username=alice",
        "alice-secret",
    ],
)
def test_what_is_wrong_is_refused_after_the_wait(
    cluster: Cluster, logins: RequestLogins, audit: Audit, authorization: str
) -> None:
    refusal = refused(cluster, logins.identify(authorization, HOST))
    assert not refusal.busy
    (event,) = audit.events
    assert (event["outcome"], event["address"], event["principal"]) == ("failure", HOST, "unknown")
    assert "secret" not in json.dumps(event)
    assert "secret" not in str(refusal)


def test_wrong_names_and_wrong_passwords_sound_the_same(cluster: Cluster, logins: RequestLogins) -> None:
    told = {
        str(refused(cluster, logins.identify(basic(name, "wrong"), HOST)))
        for name in ("alice", "carol", "nobody")
    }
    assert len(told) == 1


def test_failures_wait_longer_and_longer_and_a_right_password_does_not(
    cluster: Cluster, logins: RequestLogins, scheduler: Clocked
) -> None:
    for _ in range(10):
        refused(cluster, logins.identify(basic("alice", "wrong"), HOST))
    late = logins.identify(basic("alice", "wrong"), HOST)
    assert isinstance(late, Pending)
    scheduler.pass_time(cluster, 199)
    assert not late.done
    assert identified(logins.identify(basic("alice", "alice-secret"), HOST)).principal == ALICE
    refused(cluster, logins.identify(basic("alice", "wrong"), "10.0.0.8"))
    assert late.done


# which of them count


def test_what_is_offered_follows_the_mechanisms(cluster: Cluster, logins: RequestLogins) -> None:
    assert logins.schemes == ["Basic"]
    for mechanisms, schemes in (
        ("OAUTHBEARER", ["Bearer"]),
        ("OAUTHBEARER,PLAIN", ["Basic", "Bearer"]),
        ("SCRAM-SHA-256", []),
    ):
        alter(cluster, "sasl.enabled.mechanisms", mechanisms)
        assert logins.schemes == schemes


def test_without_tls_a_scram_user_sends_no_password(cluster: Cluster, logins: RequestLogins) -> None:
    put(cluster, "bob", "stored")
    alter(cluster, "sasl.enabled.mechanisms", "SCRAM-SHA-256")
    refused(cluster, logins.identify(basic("bob", "stored"), HOST))


def test_within_tls_a_scram_user_does_but_one_of_plain_alone_does_not(
    cluster: Cluster, scheduler: Clocked
) -> None:
    listener = open_logins(cluster.broker)["SASL_PLAINTEXT"]
    listener.security_protocol = "SASL_SSL"
    logins = RequestLogins(listener)
    alter(cluster, "sasl.enabled.mechanisms", "SCRAM-SHA-512")
    put(cluster, "bob", "of-256")
    refused(cluster, logins.identify(basic("bob", "of-256"), HOST))
    put(cluster, "bob", "of-512", "SCRAM-SHA-512")
    assert identified(logins.identify(basic("bob", "of-512"), HOST)).principal.name == "bob"
    refused(cluster, logins.identify(basic("bob", "of-256"), HOST))
    refused(cluster, logins.identify(basic("alice", "alice-secret"), HOST))


def test_a_delegation_token_logs_in_its_owner_until_it_ends(cluster: Cluster, logins: RequestLogins) -> None:
    tokens = cluster.broker.delegation_tokens
    token = tokens.create(ALICE, ALICE, [], -1, cluster.now_ms).result()
    given = basic(token.token_id, tokens.password_of(token))
    assert identified(logins.identify(given, HOST)) == Identity(ALICE, "Basic", token.expires_ms, True)
    refused(cluster, logins.identify(basic(token.token_id, "x"), HOST))
    tokens.expire(tokens.hmac_of(token), ALICE, -1, cluster.now_ms).result()
    refused(cluster, logins.identify(given, HOST))


# what is remembered


def test_a_right_password_is_checked_once(
    cluster: Cluster, logins: RequestLogins, worker: CountingWorker
) -> None:
    before = worker.checks
    for _ in range(5):
        identified(logins.identify(basic("carol", "hunter2"), HOST))
    assert worker.checks == before + 1
    assert "hunter2" not in repr(logins._known)


def test_it_is_forgotten_with_a_changed_password(cluster: Cluster, logins: RequestLogins) -> None:
    put(cluster, "bob", "old")
    identified(logins.identify(basic("bob", "old"), HOST))
    put(cluster, "bob", "new")
    refused(cluster, logins.identify(basic("bob", "old"), HOST))
    identified(logins.identify(basic("bob", "new"), HOST))
    cluster.broker.users.save({"SCRAM-SHA-256/bob": None})
    refused(cluster, logins.identify(basic("bob", "new"), HOST))


def test_a_stored_user_hides_one_given_at_the_start(cluster: Cluster, logins: RequestLogins) -> None:
    identified(logins.identify(basic("carol", "hunter2"), HOST))
    put(cluster, "carol", "stored")
    refused(cluster, logins.identify(basic("carol", "hunter2"), HOST))


def test_it_is_forgotten_with_altered_settings(cluster: Cluster, logins: RequestLogins) -> None:
    identified(logins.identify(basic("alice", "alice-secret"), HOST))
    module = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="other";'
    alter(cluster, f"{LISTENER}plain.sasl.jaas.config", module)
    refused(cluster, logins.identify(basic("alice", "alice-secret"), HOST))
    identified(logins.identify(basic("alice", "other"), HOST))


def test_what_is_remembered_is_bounded(
    cluster: Cluster, logins: RequestLogins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbroker.authentication.credentials._MOST_REMEMBERED", 2)
    for name in ("a", "b", "c"):
        put(cluster, name, "pw")
    for name in ("a", "b", "c"):
        identified(logins.identify(basic(name, "pw"), HOST))
    assert len(logins._known) == 2


def test_the_audit_log_hears_once_of_an_address(
    cluster: Cluster, logins: RequestLogins, audit: Audit, scheduler: Clocked
) -> None:
    def told() -> list[str]:
        return [event["address"] for event in audit.events]

    for host in (HOST, HOST, "10.0.0.8", HOST):
        identified(logins.identify(basic("carol", "hunter2"), host))
    assert told() == [HOST, "10.0.0.8"]
    assert audit.events[0]["mechanism"] == "Basic"
    assert audit.events[0]["principal"] == "User:carol"
    scheduler.pass_time(cluster, 300_000)
    identified(logins.identify(basic("carol", "hunter2"), HOST))
    assert told() == [HOST, "10.0.0.8", HOST]


# tokens


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


class TestBearer:
    @pytest.fixture
    def settings(self, provider: Provider, tmp_path: Path) -> dict[str, str]:
        return logged_in.SETTINGS | {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": provider.write(tmp_path / "jwks.json"),
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.clock.skew.seconds": "0",
        }

    def token(self, cluster: Cluster, provider: Provider, **claims: Any) -> str:
        now = cluster.now_ms // 1000
        return "Bearer " + provider.token(iat=now, **{"exp": now + 60, **claims})

    def test_a_token_is_its_subject_until_it_expires(
        self, cluster: Cluster, logins: RequestLogins, provider: Provider, scheduler: Clocked
    ) -> None:
        token = self.token(cluster, provider)
        expires_ms = (cluster.now_ms // 1000 + 60) * 1000
        for _ in range(2):
            identity = identified(logins.identify(token, HOST))
            assert identity == Identity(Principal("User", "joe"), "Bearer", expires_ms)
        scheduler.pass_time(cluster, 60_000)
        refused(cluster, logins.identify(token, HOST))

    def test_a_wrong_token_is_refused_after_the_wait(
        self, cluster: Cluster, logins: RequestLogins, provider: Provider, audit: Audit
    ) -> None:
        for token in (
            self.token(cluster, provider, aud="other"),
            self.token(cluster, provider, key=provider.stranger),
            "Bearer",
            "Bearer " + "x" * 10_000,
        ):
            refusal = refused(cluster, logins.identify(token, HOST))
            assert refusal.scheme == "Bearer"
            assert not any(part in json.dumps(audit.events) for part in token.split(" ")[1:])

    def test_no_password_is_a_token(self, cluster: Cluster, logins: RequestLogins) -> None:
        refused(cluster, logins.identify(basic("alice", "alice-secret"), HOST))

    def test_a_session_ends_with_its_token(
        self, cluster: Cluster, logins: RequestLogins, provider: Provider, scheduler: Clocked
    ) -> None:
        ended: list[str] = []
        identity = identified(logins.identify(self.token(cluster, provider), HOST))
        logins.watch(identity, ended.append)
        assert identity.expires_ms is not None
        scheduler.pass_time(cluster, identity.expires_ms - cluster.now_ms - 1)
        assert ended == []
        scheduler.pass_time(cluster, 1)
        assert ended == ["the token has expired"]


# sessions


def test_a_session_ends_when_the_password_changes(
    cluster: Cluster, logins: RequestLogins, scheduler: Clocked
) -> None:
    put(cluster, "bob", "old")
    ended: list[str] = []
    identity = identified(logins.identify(basic("bob", "old"), HOST))
    timers = len(scheduler.waiting)
    logins.watch(identity, ended.append)
    call_off = logins.watch(identity, lambda _: pytest.fail("it was called off"))
    call_off()
    put(cluster, "alice", "another")
    assert ended == []
    put(cluster, "bob", "new")
    assert ended == ["the password was changed"]
    put(cluster, "bob", "newer")
    assert len(ended) == 1
    assert len(scheduler.waiting) == timers


class TestLimited:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        return logged_in.SETTINGS | {f"{LISTENER}plain.connections.max.reauth.ms": "7200001"}

    def test_a_session_ends_with_its_time(
        self, cluster: Cluster, logins: RequestLogins, scheduler: Clocked
    ) -> None:
        ended: list[str] = []
        logins.watch(identified(logins.identify(basic("alice", "alice-secret"), HOST)), ended.append)
        for _ in range(2):
            scheduler.pass_time(cluster, 3_600_000)
        assert ended == []
        scheduler.pass_time(cluster, 1)
        assert ended == ["the session has lasted for connections.max.reauth.ms"]


# what failing costs


class TestFlood:
    @pytest.fixture
    def settings(self) -> dict[str, str]:
        settings = {
            name: value for name, value in logged_in.SETTINGS.items() if not name.startswith("delegation.")
        }
        return settings | {
            "kbroker.users": "carol:hunter2",
            "kbroker.max.unauthenticated.connections": "100",
        }

    @pytest.fixture
    def slow(self, cluster: Cluster, scheduler: Clocked) -> tuple[RequestLogins, SlowWorker]:
        worker = SlowWorker()
        listener = open_logins(cluster.broker)["SASL_PLAINTEXT"]  # its users are hashed
        listener.all.passwords._worker = worker
        return RequestLogins(listener), worker

    def test_who_floods_from_one_address_shuts_out_itself(
        self, cluster: Cluster, slow: tuple[RequestLogins, SlowWorker], scheduler: Clocked
    ) -> None:
        logins, worker = slow
        honest = logins.identify(basic("carol", "hunter2"), "10.0.0.8")
        guesses = [logins.identify(basic("carol", f"guess-{n}"), HOST) for n in range(500)]
        assert len(logins._waiting) <= 100
        assert isinstance(honest, Pending)
        assert not honest.done
        while worker.waiting:
            function, pending = worker.waiting.pop(0)
            pending.resolve(function())
        assert honest.result().principal.name == "carol"
        scheduler.pass_time(cluster, 2000)
        busy = 0
        for guess in guesses:
            assert isinstance(guess, Pending)
            with pytest.raises(LoginRefused) as failure:
                guess.result()
            busy += failure.value.busy
        assert 400 <= busy < 500
        assert not logins._waiting
        assert not scheduler.waiting

    def test_nothing_is_left_of_those_who_go(
        self, cluster: Cluster, slow: tuple[RequestLogins, SlowWorker], scheduler: Clocked
    ) -> None:
        logins, _ = slow
        checked = logins.identify(basic("carol", "guess"), HOST)
        late = logins.identify("Basic !!!", HOST)
        for attempt in (checked, late):
            assert isinstance(attempt, Pending)
            attempt.abandon()
        assert not logins._waiting
        assert not scheduler.waiting


def alter(cluster: Cluster, name: str, value: str) -> None:
    cluster.broker.dynamic_configs.alter(ResourceType.BROKER, "1", [Change(name, Operation.SET, value)])
