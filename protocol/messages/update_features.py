"""UpdateFeatures, API key 57."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, STRING, Array


@struct
class FeatureUpdateKey:
    feature: str = field(STRING)
    max_version_level: int = field(INT16)
    allow_downgrade: bool = field(BOOL, until=0)
    upgrade_type: int = field(INT8, since=1, default=1)


@message(api_key=57, kind="request", versions=(0, 2), flexible=0)
class UpdateFeaturesRequest:
    timeout_ms: int = field(INT32, default=60000)
    feature_updates: list[FeatureUpdateKey] = field(Array(FeatureUpdateKey))
    validate_only: bool = field(BOOL, since=1)


@struct
class UpdatableFeatureResult:
    feature: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)


@message(api_key=57, kind="response", versions=(0, 2), flexible=0)
class UpdateFeaturesResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    results: list[UpdatableFeatureResult] = field(Array(UpdatableFeatureResult), until=1, ignorable=True)
