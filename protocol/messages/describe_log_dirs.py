"""DescribeLogDirs, API key 35."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT16, INT32, INT64, STRING, Array


@struct
class DescribableLogDirTopic:
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@message(api_key=35, kind="request", versions=(0, 5), flexible=2)
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = field(Array(DescribableLogDirTopic), nullable_since=0)


@struct
class DescribeLogDirsPartition:
    partition_index: int = field(INT32)
    partition_size: int = field(INT64)
    offset_lag: int = field(INT64)
    is_future_key: bool = field(BOOL)


@struct
class DescribeLogDirsTopic:
    name: str = field(STRING)
    partitions: list[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition))


@struct
class DescribeLogDirsResult:
    error_code: int = field(INT16)
    log_dir: str = field(STRING)
    topics: list[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic))
    total_bytes: int = field(INT64, since=4, default=-1, ignorable=True)
    usable_bytes: int = field(INT64, since=4, default=-1, ignorable=True)
    is_cordoned: bool = field(BOOL, since=5, ignorable=True)


@message(api_key=35, kind="response", versions=(0, 5), flexible=2)
class DescribeLogDirsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult))
