"""Key stores and trust stores of a listener, exchanged while it is open: what is taken, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.harness.brokers import APACHE, KBROKER, Server, selected_brokers
from compat.harness.side import Side
from compat.harness.tls import TlsKafka, TlsKbroker, store_settings
from tests.support.certificates import HOSTS, Certificates

BROKER, SET, DELETE = 4, 0, 1
LISTENER = "listener.name.ssl."
LOCATION, KIND, PASSWORD = (f"{LISTENER}ssl.keystore.{name}" for name in ("location", "type", "password"))
TRUSTED = f"{LISTENER}ssl.truststore.location"


class Stores:
    def __init__(self, directory: Path) -> None:
        self.certificates = Certificates(directory)
        issue, store = self.certificates.authority.issue_broker, self.certificates.store
        self.same = str(store("same", issue(HOSTS)))
        self.more_names = str(store("more", issue([*HOSTS, "example.org"])))
        self.fewer_names = str(store("fewer", issue(["localhost"])))
        self.another_name = str(store("another", issue(HOSTS, "somebody else")))
        self.empty = str(directory / "empty.pem")
        Path(self.empty).write_text("nothing")
        self.other_trusted = str(Certificates(directory / "other", "another CA").ca)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def brokers(stores: Stores) -> Iterator[tuple[Server, ...]]:
    settings = store_settings(stores.certificates)
    with ExitStack() as stack:
        servers: list[Server] = []
        if KBROKER in selected_brokers():
            servers.append(stack.enter_context(TlsKbroker(settings)))
        if APACHE in selected_brokers():
            servers.append(stack.enter_context(TlsKafka(settings)))
        yield tuple(servers)


def altered(*changes: tuple[str, int, str | None]) -> Callable[[Side], Any]:
    def ask(side: Side) -> Any:
        configs = [
            {"Name": name, "ConfigOperation": operation, "Value": value} for name, operation, value in changes
        ]
        resource = {"ResourceType": BROKER, "ResourceName": str(side.node_id), "Configs": configs}
        return side.ask("IncrementalAlterConfigs", 1, {"Resources": [resource], "ValidateOnly": False})

    return ask


def test_key_stores_are_taken_or_refused_as_in_kafka(stores: Stores, pair: Pair) -> None:
    for about, value in (
        ("another key of the same name", stores.same),
        ("the same file once more", stores.same),
        ("more alternative names", stores.more_names),
        ("fewer alternative names", stores.fewer_names),
        ("another distinguished name", stores.another_name),
        ("a file that is not there", "/nowhere.pem"),
        ("a file with nothing in it", stores.empty),
    ):
        pair.same(altered((LOCATION, SET, value)), about)
    pair.same(altered((KIND, SET, "JKS")), "a type that needs a password")
    pair.same(altered((PASSWORD, SET, "secret")), "a password for PEM")
    pair.same(altered((LOCATION, DELETE, None)), "back to a store with fewer names")


def test_settings_that_are_not_of_a_listener_are_taken_or_refused_as_in_kafka(
    stores: Stores, pair: Pair
) -> None:
    pair.same(altered(("ssl.keystore.location", SET, stores.same)), "a store")
    pair.same(altered(("ssl.client.auth", SET, "requested")), "who must show a certificate")
    pair.same(altered(("ssl.client.auth", DELETE, None)), "nobody again")
    pair.same(altered(("ssl.principal.mapping.rules", SET, "DEFAULT")), "rules")
    other = "listener.name.elsewhere.ssl.keystore.location"
    pair.same(altered((other, SET, "/nowhere.pem")), "a listener that there is none of")
    pair.same(altered((other, DELETE, None)), "no longer")


def test_trust_stores_are_taken_or_refused_as_in_kafka(stores: Stores, pair: Pair) -> None:
    pair.same(altered((TRUSTED, SET, stores.other_trusted)), "another one")
    pair.same(altered((TRUSTED, SET, "/nowhere.pem")), "a file that is not there")
    pair.same(altered((TRUSTED, DELETE, None)), "the one of the start")
    pair.same(altered((f"{LISTENER}ssl.client.auth", SET, "required")), "who must show a certificate")
    pair.same(altered((f"{LISTENER}ssl.client.auth", SET, "maybe")), "a word that makes no sense")
    pair.same(altered((f"{LISTENER}ssl.client.auth", DELETE, None)), "nobody again")
