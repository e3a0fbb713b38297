"""A rebalance that one member holds up does not stop the others: they go on with the partitions they keep."""

from __future__ import annotations

import pytest

from compat.clients.confluent.members import Members, produce
from compat.harness.connection import Connection

PARTITIONS = 6
UNSETTLED = {
    "classic": {"PreparingRebalance", "CompletingRebalance"},
    "consumer": {"Assigning", "Reconciling"},
}


def state(bootstrap: str, group: str) -> str:
    with Connection(bootstrap) as connection:
        listed = connection.ask("ListGroups", 5, StatesFilter=[], TypesFilter=[])["Groups"]
    return next(str(each["GroupState"]) for each in listed if each["GroupId"] == group)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_reads_its_kept_partitions_while_another_holds_up_the_rebalance(
    kafka_server, new_topic, topic, members: Members, protocol: str
) -> None:
    cooperative = {"partition_assignment_strategy": "cooperative-sticky"} if protocol == "classic" else {}
    new_topic(PARTITIONS)
    for name in ("active", "stuck"):
        members.start(name, topic, protocol=protocol, **cooperative)
    members.poll_until(lambda: members.counts() == [3, 3])

    members.start("new", topic, protocol=protocol, **cooperative)
    others = ("active", "new")
    # "stuck" has a partition to give up and does not poll, so it never learns of it.
    members.poll_until(lambda: len(members.owned("active")) == 2, only=others)
    kept = {partition for _, partition in members.owned("active")}
    for round_number in range(3):
        values = [f"{round_number} {number}".encode() for number in range(PARTITIONS)]
        produce(kafka_server.bootstrap, topic, PARTITIONS, values)
        expected = {values[partition] for partition in kept}
        members.poll_until(lambda: expected <= {value for _, _, value in members.consumed}, only=others)  # noqa: B023
        assert {partition for _, partition in members.owned("active")} == kept
        assert members.counts() != [2, 2, 2]
        assert state(kafka_server.bootstrap, members.group) in UNSETTLED[protocol]

    members.poll_until(lambda: members.counts() == [2, 2, 2])
    members.poll_until(lambda: len(set(members.consumed)) == 3 * PARTITIONS)
    assert {partition for _, partition in members.owned("active")} == kept
