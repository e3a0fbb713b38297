"""A case for every API: what a user asks, of things that SOME may do everything to and of others.

A case returns the answers that are compared. What an answer says beside errors, names and rights is the
business of other suites, and left out where brokers differ in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from compat.differential.acls.users import ADMIN, ANONYMOUS, ANY, GROUP, LITERAL, READ, TOPIC, Door, User, acl
from compat.harness.batches import TRANSACTIONAL, Record, batch
from compat.harness.waiting import eventually
from kbroker.requests.apis import APIS

OFFERED = {api.name for api in APIS}
ALLOWED, FORBIDDEN = "allowed", "forbidden"
KINDS = (ALLOWED, FORBIDDEN)
NO_ID = bytes(16)
_ASSIGNMENT_DELAYED = 5
UNKNOWN_ID = b"unknown topic id"

Case = Callable[["Asking"], Any]
CASES: dict[str, list[Case]] = {}


class Asking:
    """A user who asks a broker at one version."""

    def __init__(self, door: Door, user: User, version: int) -> None:
        self.door = door
        self.user = user
        self.version = version

    def __call__(self, api_name: str, **values: Any) -> Any:
        return in_order(self.door.ask(self.user, api_name, self.version, values))

    def as_admin(self, api_name: str, version: int, **values: Any) -> Any:
        return self.door.raw(ADMIN, api_name, version, values)

    def own(self, kind: str, what: str) -> str:
        """A name that no other case uses, which SOME may use if it begins with ALLOWED."""
        return f"{kind}-{what}-{self.user.name}-{self.version}"

    def topics(self) -> Iterator[str]:
        """Of every sort: there or not, allowed or not."""
        yield from (ALLOWED, FORBIDDEN, "allowed-missing", "forbidden-missing")

    def topic_id(self, name: str) -> bytes:
        return self.door.topic_ids.get(name, UNKNOWN_ID[:12] + name[:4].encode())


def case(api_name: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES.setdefault(api_name, []).append(function)
        return function

    return add


def in_order(answer: Any) -> Any:
    """Kafka's maps have no order."""
    if isinstance(answer, dict):
        return {name: in_order(item) for name, item in answer.items()}
    if isinstance(answer, list):
        return sorted(map(in_order, answer), key=repr)
    return answer


def without(answer: Any, *names: str) -> Any:
    """With a mere True for what these fields hold, unless that is a number below 0, or nothing."""
    if isinstance(answer, dict):
        return {
            name: _is_there(item) if name in names else without(item, *names) for name, item in answer.items()
        }
    if isinstance(answer, list):
        return [without(item, *names) for item in answer]
    return answer


def _is_there(item: Any) -> Any:
    if isinstance(item, int):
        return item if item < 0 else True
    return item and True


def by_answer(answers: dict[Any, Any]) -> dict[str, Any]:
    """Who got which answer, each answer once."""
    askers: dict[str, list[str]] = {}
    for asker, answer in answers.items():
        askers.setdefault(repr(answer), []).append(str(asker))
    by_text = {repr(answer): answer for answer in answers.values()}
    return {", ".join(names): by_text[text] for text, names in askers.items()}


def prepare(door: Door) -> None:
    """Topics, groups with offsets, and the coordinators."""
    for kind in KINDS:
        door.topic_ids[kind] = door.side.create_topic(kind, 2)
        door.side.produce(kind, batch([Record(b"1"), Record(b"2")], timestamp_ms=1_700_000_000_000))
    for kind in KINDS:
        for key_type in (0, 1):
            asked = {"KeyType": key_type, "CoordinatorKeys": [f"{kind}-any"]}
            eventually(
                lambda asked=asked: door.raw(ADMIN, "FindCoordinator", 4, asked)["Coordinators"][0],
                lambda found: found["ErrorCode"] == 0,
            )
        commit(door, f"{kind}-group", ALLOWED, FORBIDDEN)
        txn = {"TransactionalId": f"{kind}-known", "TransactionTimeoutMs": 60_000}
        eventually(lambda txn=txn: door.raw(ADMIN, "InitProducerId", 4, txn)["ErrorCode"] == 0)


def commit(door: Door, group: str, *topics: str) -> None:
    partitions = [{"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": ""}]
    asked = {
        "GroupId": group,
        "GenerationIdOrMemberEpoch": -1,
        "Topics": [{"Name": topic, "Partitions": partitions} for topic in topics],
    }
    eventually(
        lambda: door.raw(ADMIN, "OffsetCommit", 8, asked)["Topics"],
        lambda answered: not any(part["ErrorCode"] for each in answered for part in each["Partitions"]),
    )


# records


def _data(asking: Asking, records: Callable[[str], bytes]) -> list[dict[str, Any]]:
    return [
        {
            "Name": topic,
            "TopicId": asking.topic_id(topic),
            "PartitionData": [{"Index": 0, "Records": records(topic)}],
        }
        for topic in asking.topics()
    ]


@case("Produce")
def produce(asking: Asking) -> Any:
    records = batch([Record(b"more")], timestamp_ms=1_700_000_000_000)
    answer = asking("Produce", Acks=-1, TimeoutMs=5000, TopicData=_data(asking, lambda _: records))
    return without(answer, "BaseOffset")


