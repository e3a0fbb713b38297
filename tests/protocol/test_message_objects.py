"""Message objects: slotted, mutable, with a default for every field, comparable by value."""

from __future__ import annotations

import copy
import pickle

import pytest
from declared_messages import each_message

from kbroker.protocol.message import schema_of
from kbroker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from kbroker.protocol.messages.produce import ProduceRequest


@each_message
def test_every_field_has_a_default(cls):
    message = cls()
    assert all(hasattr(message, f.name) for f in schema_of(cls))
    assert not hasattr(message, "__dict__")


def test_fields_are_set_by_name_or_position():
    assert FetchPartition(3, fetch_offset=7) == FetchPartition(partition=3, fetch_offset=7)
    with pytest.raises(TypeError, match="no_such_field"):
        FetchPartition(no_such_field=1)
    with pytest.raises(AttributeError):
        FetchPartition().no_such_field = 1


def test_lists_are_not_shared_between_objects():
    first = FetchRequest()
    first.topics.append(FetchTopic())
    assert FetchRequest().topics == []


def test_the_shared_default_of_a_tagged_struct_cannot_be_changed():
    first, second = PartitionData(), PartitionData()
    assert first.current_leader is second.current_leader
    with pytest.raises(AttributeError, match="assign a new LeaderIdAndEpoch"):
        first.current_leader.leader_id = 1
    first.current_leader = LeaderIdAndEpoch(leader_id=1)
    assert second.current_leader == LeaderIdAndEpoch()


def test_equality_is_by_class_and_value():
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=0)
    assert ProduceRequest() != FetchRequest()
    with pytest.raises(TypeError):
        hash(ProduceRequest())


def test_repr_shows_the_fields():
    assert repr(LeaderIdAndEpoch(leader_id=1)) == "LeaderIdAndEpoch(leader_id=1, leader_epoch=-1)"


def test_messages_can_be_copied_and_pickled():
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(1)])])
    assert copy.deepcopy(request) == request
    assert pickle.loads(pickle.dumps(request)) == request
