"""Stories of share groups, written down to be compared.

A new share group of Kafka's needs two epochs and some seconds before its members have partitions; kbroker's
needs one heartbeat. So epochs count from where the story says that the group is settled. Which member has
which partition is the assignor's business: of an assignment, the number of partitions counts.
"""

from __future__ import annotations

import time
from typing import Any

from compat.differential.groups.transcript import Transcript, Values

_EPOCHS = frozenset(("MemberEpoch", "GroupEpoch", "AssignmentEpoch"))


class ShareTranscript(Transcript):
    _settled_at = 0
    uneven = False
    """Whether some members have more than others: then it is not written down who has how many."""

    def beat(self, who: str, epoch: int | None = None, *args: Any, **values: Any) -> Values:
        """A heartbeat in the epoch that the member was told last, unless another is given."""
        topics = values.pop("topics", None)
        if topics is not None:
            values["SubscribedTopicNames"] = [self.name_of(letter) for letter in topics]
        member_epoch = self._epochs.get(who, 0) if epoch is None else epoch
        asked = {"GroupId": self.group, "MemberId": who, "MemberEpoch": member_epoch, **values}
        answer = self.ask(who, "ShareGroupHeartbeat", 1, **asked)
        if answer["ErrorCode"] == 0 and member_epoch >= 0:
            self._epochs[who] = answer["MemberEpoch"]
        if answer["HeartbeatIntervalMs"]:
            self.lines[-1][1].pop("HeartbeatIntervalMs")
        return answer

    def join_share(self, who: str, letters: str, **values: Any) -> Values:
        return self.beat(who, 0, topics=letters, **values)

    def settle(self, who: str, letters: str, **values: Any) -> None:
        """The member has these topics, and nothing is left to do. None of it is written down."""
        lines = len(self.lines)
        self._settled_at = 0
        self.beat(who, 0, topics=letters, **values)
        deadline = time.monotonic() + 30
        while not self._has(self.beat(who, topics=letters, **values), letters):
            assert time.monotonic() < deadline, "not assigned"
            time.sleep(0.05)
        del self.lines[lines:]
        self._settled_at = self.epoch_of(who)

    def describe_share(self, **values: Any) -> Values:
        return self.ask("admin", "ShareGroupDescribe", 1, GroupIds=[self.group], **values)

    def _has(self, answer: Values, letters: str) -> bool:
        assigned = answer["Assignment"]["TopicPartitions"]
        return {self._called(topic["TopicId"]) for topic in assigned} == set(letters)

    def _plain(self, name: str, value: Any) -> Any:
        if name in _EPOCHS and value > 0 and self._settled_at:
            return f"settled + {value - self._settled_at}"
        if name == "Assignment" and self.uneven:
            return value and True
        if name == "Members":
            loads = sorted(_load(member["Assignment"]) for member in value if "Assignment" in member)
            return [loads, *super()._plain(name, value)]
        if name == "Partitions" and all(isinstance(each, int) for each in value):
            return len(value)
        return super()._plain(name, value)


def _load(assignment: Values) -> int:
    return sum(len(topic["Partitions"]) for topic in assignment["TopicPartitions"])