@case("Produce")
def produce_without_an_answer(asking: Asking) -> Any:
    """A refusal closes the connection; whoever is not refused gets an answer to the next request."""
    records = batch([Record(b"more")], timestamp_ms=1_700_000_000_000)
    connection = asking.door.connection(asking.user)
    data = {"Name": FORBIDDEN, "PartitionData": [{"Index": 0, "Records": records}]}
    connection.send("Produce", 9, {"Acks": 0, "TimeoutMs": 5000, "TopicData": [data]})
    return asking.door.ask(asking.user, "ApiVersions", 0, {}) == "connection closed"


@case("Produce")
def produce_in_a_transaction(asking: Asking) -> Any:
    records = batch(
        [Record(b"more")],
        timestamp_ms=1_700_000_000_000,
        attributes=TRANSACTIONAL,
        producer_id=77,
        producer_epoch=0,
        base_sequence=0,
    )
    return [
        asking(
            "Produce",
            TransactionalId=transactional_id,
            Acks=-1,
            TimeoutMs=5000,
            TopicData=_data(asking, lambda _: records),
        )
        for transactional_id in (None, f"{ALLOWED}-txn", f"{FORBIDDEN}-txn")
    ]


def _fetch(asking: Asking, **more: Any) -> Any:
    topics = [
        {
            "Topic": topic,
            "TopicId": asking.topic_id(topic),
            "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 100}],
        }
        for topic in asking.topics()
    ]
    asked = {"ReplicaId": -1, "MaxBytes": 1_000_000, "SessionEpoch": -1, "Topics": topics, **more}
    return without(asking("Fetch", **asked), "Records", "HighWatermark", "LastStableOffset")


@case("Fetch")
def fetch(asking: Asking) -> Any:
    return _fetch(asking)


@case("Fetch")
def fetch_in_a_session(asking: Asking) -> Any:
    return _fetch(asking, SessionEpoch=0)


@case("Fetch")
def fetch_as_another_broker(asking: Asking) -> Any:
    """Who may act for the cluster is told that it is no replica; others are refused."""
    answer = _fetch(asking, ReplicaId=7, ReplicaState={"ReplicaId": 7, "ReplicaEpoch": -1})
    return [
        [topic["Topic"] if asking.version < 13 else None, part["ErrorCode"] in (29, 31)]
        for topic in answer["Responses"]
        for part in topic["Partitions"]
    ]


@case("ListOffsets")
def list_offsets(asking: Asking) -> Any:
    partitions = [{"PartitionIndex": 0, "Timestamp": -2}]
    topics = [{"Name": topic, "Partitions": partitions} for topic in asking.topics()]
    return asking("ListOffsets", ReplicaId=-1, Topics=topics)


@case("OffsetForLeaderEpoch")
def offset_for_leader_epoch(asking: Asking) -> Any:
    partitions = [{"Partition": 1, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}]
    topics = [{"Topic": topic, "Partitions": partitions} for topic in asking.topics()]
    return without(asking("OffsetForLeaderEpoch", ReplicaId=-2, Topics=topics), "EndOffset")


@case("DeleteRecords")
def delete_records(asking: Asking) -> Any:
    partitions = [{"PartitionIndex": 0, "Offset": 0}]
    topics = [{"Name": topic, "Partitions": partitions} for topic in asking.topics()]
    return asking("DeleteRecords", Topics=topics, TimeoutMs=5000)


@case("DescribeProducers")
def describe_producers(asking: Asking) -> Any:
    topics = [{"Name": topic, "PartitionIndexes": [0]} for topic in asking.topics()]
    return without(asking("DescribeProducers", Topics=topics), "ActiveProducers")


# topics

OPERATIONS_TOO = {"IncludeClusterAuthorizedOperations": True, "IncludeTopicAuthorizedOperations": True}


@case("Metadata")
def metadata_of_topics(asking: Asking) -> Any:
    asked = asking.topics() if asking.version >= 4 else KINDS  # before, the others would be created
    topics = [{"Name": topic} for topic in asked]
    return asking("Metadata", Topics=topics, AllowAutoTopicCreation=False, **OPERATIONS_TOO)


@case("Metadata")
def metadata_of_topics_by_id(asking: Asking) -> Any:
    if asking.version < 12:
        return None
    topics = [{"Name": None, "TopicId": asking.topic_id(topic)} for topic in asking.topics()]
    return asking("Metadata", Topics=topics, AllowAutoTopicCreation=False, **OPERATIONS_TOO)


@case("Metadata")
def metadata_of_all_topics(asking: Asking) -> Any:
    """The topics of other cases come and go."""
    answer = asking("Metadata", Topics=[] if asking.version == 0 else None, **OPERATIONS_TOO)
    answer["Topics"] = [topic for topic in answer["Topics"] if topic["Name"] in KINDS]
    return answer


@case("Metadata")
def metadata_that_creates(asking: Asking) -> Any:
    """Kafka answers that there is no such topic while it creates it, kbroker when it has."""
    if asking.version < 4:
        return None
    names = [asking.own(kind, "auto") for kind in KINDS]
    asked = {"Topics": [{"Name": name} for name in names], "AllowAutoTopicCreation": True}
    return {
        topic["Name"]: "created" if topic["ErrorCode"] in (0, 3, 5) else topic["ErrorCode"]
        for topic in asking("Metadata", **asked)["Topics"]
    }


