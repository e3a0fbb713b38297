"""Share sessions: epochs, what is listed, what the end releases."""

from __future__ import annotations

import pytest

T = ("t", 0)
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


@pytest.mark.parametrize("wait_ms", [0, 300])
def test_the_first_fetch_of_nothing(same, wait_ms):
    def story(group):
        one = group.member()
        one.fetch(T, ("u", 0), MaxWaitMs=wait_ms)
        one.fetch(MaxWaitMs=wait_ms)

    same(story)


def test_later_answers_list_only_news(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, ("u", 0))
        one.fetch()
        one.fetch(("u", 1))
        one.fetch()
        group.produce("u", 5, partition=1)
        one.fetch()

    same(story)


def test_a_forgotten_partition_is_not_fetched_from(same):
    def story(group):
        group.produce("u", 10, partition=0)
        group.produce("u", 10, partition=1)
        one = group.member()
        one.fetch(("u", 0), ("u", 1))
        group.produce("u", 10, partition=0)
        group.produce("u", 10, partition=1)
        one.fetch(forget=[("u", 0)])
        one.fetch(("u", 0))

    same(story)


@pytest.mark.parametrize("epoch", [1, 2, 4, 7, -1, -2, 2**31 - 1])
def test_a_wrong_epoch_is_told_and_changes_nothing(same, epoch):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T)
        one.fetch()
        one.fetch(epoch=epoch)
        one.acknowledge({T: [(0, 9, [ACCEPT])]}, epoch=epoch)
        one.fetch(epoch=2)
        one.acknowledge({T: [(0, 9, [ACCEPT])]}, epoch=3)

    same(story)


def test_without_a_session_there_is_only_an_error(same):
    def story(group):
        one = group.member()
        one.fetch(T, epoch=1)
        one.fetch(epoch=-1)
        one.acknowledge(epoch=1)
        one.acknowledge(epoch=-1)
        one.acknowledge(epoch=0)
        one.fetch(T, epoch=0)
        one.acknowledge(epoch=0)
        one.fetch(epoch=1)
        one.fetch(epoch=-1)
        one.fetch(epoch=-1)
        one.acknowledge(epoch=-1)

    same(story)


def test_the_first_fetch_does_not_acknowledge(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(acks={T: [(0, 9, [ACCEPT])]}, epoch=0)
        one.fetch(T, epoch=0)

    same(story)


def test_the_last_fetch_acknowledges_and_fetches_nothing(same):
    def story(group):
        group.produce("t", 10, 10)
        one, two = group.member(), group.member()
        one.fetch(T)
        group.produce("t", 10)
        one.fetch(T, epoch=-1)
        one.fetch(epoch=-1, acks={T: [(0, 4, [ACCEPT])]})
        two.fetch(T, ("u", 0))
        two.fetch(("u", 1), epoch=-1, acks={T: [(5, 9, [ACCEPT])]})

    same(story)


@pytest.mark.parametrize("api", ["fetch", "acknowledge"])
def test_the_end_of_a_session_releases_what_the_member_holds(same, api):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        one.fetch(T)
        two.fetch(T)
        getattr(one, api)(acks={T: [(0, 3, [ACCEPT])]}, epoch=-1)
        two.fetch(MaxWaitMs=5_000)
        two.fetch()

    same(story)


def test_the_end_of_a_connection_releases_what_the_member_holds(same):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        one.fetch(T)
        two.fetch(T)
        one.connection.close()
        two.fetch(MaxWaitMs=5_000)

    same(story)


def test_another_connection_goes_on_with_the_session(same):
    def story(group):
        group.produce("t", 10, 10)
        one, two = group.member(), group.member()
        one.fetch(T, MaxRecords=10)
        other = group.connect()
        opened, one.connection = one.connection, other
        one.fetch(acks={T: [(0, 3, [ACCEPT])]})
        opened.close()
        two.fetch(T, MaxWaitMs=5_000)

    same(story)


def test_a_new_session_of_the_member_keeps_what_it_holds(same):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        one.fetch(T)
        one.fetch(T, epoch=0)
        two.fetch(T)
        one.acknowledge({T: [(0, 9, [ACCEPT])]}, epoch=1)

    same(story)


def test_what_is_forgotten_is_not_released_at_the_end(same):
    def story(group):
        group.produce("t", 10)
        group.produce("u", 10)
        one, two = group.member(), group.member()
        two.fetch(T, ("u", 0), MaxRecords=0)
        one.fetch(T, ("u", 0), MaxRecords=500)
        one.fetch(forget=[T])
        one.acknowledge(epoch=-1)
        two.fetch(MaxWaitMs=2_000)

    same(story)


def test_partitions_listed_to_carry_acknowledgements_belong_to_the_session(same):
    def story(group):
        group.produce("t", 10)
        group.produce("u", 10)
        one = group.member()
        one.fetch(T)
        one.fetch(acks={("u", 0): [(0, 9, [ACCEPT])]})
        one.fetch()

    same(story)


@pytest.mark.parametrize("api", ["fetch", "acknowledge"])
def test_an_epoch_that_was_refused_does_not_end_the_session(same, api):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T)
        getattr(one, api)(epoch=0) if api == "acknowledge" else one.fetch(epoch=5)
        one.fetch(epoch=1)

    same(story)
