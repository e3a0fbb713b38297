"""Brokers with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.harness.brokers import KBROKER, SETTINGS, Server, new_kbroker
from compat.harness.kafka import RealKafka

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
EVERYBODY_MAY_WHAT_NO_ACL_SPEAKS_OF = {**AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
ANONYMOUS_MAY_EVERYTHING = {**AUTHORIZER, "super.users": "User:ANONYMOUS"}


@contextmanager
def one(name: str, settings: dict[str, str]) -> Iterator[Server]:
    """The broker of this name."""
    server: Server = (new_kbroker if name == KBROKER else RealKafka)({**SETTINGS, **settings})
    with server:
        yield server