@case("DescribeTopicPartitions")
def describe_topic_partitions(asking: Asking) -> Any:
    topics = [{"Name": topic} for topic in asking.topics()]
    return asking("DescribeTopicPartitions", Topics=topics, ResponsePartitionLimit=100, Cursor=None)


@case("DescribeTopicPartitions")
def describe_all_topic_partitions(asking: Asking) -> Any:
    answer = asking("DescribeTopicPartitions", Topics=[], ResponsePartitionLimit=2000, Cursor=None)
    return [topic for topic in answer["Topics"] if topic["Name"] in KINDS]


def _create_topics(asking: Asking, names: list[str], **more: Any) -> Any:
    topics = [{"Name": name, "NumPartitions": 2, "ReplicationFactor": 1} for name in names]
    answer = asking("CreateTopics", Topics=topics, timeoutMs=10_000, **more)
    return without(answer, "Configs", "TopicId")


@case("CreateTopics")
def create_topics(asking: Asking) -> Any:
    names = [asking.own(kind, "new") for kind in KINDS]
    return [_create_topics(asking, names, validateOnly=True), _create_topics(asking, names)]


@case("CreateTopics")
def create_topics_that_are_there_or_make_no_sense(asking: Asking) -> Any:
    return _create_topics(
        asking, [ALLOWED, FORBIDDEN, "allowed twice", "forbidden twice", "__cluster_metadata"]
    )


@case("CreatePartitions")
def create_partitions(asking: Asking) -> Any:
    topics = [{"Name": topic, "Count": 3, "Assignments": None} for topic in asking.topics()]
    return asking("CreatePartitions", Topics=topics, TimeoutMs=5000, ValidateOnly=True)


@case("DeleteTopics")
def delete_topics(asking: Asking) -> Any:
    names = [asking.own(kind, "gone") for kind in KINDS]
    for name in names:
        asking.door.side.create_topic(name)
    names += ["allowed-missing", "forbidden-missing"]
    topics = [{"Name": name} for name in names]
    return asking("DeleteTopics", TopicNames=names, Topics=topics, TimeoutMs=10_000)


@case("DeleteTopics")
def delete_topics_by_id(asking: Asking) -> Any:
    if asking.version < 6:
        return None
    ids = [asking.door.side.create_topic(asking.own(kind, "gone-by-id")) for kind in KINDS]
    topics = [{"Name": None, "TopicId": topic_id} for topic_id in (*ids, UNKNOWN_ID)]
    return asking("DeleteTopics", Topics=topics, TimeoutMs=10_000)


@case("ElectLeaders")
def elect_leaders(asking: Asking) -> Any:
    topics = [{"Topic": topic, "Partitions": [0]} for topic in asking.topics()]
    return asking("ElectLeaders", TopicPartitions=topics, TimeoutMs=5000)


@case("ElectLeaders")
def elect_all_leaders(asking: Asking) -> Any:
    return without(asking("ElectLeaders", TopicPartitions=None, TimeoutMs=5000), "ReplicaElectionResults")


@case("AlterPartitionReassignments")
def alter_partition_reassignments(asking: Asking) -> Any:
    partitions = [{"PartitionIndex": 0, "Replicas": None}]
    topics = [{"Name": topic, "Partitions": partitions} for topic in asking.topics()]
    return asking("AlterPartitionReassignments", Topics=topics, TimeoutMs=5000)


@case("ListPartitionReassignments")
def list_partition_reassignments(asking: Asking) -> Any:
    topics = [{"Name": topic, "PartitionIndexes": [0]} for topic in asking.topics()]
    return [
        asking("ListPartitionReassignments", Topics=topics, TimeoutMs=5000),
        asking("ListPartitionReassignments", Topics=None, TimeoutMs=5000),
    ]


@case("AlterReplicaLogDirs")
def alter_replica_log_dirs(asking: Asking) -> Any:
    topics = [{"Name": topic, "Partitions": [0]} for topic in asking.topics()]
    return asking("AlterReplicaLogDirs", Dirs=[{"Path": "/no/such/directory", "Topics": topics}])


@case("DescribeLogDirs")
def describe_log_dirs(asking: Asking) -> Any:
    topics = [{"Topic": topic, "Partitions": [0]} for topic in asking.topics()]
    answer = asking("DescribeLogDirs", Topics=topics)
    for directory in answer["Results"]:
        for topic in directory["Topics"]:
            for partition in topic["Partitions"]:
                del partition["PartitionSize"]
    return without(answer, "LogDir", "TotalBytes", "UsableBytes", "IsCordoned")


# groups


def _groups(asking: Asking) -> list[str]:
    return [f"{kind}-group" for kind in KINDS]


@case("OffsetCommit")
def offset_commit(asking: Asking) -> Any:
    partitions = [{"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": ""}]
    topics = [
        {"Name": topic, "TopicId": asking.topic_id(topic), "Partitions": partitions}
        for topic in asking.topics()
    ]
    return [
        asking("OffsetCommit", GroupId=group, GenerationIdOrMemberEpoch=-1, Topics=topics)
        for group in _groups(asking)
    ]


