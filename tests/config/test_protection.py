"""A setting that promises protection is honoured or refused, never taken in silence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.definition import to_text
from kbroker.config.errors import SettingError
from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.config.settings import Settings
from kbroker.protocol.errors import ApiError, ErrorCode

from .conftest import FakeBroker, catalog_with

PROMISES = {
    "allow.everyone.if.no.acl.found": "true",
    "alter.config.policy.class.name": "org.example.Policy",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "client.quota.callback.class": "org.example.Quotas",
    "connections.max.reauth.ms": "3600000",
    "create.topic.policy.class.name": "org.example.Policy",
    "delegation.token.secret.key": "secret",
    "max.connection.creation.rate": "0",
    "principal.builder.class": "org.example.Principals",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.jaas.config": "org.example.Login required;",
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "https://issuer.example",
    "sasl.oauthbearer.jwt.validator.class": "org.example.Validator",
    "sasl.server.callback.handler.class": "org.example.Callbacks",
    "ssl.engine.factory.class": "org.example.Engines",
    "super.users": "User:admin",
}
PROTECTIVE = {name: definition for name, definition in BROKER_CONFIGS.items() if definition.protects}


def refusal_of(tmp_path, text):
    path = tmp_path / "server.properties"
    path.write_text(text)
    with pytest.raises(SettingError) as error:
        Settings.load(path)
    return str(error.value)


def test_every_setting_that_promises_protection_is_tried_here():
    assert PROMISES.keys() == PROTECTIVE.keys()
    assert not any(definition.applies for definition in PROTECTIVE.values())


@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_that_is_not_kept_is_refused_in_one_line_that_says_what_to_do(tmp_path, name):
    assert refusal_of(tmp_path, f"{name}={PROMISES[name]}\n") == (
        f"{name}: kbroker does not protect in this way; to run without, remove it"
    )


def test_all_of_them_are_named_at_once(tmp_path):
    text = "super.users=User:admin\nauthorizer.class.name=a.B\nnum.io.threads=2\n"
    assert refusal_of(tmp_path, text).startswith("authorizer.class.name, super.users: ")


@pytest.mark.parametrize("definition", PROTECTIVE.values(), ids=lambda definition: definition.name)
def test_a_setting_at_its_default_promises_nothing(definition):
    text = to_text(definition.default)
    assert Settings.load(flags={definition.name: text or ""}).static == {definition.name: text or ""}


def test_a_stronger_layer_may_take_a_promise_back(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("authorizer.class.name=a.B\n")
    assert Settings.load(path, flags={"authorizer.class.name": ""})["authorizer.class.name"] == ""


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.plaintext.ssl.engine.factory.class",
        "listener.name.plaintext.plain.sasl.jaas.config",
        "listener.name.plaintext.scram-sha-256.sasl.server.callback.handler.class",
    ],
)
def test_a_promise_for_one_listener_is_refused_too(tmp_path, name):
    assert refusal_of(tmp_path, f"{name}=required\n").startswith(f"{name}: ")


def test_a_promise_for_a_listener_that_is_not_opened_is_only_mentioned(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("listener.name.controller.sasl.jaas.config=required\n")
    assert "listener.name.controller.sasl.jaas.config" in Settings.load(path).warning


@pytest.mark.parametrize(
    "name", ["ssl.engine.factory.class", "sasl.enabled.mechanisms", "listener.name.x.sasl.jaas.config"]
)
def test_a_promise_made_at_run_time_is_refused_and_not_stored(broker, name):
    change = Change(name, Operation.SET, PROMISES.get(name, "org.example.Login required;"))
    with pytest.raises(ApiError) as error:
        broker.dynamic_configs.alter(ResourceType.BROKER, "1", [change])
    assert error.value.code is ErrorCode.INVALID_REQUEST
    assert error.value.message == f"{name}: kbroker does not protect in this way; to run without, remove it"
    assert broker.catalog.snapshot().configs == []


def test_a_promise_stored_earlier_is_told_and_stands_in_nobodys_way(caplog):
    broker = FakeBroker(catalog=catalog_with((ResourceType.BROKER, "1", "ssl.engine.factory.class", "a.B")))
    assert "without effect: ssl.engine.factory.class: " in caplog.text
    broker.dynamic_configs.alter(ResourceType.BROKER, "1", [Change("log.retention.ms", Operation.SET, "5")])
    broker.dynamic_configs.alter(
        ResourceType.BROKER, "1", [Change("ssl.engine.factory.class", Operation.DELETE, None)]
    )
    assert broker.settings["ssl.engine.factory.class"] is None


def test_the_broker_does_not_start_with_a_promise_that_it_does_not_keep(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n")
    command = [sys.executable, "-m", "kbroker", "serve", "--port", "0", "--in-memory", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "kbroker: authorizer.class.name: kbroker does not protect in this way; to run without, remove it\n"
    )
