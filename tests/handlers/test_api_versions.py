from __future__ import annotations

import struct

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest
from kbroker.requests.apis import APIS

API_VERSIONS = 18


def ask(cluster, version: int, name: str = "client", software_version: str = "1.0"):
    return cluster.send(ApiVersionsRequest(name, software_version), version)


@pytest.mark.parametrize("version", range(5))
def test_every_api_is_offered_with_its_versions(cluster, version):
    answer = ask(cluster, version)
    assert answer.error_code == ErrorCode.NONE
    offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert offered == {api.key: (api.min_version, api.max_version) for api in APIS}
    assert offered[API_VERSIONS] == (0, 4)


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_a_version_that_we_do_not_know_is_answered_at_version_0_with_those_that_we_do(cluster, version):
    header = struct.pack(">hhih", API_VERSIONS, version, 7, -1)
    answer = cluster.send_frame(header + b"\0\x02x\x02y\0", API_VERSIONS, 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.api_keys == [ApiVersion(API_VERSIONS, 0, 4)]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", "1"), ("spaced out", "1"), ("x", ""), ("-x-", "1"), ("x", "1.")],
)
def test_the_clients_software_has_a_name_and_a_version_of_letters_digits_dots_and_dashes(
    cluster, version, name, software_version
):
    answer = ask(cluster, version, name, software_version)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_the_broker_remembers_the_software_of_a_connection(cluster):
    ask(cluster, 2)
    assert cluster.session().client_software is None
    ask(cluster, 3, "x.y-z", "1.0-SNAPSHOT")
    assert cluster.session().client_software == ("x.y-z", "1.0-SNAPSHOT")


def test_features_that_may_be_off_are_shown_from_version_4_on(cluster):
    """Clients of version 3 cannot read a feature whose lowest level is 0."""
    shown = {version: ask(cluster, version).supported_features for version in range(5)}
    assert shown[0] == shown[1] == shown[2] == []
    assert {feature.name for feature in shown[3]} < {feature.name for feature in shown[4]}
    assert all(feature.min_version > 0 for feature in shown[3])


def test_features_in_force_are_shown_with_one_level_and_their_epoch(cluster):
    answer = ask(cluster, 4)
    features = {each.name: each for each in answer.finalized_features}
    transactions = features["transaction.version"]
    assert (transactions.min_version_level, transactions.max_version_level) == (2, 2)
    assert answer.finalized_features_epoch >= 0