@case("OffsetFetch")
def offset_fetch(asking: Asking) -> Any:
    topics = [
        {"Name": topic, "TopicId": asking.topic_id(topic), "PartitionIndexes": [0, 1]}
        for topic in asking.topics()
    ]
    answers = []
    for wanted in (topics, None):
        if wanted is None and asking.version < 2:
            continue
        if asking.version >= 8:
            groups = [
                {"GroupId": group, "MemberId": None, "MemberEpoch": -1, "Topics": wanted}
                for group in (*_groups(asking), "allowed-no-group", "forbidden-no-group")
            ]
            answers.append(asking("OffsetFetch", Groups=groups))
        else:
            answers += [asking("OffsetFetch", GroupId=group, Topics=wanted) for group in _groups(asking)]
    return answers


@case("OffsetDelete")
def offset_delete(asking: Asking) -> Any:
    answers = []
    for kind in KINDS:
        group = asking.own(kind, "offset-delete")
        commit(asking.door, group, ALLOWED, FORBIDDEN)
        topics = [{"Name": topic, "Partitions": [{"PartitionIndex": 0}]} for topic in asking.topics()]
        answers.append(asking("OffsetDelete", GroupId=group, Topics=topics))
    answers.append(asking("OffsetDelete", GroupId="allowed-no-group", Topics=topics))
    return answers


@case("FindCoordinator")
def find_coordinator(asking: Asking) -> Any:
    keys = {0: _groups(asking), 1: ["allowed-txn", "forbidden-txn"]}
    answers = []
    for key_type in (0, 1) if asking.version >= 1 else (0,):
        if asking.version >= 4:
            answers.append(asking("FindCoordinator", KeyType=key_type, CoordinatorKeys=keys[key_type]))
        else:
            answers += [asking("FindCoordinator", KeyType=key_type, Key=key) for key in keys[key_type]]
    return answers


@case("FindCoordinator")
def find_coordinator_of_share_partitions(asking: Asking) -> Any:
    """For brokers."""
    if asking.version < 6:
        return None
    answer = asking("FindCoordinator", KeyType=2, CoordinatorKeys=["allowed-group:AAAAAAAAAAAAAAAAAAAAAQ:0"])
    return [each["ErrorCode"] in (30, 31) for each in answer["Coordinators"]]


@case("JoinGroup")
def join_group(asking: Asking) -> Any:
    joined = {
        "SessionTimeoutMs": 10_000,
        "RebalanceTimeoutMs": 10_000,
        "MemberId": "nobody-knows",
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": b""}],
    }
    return [asking("JoinGroup", GroupId=group, **joined) for group in _groups(asking)]


@case("SyncGroup")
def sync_group(asking: Asking) -> Any:
    synced = {
        "GenerationId": 1,
        "MemberId": "nobody-knows",
        "ProtocolType": "consumer",
        "ProtocolName": "range",
        "Assignments": [],
    }
    return [asking("SyncGroup", GroupId=group, **synced) for group in _groups(asking)]


@case("Heartbeat")
def heartbeat(asking: Asking) -> Any:
    return [
        asking("Heartbeat", GroupId=group, GenerationId=1, MemberId="nobody-knows")
        for group in _groups(asking)
    ]


@case("LeaveGroup")
def leave_group(asking: Asking) -> Any:
    member = {"MemberId": "nobody-knows", "GroupInstanceId": None}
    return [
        asking("LeaveGroup", GroupId=group, MemberId="nobody-knows", Members=[member])
        for group in _groups(asking)
    ]


@case("DescribeGroups")
def describe_groups(asking: Asking) -> Any:
    groups = [*_groups(asking), "allowed-no-group", "forbidden-no-group"]
    return asking("DescribeGroups", Groups=groups, IncludeAuthorizedOperations=True)


@case("ListGroups")
def list_groups(asking: Asking) -> Any:
    answer = asking("ListGroups", StatesFilter=[], TypesFilter=[])
    answer["Groups"] = [each for each in answer["Groups"] if each["GroupId"] in _groups(asking)]
    return answer


@case("DeleteGroups")
def delete_groups(asking: Asking) -> Any:
    names = [asking.own(kind, "gone") for kind in KINDS]
    for name in names:
        commit(asking.door, name, ALLOWED)
    return asking("DeleteGroups", GroupsNames=[*names, "allowed-no-group", "forbidden-no-group"])


@case("ConsumerGroupHeartbeat")
def consumer_group_heartbeat(asking: Asking) -> Any:
    """A subscription to what a member may not describe is refused as a whole."""
    answers = []
    for kind in KINDS:
        for name, topics in (
            ("one", [ALLOWED]),
            ("both", [ALLOWED, FORBIDDEN]),
            ("none", ["forbidden-missing"]),
        ):
            member = {"MemberId": f"member-{name}-of-22-chars", "MemberEpoch": 0, "RebalanceTimeoutMs": 5000}
            group = asking.own(kind, f"consumers-{name}")
            answer = asking(
                "ConsumerGroupHeartbeat",
                GroupId=group,
                SubscribedTopicNames=topics,
                TopicPartitions=[],
                InstanceId=None,
                **member,
            )
            answers.append(without(answer, "MemberId", "HeartbeatIntervalMs", "Assignment"))
            leaving = {**member, "MemberEpoch": -1}
            if asking.version >= 1:
                asking.as_admin("ConsumerGroupHeartbeat", 1, GroupId=group, **leaving)
    return answers


