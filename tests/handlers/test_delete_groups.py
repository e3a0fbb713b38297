from __future__ import annotations

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest

from .some_groups import make_groups


@pytest.fixture(autouse=True)
def groups(cluster):
    make_groups(cluster)


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted(cluster, version):
    response = cluster.send(DeleteGroupsRequest(["busy", "simple", "missing", "busy"]), version)
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("simple", ErrorCode.NONE),
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert list(cluster.broker.groups.groups) == ["busy"]


def test_a_deletion_whose_client_goes_away_is_done_all_the_same(cluster, monkeypatch):
    stored = Pending()
    monkeypatch.setattr(cluster.broker.groups.offsets, "delete_group", lambda group_id: stored)
    cluster.send(DeleteGroupsRequest(["simple"]), 2).abandon()
    stored.resolve(None)
    assert list(cluster.broker.groups.groups) == ["busy"]
