"""A consumer that subscribes by a regular expression gets the topics that it may describe."""

from __future__ import annotations

from typing import Any

from compat.differential.acls.cases import ALLOWED, FORBIDDEN
from compat.differential.acls.users import ADMIN, NOBODY, SOME, Door, User
from compat.differential.pair import Pair
from compat.harness.side import Side
from compat.harness.waiting import eventually

MEMBER = {"MemberId": "a-member-of-22-letters", "RebalanceTimeoutMs": 5000, "InstanceId": None}
REGEX = {"SubscribedTopicRegex": f"{ALLOWED}|{FORBIDDEN}", "SubscribedTopicNames": None}


def assigned(door: Door, user: User, group: str) -> Any:
    """The ids of the topics that the member gets in the end; or why it gets none."""
    asked = {"GroupId": group, **MEMBER, **REGEX, "TopicPartitions": []}
    answer = door.raw(user, "ConsumerGroupHeartbeat", 1, {**asked, "MemberEpoch": 0})
    if answer["ErrorCode"]:
        return answer["ErrorCode"]

    def topics() -> list[bytes]:
        """A heartbeat that says everything is told everything."""
        nonlocal answer
        owned = (answer["Assignment"] or {"TopicPartitions": []})["TopicPartitions"]
        full = {**asked, "TopicPartitions": owned, "MemberEpoch": answer["MemberEpoch"]}
        answer = door.raw(user, "ConsumerGroupHeartbeat", 1, full)
        assert answer["ErrorCode"] == 0, answer
        return [
            each["TopicId"] for each in (answer["Assignment"] or {"TopicPartitions": []})["TopicPartitions"]
        ]

    found = eventually(topics)
    return sorted(name for name, topic_id in door.topic_ids.items() if topic_id in found)


def test_a_regular_expression_finds_what_the_user_may_describe(pair: Pair, doors: dict[str, Door]) -> None:
    def scenario(side: Side) -> Any:
        door = doors[side.name]
        return {
            user.name: assigned(door, user, f"{ALLOWED}-by-regex-{user.name}")
            for user in (NOBODY, SOME, ADMIN)
        }

    pair.same(scenario)