@case("ConsumerGroupDescribe")
def consumer_group_describe(asking: Asking) -> Any:
    names = []
    for kind in KINDS:
        for topics in ([ALLOWED], [ALLOWED, FORBIDDEN]):
            name = asking.own(kind, f"described-{len(topics)}")
            asking.as_admin(
                "ConsumerGroupHeartbeat",
                1,
                GroupId=name,
                MemberId="a-member-of-22-letters",
                MemberEpoch=0,
                RebalanceTimeoutMs=5000,
                SubscribedTopicNames=topics,
                TopicPartitions=[],
            )
            names.append(name)
    answer = asking(
        "ConsumerGroupDescribe",
        GroupIds=[*names, "allowed-no-group", "forbidden-no-group"],
        IncludeAuthorizedOperations=True,
    )
    for group in answer["Groups"]:  # what heartbeats settle in their time
        for member in group["Members"]:
            member["Assignment"], member["TargetAssignment"] = None, None
    return without(answer, "GroupEpoch", "AssignmentEpoch", "GroupState", "MemberEpoch", "ClientHost")


# share groups


@case("ShareGroupHeartbeat")
def share_group_heartbeat(asking: Asking) -> Any:
    answers = []
    for kind in KINDS:
        for name, topics in (
            ("one", [ALLOWED]),
            ("both", [ALLOWED, FORBIDDEN]),
            ("none", ["forbidden-missing"]),
        ):
            member = {"GroupId": asking.own(kind, f"sharers-{name}"), "MemberId": f"member-{name}"}
            answer = asking("ShareGroupHeartbeat", SubscribedTopicNames=topics, MemberEpoch=0, **member)
            answers.append(without(answer, "HeartbeatIntervalMs", "Assignment", "MemberEpoch"))
            asking.as_admin("ShareGroupHeartbeat", 1, MemberEpoch=-1, **member)
    return answers


@case("ShareGroupDescribe")
def share_group_describe(asking: Asking) -> Any:
    names = []
    for kind in KINDS:
        for topics in ([ALLOWED], [ALLOWED, FORBIDDEN]):
            name = f"{kind}-described-shares-{len(topics)}"
            member = {"MemberId": "a-member", "MemberEpoch": 0, "SubscribedTopicNames": topics}
            eventually(
                lambda name=name, member=member: asking.as_admin(
                    "ShareGroupHeartbeat", 1, GroupId=name, **member
                )["Assignment"]["TopicPartitions"]
            )
            names.append(name)
    answer = asking(
        "ShareGroupDescribe",
        GroupIds=[*names, "allowed-no-group", "forbidden-no-group"],
        IncludeAuthorizedOperations=True,
    )
    return without(answer, "GroupEpoch", "AssignmentEpoch", "MemberEpoch", "ClientHost")


def _share_offsets(*topics: str) -> list[dict[str, Any]]:
    return [{"TopicName": topic, "Partitions": [{"PartitionIndex": 0, "StartOffset": 1}]} for topic in topics]


def _share_group(asking: Asking, kind: str, what: str) -> str:
    """A group of this case alone, which has offsets of both topics."""
    group = asking.own(kind, what)
    offsets = {"GroupId": group, "Topics": _share_offsets(ALLOWED, FORBIDDEN)}
    eventually(
        lambda: asking.as_admin("AlterShareGroupOffsets", 0, **offsets),
        lambda altered: (
            all(part["ErrorCode"] == 0 for topic in altered["Responses"] for part in topic["Partitions"])
            and altered["ErrorCode"] == 0
        ),
    )
    return group


@case("DescribeShareGroupOffsets")
def describe_share_group_offsets(asking: Asking) -> Any:
    names = [_share_group(asking, kind, "share-described") for kind in KINDS]
    topics = [{"TopicName": topic, "Partitions": [0]} for topic in asking.topics()]
    answers = [
        asking(
            "DescribeShareGroupOffsets",
            Groups=[{"GroupId": name, "Topics": wanted} for name in (*names, "allowed-no", "forbidden-no")],
        )
        for wanted in (topics, None)
    ]
    return without(answers, "Lag")  # other cases produce


@case("AlterShareGroupOffsets")
def alter_share_group_offsets(asking: Asking) -> Any:
    answers = [
        asking("AlterShareGroupOffsets", GroupId=group, Topics=_share_offsets(*asking.topics()))
        for kind in KINDS
        for group in (_share_group(asking, kind, "share-altered"), asking.own(kind, "share-made"))
    ]
    for answer in answers:
        for topic in answer["Responses"]:
            if any(part["ErrorCode"] == 29 for part in topic["Partitions"]):
                topic["TopicId"] = None  # Kafka tells it even to who may not see the topic
    return answers


