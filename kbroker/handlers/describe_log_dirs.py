"""DescribeLogDirs 0–5: the data directory and the size of the partitions in it (KIP-113).

There is one data directory. Partitions that do not exist are left out; one without data has size 0.
Version 3 adds the error code of the whole answer, version 4 the size of the volume (KIP-827), version 5
whether the directory is cordoned (KIP-1066), which it never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kbroker.requests.long_requests import Steps, lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_FIRST_WITH_ERROR_CODE = 3


def handle(
    broker: Broker, request: DescribeLogDirsRequest, context: RequestContext
) -> Steps[DescribeLogDirsResponse]:
    resources = broker.resources(context).of_cluster(AclOperation.DESCRIBE)
    directory = resources.log_directory(AclOperation.DESCRIBE)
    asked = request.topics
    if asked is None:
        partitions = {
            topic.name: list(range(topic.partitions)) for topic in resources.topics(AclOperation.DESCRIBE)
        }
    else:
        partitions = yield from _existing(resources, asked)
    sizes = {(size.topic, size.partition): size.size_bytes for size in directory.sizes()}
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=directory.path,
                topics=lazily(list(partitions.items()), lambda each: _topic(*each, sizes)),
                total_bytes=directory.total_bytes(),
                usable_bytes=directory.usable_bytes(),
            )
        ]
    )


def _existing(resources: Resources, asked: list[DescribableLogDirTopic]) -> Steps[dict[str, list[int]]]:
    """The partitions of the request that exist, each once."""
    partitions: dict[str, dict[int, None]] = {}
    for each in asked:
        topic = resources.find_topic(each.topic, AclOperation.DESCRIBE)
        if topic is not None and each.partitions:
            indexes = partitions.setdefault(topic.name, {})
            indexes.update(
                dict.fromkeys(sorted(index for index in each.partitions if 0 <= index < topic.partitions))
            )
        yield None
    return {topic: list(indexes) for topic, indexes in partitions.items() if indexes}


def _topic(name: str, indexes: list[int], sizes: dict[tuple[str, int], int]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=name,
        partitions=lazily(
            indexes,
            lambda index: DescribeLogDirsPartition(
                partition_index=index, partition_size=sizes.get((name, index), 0)
            ),
        ),
    )


def refuse(
    request: DescribeLogDirsRequest, context: RequestContext, error: BaseException
) -> DescribeLogDirsResponse:
    code, _ = describe(error)
    response = DescribeLogDirsResponse(error_code=code)
    # Who may not ask gets an answer without a directory, whether it can say why or not.
    if context.api_version < _FIRST_WITH_ERROR_CODE and code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        response.results.append(DescribeLogDirsResult(error_code=code))
    return response
