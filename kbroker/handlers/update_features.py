"""UpdateFeatures 0–2: raise or lower the levels of cluster features (KIP-584, KIP-778, KIP-1022).

All updates are applied or none. Version 0 knows upgrades only, whatever its AllowDowngrade says;
version 1 adds downgrades and validate-only, version 2 drops the result per feature. A metadata.version
cannot be lowered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.cluster.features import FeatureUpdate
from kbroker.errors import describe
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: UpdateFeaturesRequest, context: RequestContext
) -> UpdateFeaturesResponse | Pending[UpdateFeaturesResponse]:
    features = broker.resources(context).features(AclOperation.ALTER)
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    ]
    try:
        for update in updates:
            features.check(update)
    except ApiError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    results = [UpdatableFeatureResult(update.name, 0, "NONE") for update in updates]
    response = UpdateFeaturesResponse(error_message=None, results=results)
    if request.validate_only or not updates:
        return response
    return mapped(features.apply(updates), lambda _: response)


def refuse(
    request: UpdateFeaturesRequest, context: RequestContext, error: BaseException
) -> UpdateFeaturesResponse:
    code, message = describe(error)
    return UpdateFeaturesResponse(error_code=code, error_message=message)