@case("DeleteShareGroupOffsets")
def delete_share_group_offsets(asking: Asking) -> Any:
    topics = [{"TopicName": topic} for topic in asking.topics()]
    groups = [_share_group(asking, kind, "share-deleted") for kind in KINDS]
    return [
        asking("DeleteShareGroupOffsets", GroupId=group, Topics=topics)
        for group in (*groups, "allowed-no-group", "forbidden-no-group")
    ]


@case("ShareFetch")
def share_fetch(asking: Asking) -> Any:
    """Without an ACL for the group nothing is told of topics."""
    answers = []
    for kind in KINDS:
        topics = [{"TopicId": asking.topic_id(name), "Partitions": [{"PartitionIndex": 0}]} for name in KINDS]
        answer = asking(
            "ShareFetch",
            GroupId=asking.own(kind, "fetchers"),
            MemberId=f"{asking.user.name}-member",
            ShareSessionEpoch=0,
            MaxWaitMs=1000,
            MinBytes=1,
            MaxBytes=1 << 20,
            MaxRecords=10,
            BatchSize=10,
            Topics=topics,
        )
        answers.append(answer)
    return answers


@case("ShareAcknowledge")
def share_acknowledge(asking: Asking) -> Any:
    return [
        asking(
            "ShareAcknowledge",
            GroupId=asking.own(kind, "fetchers"),
            MemberId="nobody",
            ShareSessionEpoch=1,
            Topics=[{"TopicId": asking.topic_id(ALLOWED), "Partitions": [{"PartitionIndex": 0}]}],
        )
        for kind in KINDS
    ]


def _subtopology(source: str, changelog: str | None = None) -> dict[str, Any]:
    changelogs = [] if changelog is None else [{"Name": changelog, "Partitions": 0, "TopicConfigs": []}]
    nothing = ("SourceTopicRegex", "RepartitionSinkTopics", "RepartitionSourceTopics", "CopartitionGroups")
    return {
        "SubtopologyId": "0",
        "SourceTopics": [source],
        "StateChangelogTopics": [{"ReplicationFactor": 0, **each} for each in changelogs],
        **{name: [] for name in nothing},
    }


def _streams_member(*subtopologies: dict[str, Any]) -> dict[str, Any]:
    return {
        "MemberId": "a-member-of-22-letters",
        "MemberEpoch": 0,
        "RebalanceTimeoutMs": 5000,
        "ProcessId": "a-process",
        "Topology": {"Epoch": 0, "Subtopologies": list(subtopologies)},
        "ActiveTasks": [],
        "StandbyTasks": [],
        "WarmupTasks": [],
    }


@case("StreamsGroupHeartbeat")
def streams_group_heartbeat(asking: Asking) -> Any:
    """A topology with what a member may not describe is refused; internal topics are made as the member."""
    answers = []
    for kind in KINDS:
        for name, source, changelog in (
            ("one", ALLOWED, None),
            ("none", FORBIDDEN, None),
            ("missing", "forbidden-missing", None),
            ("state", ALLOWED, asking.own("allowed", f"changelog-{kind}")),
            ("refused", ALLOWED, asking.own("forbidden", f"changelog-{kind}")),
        ):
            group = asking.own(kind, f"streams-{name}")
            member = _streams_member(_subtopology(source, changelog))
            answer = asking("StreamsGroupHeartbeat", GroupId=group, **member)
            told = {
                "ErrorCode": answer["ErrorCode"],
                "Status": [each["StatusCode"] for each in answer["Status"]],
            }
            told["Status"] = [code for code in told["Status"] if code != _ASSIGNMENT_DELAYED]
            answers.append(told)
            leaving = {"MemberId": member["MemberId"], "MemberEpoch": -1}
            asking.as_admin("StreamsGroupHeartbeat", 0, GroupId=group, **leaving)
    return answers


@case("StreamsGroupDescribe")
def streams_group_describe(asking: Asking) -> Any:
    names = []
    for kind in KINDS:
        for source in KINDS:
            name = asking.own(kind, f"streams-of-{source}")
            member = _streams_member(_subtopology(source))
            asking.as_admin("StreamsGroupHeartbeat", 0, GroupId=name, **member)
            names.append(name)
    answer = asking(
        "StreamsGroupDescribe",
        GroupIds=[*names, "allowed-no-group", "forbidden-no-group"],
        IncludeAuthorizedOperations=True,
    )
    for group in answer["Groups"]:  # what heartbeats settle in their time
        for member in group["Members"]:
            member["Assignment"], member["TargetAssignment"] = None, None
    return without(answer, "GroupEpoch", "AssignmentEpoch", "GroupState", "MemberEpoch", "ClientHost")


# transactions


def _transactions(asking: Asking) -> list[str]:
    return [f"{kind}-txn" for kind in KINDS]


@case("InitProducerId")
def init_producer_id(asking: Asking) -> Any:
    ids = [None, *(asking.own(kind, "txn") for kind in KINDS)]
    return [asking("InitProducerId", TransactionalId=each, TransactionTimeoutMs=60_000) for each in ids]


