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
    "alter.config.policy.class.name": "org.example.Policy",
    "client.quota.callback.class": "org.example.Quotas",
    "create.topic.policy.class.name": "org.example.Policy",
    "principal.builder.class": "org.example.Principals",
    "sasl.oauthbearer.jwt.validator.class": "org.example.Validator",
    "ssl.engine.factory.class": "org.example.Engines",
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
    text = "ssl.engine.factory.class=a.C\nprincipal.builder.class=a.B\nnum.io.threads=2\n"
    assert refusal_of(tmp_path, text).startswith("principal.builder.class, ssl.engine.factory.class: ")


@pytest.mark.parametrize("definition", PROTECTIVE.values(), ids=lambda definition: definition.name)
def test_a_setting_at_its_default_promises_nothing(definition):
    text = to_text(definition.default)
    assert Settings.load(flags={definition.name: text or ""}).static == {definition.name: text or ""}


@pytest.mark.parametrize("name", ["org.example.Authorizer", "kafka.security.authorizer.AclAuthorizer"])
def test_an_authorizer_that_kbroker_is_not_is_refused(tmp_path, name):
    assert f'authorizer.class.name: "{name}" is none of kbroker, ' in refusal_of(
        tmp_path, f"authorizer.class.name={name}\n"
    )


@pytest.mark.parametrize("users", ["admin", "User:admin;:x", "User:"])
def test_super_users_that_are_no_principals_are_refused(tmp_path, users):
    assert "super.users: " in refusal_of(tmp_path, f"super.users={users}\n")


def test_a_stronger_layer_may_take_a_promise_back(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("principal.builder.class=a.B\n")
    default = PROTECTIVE["principal.builder.class"].default
    flags = {"principal.builder.class": str(default)}
    assert Settings.load(path, flags=flags)["principal.builder.class"] == default


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.plaintext.ssl.engine.factory.class",
        "listener.name.plaintext.principal.builder.class",
        "listener.name.plaintext.oauthbearer.sasl.oauthbearer.jwt.validator.class",
    ],
)
def test_a_promise_for_one_listener_is_refused_too(tmp_path, name):
    assert refusal_of(tmp_path, f"{name}=required\n").startswith(f"{name}: ")


def test_a_promise_for_a_listener_that_is_not_opened_is_only_mentioned(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("listener.name.controller.principal.builder.class=a.B\n")
    assert "listener.name.controller.principal.builder.class" in Settings.load(path).warning


@pytest.mark.parametrize(
    "name",
    ["ssl.engine.factory.class", "principal.builder.class", "listener.name.x.ssl.engine.factory.class"],
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
    path.write_text("principal.builder.class=org.example.Principals\n")
    command = [sys.executable, "-m", "kbroker", "serve", "--port", "0", "--in-memory", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "kbroker: principal.builder.class: kbroker does not protect in this way; to run without, remove it\n"
    )
