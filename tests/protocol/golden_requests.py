"""Requests with something in them, for every API: what the golden frames are asked with on a raw connection.

Written with the field names of Kafka's definitions, with the fields of all versions together.
"""

from __future__ import annotations

from typing import Any

from kbroker.protocol.records import Record, build_batch

TOPIC = "golden"


def request_values(topic_id: bytes) -> dict[str, dict[str, Any]]:
    batch = build_batch([Record(key=b"raw", value=b"value", timestamp=1700000000000)])
    name = {"Name": TOPIC, "TopicName": TOPIC, "Topic": TOPIC, "TopicId": topic_id}
    partition = {"Index": 0, "Partition": 0, "PartitionIndex": 0, "PartitionId": 0, "Records": batch}
    partition |= {"Timestamp": -1, "PartitionMaxBytes": 700, "LeaderEpoch": 0, "CommittedOffset": 1}
    topics = [{**name, "Partitions": [partition], "PartitionData": [partition], "PartitionIndexes": [0, 1]}]
    numbers = [{**name, "Partitions": [0, 1], "PartitionIndexes": [0, 1]}]
    group = {"GroupId": "raw", "Topics": topics, "MemberId": "", "GroupInstanceId": "i"}
    protocols = [{"Name": "range", "Metadata": b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"}]
    resource = {"ResourceType": 2, "ResourceName": TOPIC}
    config = {"Name": "retention.ms", "Value": "-1", "ConfigOperation": 0}
    members = [{"MemberId": "m", "GroupInstanceId": "i"}]
    transaction = {"TransactionalId": "raw", "ProducerId": 0, "ProducerEpoch": 0}
    transactions = [{"TransactionalId": "raw", "Topics": numbers}]
    acl = {"ResourceType": 2, "ResourceName": TOPIC, "Principal": "User:x", "Host": "*", "Operation": 3}
    acl |= {"PermissionType": 3, "ResourcePatternType": 3}
    acl_filter = {"ResourceTypeFilter": 1, "PatternTypeFilter": 1, "Operation": 1, "PermissionType": 1}
    entity = [{"EntityType": "user", "EntityName": None, "MatchType": 1, "Match": None}]
    share = {"GroupId": "raw", "MemberId": "AAAAAAAAAAAAAAAAAAAAAA", "Topics": numbers}
    states = [{**name, "Partitions": [{**partition, "StateEpoch": 0, "StartOffset": 0}]}]
    created = [{"Name": f"raw-{n}", "NumPartitions": 1, "ReplicationFactor": 1} for n in "ab"]
    return {
        "Produce": {"Acks": -1, "TimeoutMs": 5000, "TopicData": topics},
        "Fetch": {"ReplicaId": -1, "MaxWaitMs": 10, "MaxBytes": 700, "Topics": topics, "SessionEpoch": -1},
        "ListOffsets": {"ReplicaId": -1, "Topics": topics},
        "Metadata": {"Topics": [{"Name": TOPIC}], "IncludeTopicAuthorizedOperations": True},
        "OffsetCommit": {**group, "GenerationIdOrMemberEpoch": -1},
        "OffsetFetch": {**group, "Groups": [{"GroupId": "raw", "Topics": topics}]},
        "FindCoordinator": {"Key": "raw", "KeyType": 0, "CoordinatorKeys": ["raw", "other"]},
        "JoinGroup": {"GroupId": "raw-join", "SessionTimeoutMs": 6000, "RebalanceTimeoutMs": 6000}
        | {"ProtocolType": "consumer", "Protocols": protocols},
        "Heartbeat": group,
        "LeaveGroup": {**group, "Members": members},
        "SyncGroup": {**group, "Assignments": [{"MemberId": "m", "Assignment": b"x"}]},
        "DescribeGroups": {"Groups": ["raw", "python"], "IncludeAuthorizedOperations": True},
        "ApiVersions": {"ClientSoftwareName": "golden", "ClientSoftwareVersion": "1"},
        "SaslHandshake": {"Mechanism": "PLAIN"},
        "CreateTopics": {"Topics": created, "TimeoutMs": 5000, "ValidateOnly": True},
        "DeleteTopics": {"TopicNames": ["none"], "Topics": [{"Name": "none"}], "TimeoutMs": 5000},
        "DeleteRecords": {
            "Topics": [{**name, "Partitions": [{**partition, "Offset": 0}]}],
            "TimeoutMs": 5000,
        },
        "InitProducerId": {"TransactionalId": None, "TransactionTimeoutMs": 1000},
        "OffsetForLeaderEpoch": {"ReplicaId": -1, "Topics": topics},
        "AddPartitionsToTxn": {"V3AndBelowTransactionalId": "raw", "V3AndBelowTopics": numbers}
        | {"Transactions": transactions},
        "AddOffsetsToTxn": {**transaction, "GroupId": "raw"},
        "EndTxn": transaction,
        "TxnOffsetCommit": {**transaction, **group},
        "DescribeAcls": {**acl_filter, "ResourceNameFilter": None},
        "CreateAcls": {"Creations": [acl]},
        "DeleteAcls": {"Filters": [{**acl_filter, "PrincipalFilter": "User:x"}]},
        "DescribeConfigs": {
            "Resources": [{**resource, "ConfigurationKeys": ["retention.ms", "cleanup.policy"]}]
        }
        | {"IncludeSynonyms": True},
        "AlterConfigs": {"Resources": [{**resource, "Configs": [config]}], "ValidateOnly": True},
        "IncrementalAlterConfigs": {"Resources": [{**resource, "Configs": [config]}], "ValidateOnly": True},
        "AlterReplicaLogDirs": {"Dirs": [{"Path": "/none", "Topics": numbers}]},
        "DescribeLogDirs": {"Topics": numbers},
        "CreatePartitions": {
            "Topics": [{"Name": TOPIC, "Count": 9, "Assignments": None}],
            "ValidateOnly": True,
        },
        "CreateDelegationToken": {
            "Renewers": [{"PrincipalType": "User", "PrincipalName": "a"}],
            "MaxLifetimeMs": -1,
        },
        "RenewDelegationToken": {"Hmac": b"none", "RenewPeriodMs": 1000},
        "ExpireDelegationToken": {"Hmac": b"none", "ExpiryTimePeriodMs": 1000},
        "DescribeDelegationToken": {"Owners": None},
        "DeleteGroups": {"GroupsNames": ["none"]},
        "ElectLeaders": {"TopicPartitions": numbers, "TimeoutMs": 5000},
        "AlterPartitionReassignments": {"TimeoutMs": 5000, "Topics": topics},
        "ListPartitionReassignments": {"TimeoutMs": 5000, "Topics": None},
        "OffsetDelete": {"GroupId": "none", "Topics": topics},
        "DescribeClientQuotas": {"Components": entity, "Strict": False},
        "AlterClientQuotas": {
            "Entries": [{"Entity": entity, "Ops": [{"Key": "request_percentage", "Value": 9.5}]}]
        }
        | {"ValidateOnly": True},
        "DescribeUserScramCredentials": {"Users": None},
        "DescribeQuorum": {
            "Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]
        },
        "UpdateFeatures": {"timeoutMs": 5000, "ValidateOnly": True}
        | {"FeatureUpdates": [{"Feature": "none", "MaxVersionLevel": 1, "UpgradeType": 1}]},
        "DescribeCluster": {"IncludeClusterAuthorizedOperations": True},
        "DescribeProducers": {"Topics": [{"Name": TOPIC, "PartitionIndexes": [0, 1]}]},
        "UnregisterBroker": {"BrokerId": 77},
        "DescribeTransactions": {"TransactionalIds": ["perf", "none"]},
        "ListTransactions": {"StateFilters": ["Empty", "Ongoing", "none"]},
        "ConsumerGroupHeartbeat": {
            "GroupId": "raw-new",
            "MemberId": "AAAAAAAAAAAAAAAAAAAAAA",
            "MemberEpoch": 0,
        }
        | {"RebalanceTimeoutMs": 6000, "SubscribedTopicNames": [TOPIC], "TopicPartitions": []},
        "ConsumerGroupDescribe": {
            "GroupIds": ["raw-new", "rd-consumer"],
            "IncludeAuthorizedOperations": True,
        },
        "DescribeTopicPartitions": {"Topics": [{"Name": TOPIC}], "ResponsePartitionLimit": 1},
        "ShareGroupHeartbeat": {**share, "MemberEpoch": 0, "SubscribedTopicNames": [TOPIC]},
        "ShareGroupDescribe": {"GroupIds": ["raw"], "IncludeAuthorizedOperations": True},
        "DescribeShareGroupOffsets": {"Groups": [{"GroupId": "raw", "Topics": numbers}]},
        "AlterShareGroupOffsets": {"GroupId": "none", "Topics": states},
        "DeleteShareGroupOffsets": {"GroupId": "none", "Topics": [name]},
        "InitializeShareGroupState": {"GroupId": "state", "Topics": states},
        "ReadShareGroupState": {"GroupId": "state", "Topics": states},
        "WriteShareGroupState": {"GroupId": "state", "Topics": states},
        "ReadShareGroupStateSummary": {"GroupId": "state", "Topics": states},
        "DeleteShareGroupState": {"GroupId": "state", "Topics": states},
        "StreamsGroupHeartbeat": {"GroupId": "streams", "MemberId": "AAAAAAAAAAAAAAAAAAAAAA"}
        | {"RebalanceTimeoutMs": 6000, "ActiveTasks": [], "StandbyTasks": [], "WarmupTasks": []}
        | {"Topology": {"Epoch": 1, "Subtopologies": [{"SubtopologyId": "0", "SourceTopics": [TOPIC]}]}},
        "StreamsGroupDescribe": {"GroupIds": ["streams"], "IncludeAuthorizedOperations": True},
    }
