from __future__ import annotations

import pytest

from kbroker.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

T = 1_699_999_000_000


@pytest.fixture(autouse=True)
def topics(cluster):
    cluster.create("a", partitions=2)
    cluster.create("b")
    cluster.produce("a", T, partition=1)


@pytest.fixture
def sizes(cluster):
    def sizes(topics, version: int = 5):
        (directory,) = cluster.send(DescribeLogDirsRequest(topics=topics), version).results
        assert (directory.error_code, directory.log_dir) == (0, cluster.logs.path)
        return {
            (topic.name, partition.partition_index): partition.partition_size
            for topic in directory.topics
            for partition in topic.partitions
        }

    return sizes


@pytest.mark.parametrize("version", range(6))
def test_null_means_all_partitions_also_those_without_data(cluster, sizes, version):
    size = cluster.broker.find_log("a", 1).size_bytes
    assert size > 0
    assert sizes(None, version) == {("a", 0): 0, ("a", 1): size, ("b", 0): 0}


def test_partitions_that_do_not_exist_are_left_out(sizes):
    asked = [
        DescribableLogDirTopic("a", [0, 9, 0, -1]),
        DescribableLogDirTopic("nope", [0]),
        DescribableLogDirTopic("b", []),
    ]
    assert set(sizes(asked)) == {("a", 0)}
    assert sizes([]) == {}


def test_the_size_of_the_volume_comes_with_version_4(cluster):
    request = DescribeLogDirsRequest(topics=[])
    (old,) = cluster.send(request, 3).results
    (new,) = cluster.send(request, 4).results
    assert (old.total_bytes, old.usable_bytes) == (-1, -1)
    assert (new.total_bytes, new.usable_bytes) == (cluster.logs.total_bytes(), cluster.logs.usable_bytes())
