"""Random ACLs, and what they let users do: the decisions of both brokers are the same.

Of the topics some have ACLs of their own, some are spoken of by prefixes or `*`, and some by nobody: of these
allow.everyone.if.no.acl.found decides.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from compat.differential.acls.users import (
    ADMIN,
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    ANONYMOUS,
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    IDEMPOTENT_WRITE,
    LITERAL,
    OPEN_UNTIL_THERE_ARE_ACLS,
    PREFIXED,
    READ,
    SETTINGS,
    TOPIC,
    WRITE,
    Door,
    User,
    acl,
)
from compat.differential.pair import Pair
from compat.harness.brokers import Server
from compat.harness.side import Side
from compat.harness.waiting import eventually

USERS = [User(f"user {number}", f"127.0.4.{number}") for number in (1, 2, 3)]
TOPICS = ["a", "ab", "abc", "abd", "b", "ba", "c", "cab", "d"]
NAMES = [*TOPICS, "*", "*a", "hardcode"]
REFUSED = 29


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {**SETTINGS, **OPEN_UNTIL_THERE_ARE_ACLS}


@pytest.fixture(scope="module")
def opened(brokers: tuple[Server, ...]) -> dict[str, Door]:
    doors = {server.name: Door(Side(server)) for server in brokers}
    for door in doors.values():
        door.create_acls([acl(CLUSTER, CLUSTER_NAME, ALL, ADMIN.host)])
        for topic in TOPICS[:-1]:
            door.side.create_topic(topic)
    return doors


def some_acls(chance: random.Random) -> list[dict[str, Any]]:
    return [
        acl(
            TOPIC,
            chance.choice(NAMES),
            chance.choice(
                [ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]
            ),
            chance.choice(["*", *(user.host for user in USERS)]),
            principal=chance.choice([ANONYMOUS, ANONYMOUS, "User:*", "User:other", "Group:ANONYMOUS"]),
            pattern=chance.choice([LITERAL, LITERAL, PREFIXED]),
            permission=chance.choice([ALLOW, ALLOW, DENY]),
        )
        for _ in range(chance.randrange(1, 16))
    ]


def replace_acls(door: Door, acls: list[dict[str, Any]]) -> None:
    about_topics = {
        "ResourceTypeFilter": TOPIC,
        "ResourceNameFilter": None,
        "PatternTypeFilter": ANY,
        "PrincipalFilter": None,
        "HostFilter": None,
        "Operation": ANY,
        "PermissionType": ANY,
    }

    def count() -> int:
        described = door.raw(ADMIN, "DescribeAcls", 3, about_topics)
        return sum(len(resource["Acls"]) for resource in described["Resources"])

    door.raw(ADMIN, "DeleteAcls", 3, {"Filters": [about_topics]})
    eventually(count, lambda found: found == 0)
    door.create_acls(acls)
    eventually(count, lambda found: found == len({repr(each) for each in acls}))


def by_topic(parts: list[dict[str, Any]], name: str = "Name", inner: str = "Partitions") -> dict[str, bool]:
    return {part[name]: part[inner][0]["ErrorCode"] != REFUSED for part in parts}


def resources(type_: int = TOPIC) -> list[dict[str, Any]]:
    return [{"ResourceType": type_, "ResourceName": topic, "Configs": []} for topic in TOPICS]


def of_resources(answer: dict[str, Any], key: str) -> dict[str, bool]:
    return {each["ResourceName"]: each["ErrorCode"] != REFUSED for each in answer[key]}


def may_read(door: Door, user: User) -> dict[str, bool]:
    topics = [{"Topic": topic, "Partitions": [{"Partition": 0, "PartitionMaxBytes": 1}]} for topic in TOPICS]
    answer = door.raw(user, "Fetch", 12, {"ReplicaId": -1, "SessionEpoch": -1, "Topics": topics})
    return by_topic(answer["Responses"], "Topic")


def may_write(door: Door, user: User) -> dict[str, bool]:
    data = [{"Name": topic, "PartitionData": [{"Index": 0, "Records": b""}]} for topic in TOPICS]
    answer = door.raw(user, "Produce", 9, {"Acks": 1, "TimeoutMs": 1000, "TopicData": data})
    return by_topic(answer["Responses"], "Name", "PartitionResponses")


def may_delete(door: Door, user: User) -> dict[str, bool]:
    topics = [{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": 0}]} for topic in TOPICS]
    return by_topic(door.raw(user, "DeleteRecords", 2, {"Topics": topics, "TimeoutMs": 1000})["Topics"])


def may_describe(door: Door, user: User) -> dict[str, bool]:
    topics = [{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]} for topic in TOPICS]
    return by_topic(door.raw(user, "ListOffsets", 7, {"ReplicaId": -1, "Topics": topics})["Topics"])


def may_create(door: Door, user: User) -> dict[str, bool]:
    topics = [{"Name": topic, "NumPartitions": 1, "ReplicationFactor": 1} for topic in TOPICS]
    answer = door.raw(user, "CreateTopics", 7, {"Topics": topics, "validateOnly": True, "timeoutMs": 1000})
    return {topic["Name"]: topic["ErrorCode"] != REFUSED for topic in answer["Topics"]}


def may_alter(door: Door, user: User) -> dict[str, bool]:
    topics = [{"Name": topic, "Count": 2, "Assignments": None} for topic in TOPICS]
    asked = {"Topics": topics, "TimeoutMs": 1000, "ValidateOnly": True}
    answer = door.raw(user, "CreatePartitions", 3, asked)
    return {each["Name"]: each["ErrorCode"] != REFUSED for each in answer["Results"]}


def may_describe_configs(door: Door, user: User) -> dict[str, bool]:
    asked = [{"ResourceType": TOPIC, "ResourceName": topic} for topic in TOPICS]
    return of_resources(door.raw(user, "DescribeConfigs", 4, {"Resources": asked}), "Results")


def may_alter_configs(door: Door, user: User) -> dict[str, bool]:
    asked = {"Resources": resources(), "ValidateOnly": True}
    return of_resources(door.raw(user, "IncrementalAlterConfigs", 1, asked), "Responses")


def may_write_somewhere(door: Door, user: User) -> bool:
    asked = {"TransactionalId": None, "TransactionTimeoutMs": 1000}
    return bool(door.raw(user, "InitProducerId", 4, asked)["ErrorCode"] != 31)


def operations(door: Door, user: User) -> dict[str, int]:
    topics = [{"Name": topic} for topic in TOPICS]
    asked = {"Topics": topics, "AllowAutoTopicCreation": False, "IncludeTopicAuthorizedOperations": True}
    answer = door.raw(user, "Metadata", 12, asked)
    return {topic["Name"]: topic["TopicAuthorizedOperations"] for topic in answer["Topics"]}


QUESTIONS: list[Callable[[Door, User], Any]] = [
    may_read,
    may_write,
    may_delete,
    may_describe,
    may_create,
    may_alter,
    may_describe_configs,
    may_alter_configs,
    may_write_somewhere,
    operations,
]


@pytest.mark.parametrize("seed", range(40))
def test_random_acls_let_users_do_the_same(pair: Pair, opened: dict[str, Door], seed: int) -> None:
    acls = some_acls(random.Random(seed))

    def scenario(side: Side) -> Any:
        door = opened[side.name]
        replace_acls(door, acls)
        return {
            user.name: {question.__name__: shortly(question(door, user)) for question in QUESTIONS}
            for user in USERS
        }

    pair.same(scenario, "\n".join(map(str, acls)))


def shortly(answer: Any) -> Any:
    """The names of the topics to which it is allowed, or what else is told of them."""
    if not isinstance(answer, dict):
        return answer
    return " ".join(
        name if allowed is True else f"{name}:{allowed}"
        for name, allowed in sorted(answer.items())
        if allowed
    )


def test_who_may_write_idempotently_or_to_some_topic_gets_a_producer_id(
    pair: Pair, opened: dict[str, Door]
) -> None:
    """The ways to be allowed, or not, to do something to a resource of a type at all."""
    user = USERS[0]

    def write(name: str, permission: int = ALLOW, pattern: int = LITERAL, operation: int = WRITE) -> Any:
        return acl(TOPIC, name, operation, user.host, permission=permission, pattern=pattern)

    spoken_of = acl(TOPIC, "*", READ, principal="User:other")
    cases = {
        "nothing is said": [],
        "nothing is said of the user": [spoken_of],
        "literal": [spoken_of, write("a")],
        "literal, all operations": [spoken_of, write("a", operation=ALL)],
        "alter does not imply it": [spoken_of, write("a", operation=ALTER)],
        "prefixed": [spoken_of, write("a", pattern=PREFIXED)],
        "literal denied": [spoken_of, write("a"), write("a", DENY)],
        "another literal denied": [spoken_of, write("a"), write("b", DENY)],
        "literal under a denied prefix": [spoken_of, write("abc"), write("ab", DENY, PREFIXED)],
        "prefix under a denied prefix": [
            spoken_of,
            write("abc", pattern=PREFIXED),
            write("ab", DENY, PREFIXED),
        ],
        "prefix over a denied prefix": [spoken_of, write("a", pattern=PREFIXED), write("ab", DENY, PREFIXED)],
        "the same prefix denied": [spoken_of, write("a", pattern=PREFIXED), write("a", DENY, PREFIXED)],
        "the same name denied, allowed as a prefix": [
            spoken_of,
            write("a", pattern=PREFIXED),
            write("a", DENY),
        ],
        "all allowed": [spoken_of, write("*")],
        "all allowed, one denied": [spoken_of, write("*"), write("a", DENY)],
        "all denied": [spoken_of, write("a"), write("*", DENY)],
        "all denied to everybody": [spoken_of, write("a"), {**write("*", DENY), "Principal": "User:*"}],
        "the name that is tried denied": [write("hardcode", DENY)],
    }

    def scenario(side: Side) -> Any:
        door = opened[side.name]
        answers = {}
        for name, acls in cases.items():
            replace_acls(door, acls)
            answers[name] = may_write_somewhere(door, user)
        door.create_acls([acl(CLUSTER, CLUSTER_NAME, IDEMPOTENT_WRITE, user.host)])
        eventually(lambda: may_write_somewhere(door, user))
        return answers

    pair.same(scenario)
