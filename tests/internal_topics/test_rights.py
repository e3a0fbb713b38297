"""Internal topics under ACLs: like any other topic."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from kbroker.protocol.messages.metadata import MetadataRequest
from tests.handlers.some_acls import AUTHORIZED

from .reader import OFFSETS, fetch


@pytest.fixture
def settings() -> dict[str, str]:
    return AUTHORIZED


def test_who_may_not_read_it_is_refused(cluster):
    _ = cluster.broker.groups
    assert cluster.broker.topics.get(OFFSETS) is not None
    assert fetch(cluster, OFFSETS, 0, 0).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert cluster.send(MetadataRequest(None), 12).topics == []


def test_who_may_not_look_for_a_coordinator_does_not_make_it(cluster):
    answer = cluster.send(FindCoordinatorRequest("g", 0), 2)
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert cluster.broker.topics.get(OFFSETS) is None
