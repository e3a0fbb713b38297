"""ApiVersions 0–4: which APIs and versions this broker answers, and its features (KIP-35, KIP-511, KIP-584).

A version newer than ours is answered at version 0 with UNSUPPORTED_VERSION and our range for ApiVersions
alone; the client then asks again. At version 3 only features whose minimum is above 0 may be listed: older
clients reject a 0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbroker.cluster import features
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kbroker.requests.apis import APIS, BY_KEY

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?\Z")


def handle(broker: Broker, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    own = BY_KEY[18]
    if not own.min_version <= context.api_version <= own.max_version:
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(own.key, own.min_version, own.max_version)],
        )
    if context.api_version >= 3:
        software = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.match(part) for part in software):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.peer.client_software = software
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api.key, api.min_version, api.max_version)
            for api in APIS
            if api.feature is None or broker.has_feature(api.feature)
        ],
        supported_features=[
            SupportedFeatureKey(feature.name, feature.min_level, feature.max_level)
            for feature in features.SUPPORTED
            if feature.min_level > 0 or context.api_version >= 4
        ],
        finalized_features_epoch=broker.features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name, level, level) for name, level in broker.features.finalized().items()
        ],
    )