@case("AddPartitionsToTxn")
def add_partitions_to_txn(asking: Asking) -> Any:
    every = [{"Name": topic, "Partitions": [0]} for topic in asking.topics()]
    answers = []
    for topics in (every, every[:1], every[:2]):
        transactions = [
            {
                "TransactionalId": each,
                "ProducerId": 77,
                "ProducerEpoch": 0,
                "VerifyOnly": False,
                "Topics": topics,
            }
            for each in _transactions(asking)
        ]
        if asking.version >= 4:
            answers.append(asking("AddPartitionsToTxn", Transactions=transactions))
            continue
        answers += [
            asking(
                "AddPartitionsToTxn",
                V3AndBelowTransactionalId=each,
                V3AndBelowProducerId=77,
                V3AndBelowProducerEpoch=0,
                V3AndBelowTopics=topics,
            )
            for each in _transactions(asking)
        ]
    return answers


@case("AddOffsetsToTxn")
def add_offsets_to_txn(asking: Asking) -> Any:
    return [
        asking("AddOffsetsToTxn", TransactionalId=each, ProducerId=77, ProducerEpoch=0, GroupId=group)
        for each in _transactions(asking)
        for group in _groups(asking)
    ]


@case("EndTxn")
def end_txn(asking: Asking) -> Any:
    return [
        asking("EndTxn", TransactionalId=each, ProducerId=77, ProducerEpoch=0, Committed=True)
        for each in _transactions(asking)
    ]


@case("TxnOffsetCommit")
def txn_offset_commit(asking: Asking) -> Any:
    partitions = [{"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": ""}]
    every = [{"Name": topic, "Partitions": partitions} for topic in asking.topics()]
    return [
        asking(
            "TxnOffsetCommit",
            TransactionalId=each,
            GroupId=group,
            ProducerId=77,
            ProducerEpoch=0,
            GenerationId=-1,
            Topics=topics,
        )
        for each in _transactions(asking)
        for group in _groups(asking)
        for topics in (every, every[1:])
    ]


@case("WriteTxnMarkers")
def write_txn_markers(asking: Asking) -> Any:
    topics = [{"Name": topic, "PartitionIndexes": [1]} for topic in asking.topics()]
    marker = {"ProducerId": 77, "ProducerEpoch": 0, "TransactionResult": False, "Topics": topics}
    return asking("WriteTxnMarkers", Markers=[{**marker, "CoordinatorEpoch": 0}])


@case("DescribeTransactions")
def describe_transactions(asking: Asking) -> Any:
    ids = [f"{kind}-{what}" for kind in KINDS for what in ("known", "unknown")]
    return without(asking("DescribeTransactions", TransactionalIds=ids), "TransactionStartTimeMs")


@case("ListTransactions")
def list_transactions(asking: Asking) -> Any:
    answer = asking("ListTransactions", StateFilters=[], ProducerIdFilters=[])
    known = [f"{kind}-known" for kind in KINDS]
    answer["TransactionStates"] = [
        each for each in answer["TransactionStates"] if each["TransactionalId"] in known
    ]
    return answer


# configs and the cluster

CONFIG_RESOURCES = [
    (2, ALLOWED),
    (2, FORBIDDEN),
    (2, "allowed-missing"),
    (2, "forbidden-missing"),
    (4, "1"),
    (4, ""),
    (8, "1"),
    (16, "allowed-subscription"),
    (32, "allowed-group"),
    (32, "forbidden-group"),
]
CONFIG_OF = {
    2: ("retention.ms", "100000"),
    4: ("log.cleaner.backoff.ms", "1000"),
    8: ("kafka.server", "INFO"),
    16: ("interval.ms", "5000"),
    32: ("consumer.session.timeout.ms", "50000"),
}


@case("DescribeConfigs")
def describe_configs(asking: Asking) -> Any:
    resources = [
        {"ResourceType": type_, "ResourceName": name, "ConfigurationKeys": None}
        for type_, name in CONFIG_RESOURCES
    ]
    return without(asking("DescribeConfigs", Resources=resources), "Configs")


@case("AlterConfigs")
def alter_configs(asking: Asking) -> Any:
    resources = [
        {
            "ResourceType": type_,
            "ResourceName": name,
            "Configs": [dict(zip(("Name", "Value"), CONFIG_OF[type_], strict=True))],
        }
        for type_, name in CONFIG_RESOURCES
        if type_ != 8
    ]
    return asking("AlterConfigs", Resources=resources, ValidateOnly=True)


@case("IncrementalAlterConfigs")
def incremental_alter_configs(asking: Asking) -> Any:
    resources = [
        {
            "ResourceType": type_,
            "ResourceName": name,
            "Configs": [
                {"ConfigOperation": 0, **dict(zip(("Name", "Value"), CONFIG_OF[type_], strict=True))}
            ],
        }
        for type_, name in CONFIG_RESOURCES
    ]
    return asking("IncrementalAlterConfigs", Resources=resources, ValidateOnly=True)


@case("ListConfigResources")
def list_config_resources(asking: Asking) -> Any:
    return without(asking("ListConfigResources", ResourceTypes=[]), "ConfigResources")


@case("DescribeCluster")
def describe_cluster(asking: Asking) -> Any:
    return asking("DescribeCluster", IncludeClusterAuthorizedOperations=True, EndpointType=1)


