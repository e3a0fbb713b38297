from __future__ import annotations

import pytest

from kbroker.cluster.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kbroker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


@pytest.fixture
def update(cluster):
    def update(*updates: tuple[str, int, int], version: int = 2, validate_only: bool = False):
        keys = [FeatureUpdateKey(name, level, upgrade_type=kind) for name, level, kind in updates]
        request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
        return cluster.send(request, version)

    return update


def test_a_feature_can_be_switched_off_and_on_again(cluster, update):
    features = cluster.broker.features
    before = features.epoch
    assert update(("group.version", 0, SAFE_DOWNGRADE)).error_code == ErrorCode.NONE
    assert features.level("group.version") == 0
    assert "group.version" not in features.finalized()
    assert features.epoch > before
    assert update(("group.version", 1, UPGRADE)).error_code == ErrorCode.NONE
    assert features.finalized()["group.version"] == 1


def test_a_changed_level_outlives_a_restart(cluster, update, settings):
    update(("group.version", 0, SAFE_DOWNGRADE))
    epoch = cluster.broker.features.epoch
    cluster.broker = cluster.start(settings)
    assert cluster.broker.features.level("group.version") == 0
    assert cluster.broker.features.epoch == epoch


def test_validate_only_changes_nothing(cluster, update):
    assert update(("group.version", 0, SAFE_DOWNGRADE), validate_only=True).error_code == ErrorCode.NONE
    assert cluster.broker.features.level("group.version") == 1


@pytest.mark.parametrize(
    "refused",
    [
        ("group.version", 2, UPGRADE),
        ("group.version", 0, UPGRADE),
        ("group.version", -1, SAFE_DOWNGRADE),
        ("group.version", 1, 0),
        ("group.version", 1, 9),
        ("no.such.feature", 1, UPGRADE),
        ("no.such.feature", 0, SAFE_DOWNGRADE),
        ("metadata.version", 31, UPGRADE),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
        ("metadata.version", 6, UNSAFE_DOWNGRADE),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_one_update_that_is_not_permitted_spoils_them_all(cluster, update, refused, version):
    response = update(("group.version", 0, SAFE_DOWNGRADE), refused, version=version)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused[0] in response.error_message
    assert response.results == []
    assert cluster.broker.features.level("group.version") == 1


def test_a_downgrade_cannot_raise_a_level(update):
    update(("group.version", 0, SAFE_DOWNGRADE))
    assert update(("group.version", 1, SAFE_DOWNGRADE)).error_code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("kind", [UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_the_level_a_feature_already_has_is_permitted(update, kind):
    assert update(("metadata.version", 30, kind)).error_code == ErrorCode.NONE


def test_versions_0_and_1_answer_per_feature(update):
    for version in (0, 1):
        (result,) = update(("group.version", 1, UPGRADE), version=version).results
        assert (result.feature, result.error_code) == ("group.version", ErrorCode.NONE)


def test_version_0_has_upgrades_only(cluster):
    keys = [FeatureUpdateKey("group.version", 0, allow_downgrade=True)]
    response = cluster.send(UpdateFeaturesRequest(feature_updates=keys), 0)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_without_group_version_there_are_no_consumer_groups(cluster, update):
    update(("group.version", 0, SAFE_DOWNGRADE))
    heartbeat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
    assert cluster.send(heartbeat, 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    (group,) = cluster.send(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
    assert (group.group_id, group.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)
