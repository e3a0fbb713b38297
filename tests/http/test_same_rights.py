"""By HTTP a user may do what the same user may by Kafka's protocol, and is refused the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from kbroker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.authentication.sasl_client import plain
from tests.support.http_client import Answer, HttpClient
from tests.support.raw_client import RawClient
from tests.support.raw_topics import produce
from tests.support.server_process import ServerProcess

from .test_logins import basic

ALLOW, LITERAL = 3, 3
TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS = 3, 4, 5, 6, 7, 8, 10
USERS = ("admin", "alice", "bob", "carol")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    users = [part for name in USERS for part in ("--user", f"{name}:{name}-pw")]
    acls = ("--set", "authorizer.class.name=kbroker", "--set", "super.users=User:admin")
    with ServerProcess("--in-memory", "--http-port", "0", *users, *acls) as process:
        with kafka(process, "admin") as admin:
            for topic in ("orders", "payroll"):
                admin.ask(CreateTopicsRequest([CreatableTopic(topic, 1, 1)]), 5)
            rights = [
                ("alice", TOPIC, "orders", READ),
                ("alice", TOPIC, "orders", WRITE),
                ("alice", GROUP, "shop", READ),
                ("bob", TOPIC, "orders", DESCRIBE),
                ("carol", CLUSTER, "kafka-cluster", CREATE),
                ("carol", TOPIC, "payroll", DESCRIBE_CONFIGS),
            ]
            creations = [
                AclCreation(type_, name, LITERAL, f"User:{user}", "*", operation, ALLOW)
                for user, type_, name, operation in rights
            ]
            assert all(not each.error_code for each in admin.ask(CreateAclsRequest(creations), 3).results)
        yield process


def kafka(server: ServerProcess, user: str) -> RawClient:
    client = server.client()
    assert plain(client, user, f"{user}-pw").error_code == 0
    return client


def _described(client: RawClient, topic: str) -> int:
    return int(client.ask(MetadataRequest([MetadataRequestTopic(name=topic)]), 5).topics[0].error_code)


def _offsets(client: RawClient, topic: str) -> int:
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=-1)])
    return int(client.ask(ListOffsetsRequest(-1, 0, [asked]), 5).topics[0].partitions[0].error_code)


def _configs(client: RawClient, topic: str) -> int:
    asked = DescribeConfigsRequest([DescribeConfigsResource(2, topic, None)])
    return int(client.ask(asked, 4).results[0].error_code)


def _created(client: RawClient, topic: str) -> int:
    new = CreateTopicsRequest([CreatableTopic(topic, 1, 1)], validate_only=True)
    return int(client.ask(new, 5).topics[0].error_code)


def _group(client: RawClient, group: str) -> int:
    return int(client.ask(DescribeGroupsRequest([group]), 5).groups[0].error_code)


def _deleted(client: RawClient, group: str) -> int:
    return int(client.ask(DeleteGroupsRequest([group]), 2).results[0].error_code)


Asked = Callable[[HttpClient, dict[str, str], str], Answer]

CASES: dict[str, tuple[Asked, Callable[[RawClient, str], int], tuple[str, ...]]] = {
    "describe": (
        lambda http, who, name: http.ask("GET", f"/topics/{name}", headers=who),
        _described,
        ("orders", "payroll"),
    ),
    "publish": (
        lambda http, who, name: http.ask("POST", f"/topics/{name}/partitions/0", b"x", who),
        lambda client, name: produce(client, name, 0, b"x"),
        ("orders", "payroll"),
    ),
    "offsets": (
        lambda http, who, name: http.ask("GET", f"/topics/{name}/partitions/0", headers=who),
        _offsets,
        ("orders", "payroll"),
    ),
    "configs": (
        lambda http, who, name: http.ask("GET", f"/topics/{name}/configs", headers=who),
        _configs,
        ("orders", "payroll"),
    ),
    "create": (
        lambda http, who, name: http.post("/topics", {"name": name}, who),
        _created,
        ("new-one",),
    ),
    "describe a group": (
        lambda http, who, name: http.ask("GET", f"/groups/{name}", headers=who),
        _group,
        ("shop", "other"),
    ),
    "delete a group": (
        lambda http, who, name: http.ask("DELETE", f"/groups/{name}", headers=who),
        _deleted,
        ("shop", "other"),
    ),
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("case", CASES)
def test_a_user_has_the_same_rights_by_both_ways(server: ServerProcess, case: str, user: str) -> None:
    asked, of_kafka, names = CASES[case]
    with HttpClient(server.url) as http, kafka(server, user) as client:
        for name in names:
            answer = asked(http, basic(user, f"{user}-pw"), name)
            code = ErrorCode(of_kafka(client, name))
            refused = code.name.endswith("AUTHORIZATION_FAILED")
            assert (answer.status == 403) == refused, (name, code, answer)
            if refused:
                assert answer.json["error"] == code.name