@case("DescribeQuorum")
def describe_quorum(asking: Asking) -> Any:
    topics = [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]
    answer = asking("DescribeQuorum", Topics=topics)
    return without(answer, "LeaderEpoch", "HighWatermark", "CurrentVoters", "Observers", "Nodes", "LeaderId")


@case("UpdateFeatures")
def update_features(asking: Asking) -> Any:
    update = {"Feature": "no.such.feature", "MaxVersionLevel": 1, "UpgradeType": 1}
    answer = asking("UpdateFeatures", FeatureUpdates=[update], ValidateOnly=True, timeoutMs=5000)
    return without(answer, "Results")


@case("UnregisterBroker")
def unregister_broker(asking: Asking) -> Any:
    return asking("UnregisterBroker", BrokerId=99)


@case("AddRaftVoter")
def add_raft_voter(asking: Asking) -> Any:
    listener = {"Name": "CONTROLLER", "Host": "127.0.0.1", "Port": 1}
    return asking(
        "AddRaftVoter",
        ClusterId="another",
        TimeoutMs=5000,
        VoterId=9,
        VoterDirectoryId=UNKNOWN_ID,
        Listeners=[listener],
    )


@case("RemoveRaftVoter")
def remove_raft_voter(asking: Asking) -> Any:
    return asking("RemoveRaftVoter", ClusterId="another", VoterId=9, VoterDirectoryId=UNKNOWN_ID)


@case("ApiVersions")
def api_versions(asking: Asking) -> Any:
    """Everybody may ask."""
    return asking("ApiVersions", ClientSoftwareName="a", ClientSoftwareVersion="1")["ErrorCode"]


# ACLs


@case("DescribeAcls")
def describe_acls(asking: Asking) -> Any:
    return asking(
        "DescribeAcls",
        ResourceTypeFilter=GROUP,
        ResourceNameFilter=None,
        PatternTypeFilter=ANY,
        PrincipalFilter=None,
        HostFilter="127.0.0.3",
        Operation=ANY,
        PermissionType=ANY,
    )


@case("CreateAcls")
def create_acls(asking: Asking) -> Any:
    return asking(
        "CreateAcls", Creations=[acl(TOPIC, asking.own(ALLOWED, "acl"), READ), acl(TOPIC, "", READ)]
    )


@case("DeleteAcls")
def delete_acls(asking: Asking) -> Any:
    name = asking.own(ALLOWED, "acl-gone")
    asking.door.create_acls([acl(TOPIC, name, READ)])
    wanted = {
        "ResourceTypeFilter": TOPIC,
        "ResourceNameFilter": name,
        "PatternTypeFilter": LITERAL,
        "PrincipalFilter": ANONYMOUS,
        "HostFilter": None,
        "Operation": ANY,
        "PermissionType": ANY,
    }
    return asking("DeleteAcls", Filters=[wanted])


# users, tokens and quotas


@case("SaslHandshake")
def sasl_handshake(asking: Asking) -> Any:
    """On a listener without logins."""
    return asking("SaslHandshake", Mechanism="PLAIN")["ErrorCode"]


@case("SaslAuthenticate")
def sasl_authenticate(asking: Asking) -> Any:
    return without(asking("SaslAuthenticate", AuthBytes=b"\0a\0b"), "SessionLifetimeMs")


@case("DescribeUserScramCredentials")
def describe_user_scram_credentials(asking: Asking) -> Any:
    """By name: to who may not, Kafka never answers about all of them."""
    users = [{"Name": name} for name in KINDS]
    return asking("DescribeUserScramCredentials", Users=users)


@case("AlterUserScramCredentials")
def alter_user_scram_credentials(asking: Asking) -> Any:
    deletions = [{"Name": name, "Mechanism": 1} for name in KINDS]
    return asking("AlterUserScramCredentials", Deletions=deletions, Upsertions=[])


@case("CreateDelegationToken")
def create_delegation_token(asking: Asking) -> Any:
    answer = asking("CreateDelegationToken", OwnerPrincipalType="User", OwnerPrincipalName="alice")
    return answer["ErrorCode"]


@case("RenewDelegationToken")
def renew_delegation_token(asking: Asking) -> Any:
    return asking("RenewDelegationToken", Hmac=b"hmac", RenewPeriodMs=1000)["ErrorCode"]


@case("ExpireDelegationToken")
def expire_delegation_token(asking: Asking) -> Any:
    return asking("ExpireDelegationToken", Hmac=b"hmac", ExpiryTimePeriodMs=-1)["ErrorCode"]


@case("DescribeDelegationToken")
def describe_delegation_token(asking: Asking) -> Any:
    return asking("DescribeDelegationToken", Owners=None)


@case("DescribeClientQuotas")
def describe_client_quotas(asking: Asking) -> Any:
    components = [{"EntityType": "user", "MatchType": 0, "Match": ALLOWED}]
    return asking("DescribeClientQuotas", Components=components, Strict=False)


@case("AlterClientQuotas")
def alter_client_quotas(asking: Asking) -> Any:
    entries = [
        {
            "Entity": [{"EntityType": "user", "EntityName": kind}],
            "Ops": [{"Key": "producer_byte_rate", "Value": 1000.0, "Remove": False}],
        }
        for kind in KINDS
    ]
    return asking("AlterClientQuotas", Entries=entries, ValidateOnly=True)
