"""A kbroker with ACLs that is killed, or stopped, and started again: they hold from its first request on."""

from __future__ import annotations

import pytest

from compat.differential.acls.users import ADMIN, NOBODY, Door, everywhere
from compat.harness.broker import KBrokerProcess
from compat.harness.side import Side

SETTINGS = {"authorizer.class.name": "kbroker", "allow.everyone.if.no.acl.found": "true"}
CLUSTER_AUTHORIZATION_FAILED = 31


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_acls_survive(how: str) -> None:
    with KBrokerProcess(SETTINGS) as server:
        before = Door(Side(server))
        before.create_acls(everywhere(2, ADMIN.host))
        before.close()
        getattr(server, how)()
        server.start()
        after = Door(Side(server))
        asked = {"ResourceTypeFilter": 1, "PatternTypeFilter": 1, "Operation": 1, "PermissionType": 1}
        nothing = {"ResourceNameFilter": None, "PrincipalFilter": None, "HostFilter": None}
        assert len(after.raw(ADMIN, "DescribeAcls", 3, {**asked, **nothing})["Resources"]) == 6
        refused = after.raw(NOBODY, "DescribeAcls", 3, {**asked, **nothing})
        assert refused["ErrorCode"] == CLUSTER_AUTHORIZATION_FAILED
        after.close()
