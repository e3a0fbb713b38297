from __future__ import annotations

import pytest

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.context import Peer
from kbroker.requests.share_sessions import ShareSession, ShareSessions

T0, T1, T2 = ((b"t" * 16, number) for number in range(3))


@pytest.fixture
def peer() -> Peer:
    return Peer("PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 1))


@pytest.fixture
def ended() -> list[ShareSession]:
    return []


@pytest.fixture
def sessions(ended) -> ShareSessions:
    sessions = ShareSessions(lambda: 2)
    sessions.on_end = ended.append
    return sessions


@pytest.fixture
def fetch(sessions, peer):
    def fetch(epoch, *listed, member="m", forgotten=(), acknowledges=False, peer=peer):
        return sessions.begin_fetch(
            "g", member, epoch, peer, listed=listed, forgotten=forgotten, acknowledges=acknowledges
        )

    return fetch


def refused(code):
    return pytest.raises(ApiError, check=lambda error: error.code is code)


def test_every_request_has_the_next_epoch(sessions, fetch):
    session = fetch(0, T0)
    assert fetch(1) is session
    assert sessions.begin_acknowledge("g", "m", 2) is session
    with refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH):
        fetch(2)
    assert fetch(3) is session


def test_epochs_begin_again_at_one(fetch):
    session = fetch(0)
    session.epoch = 2**31 - 1
    fetch(2**31 - 1)
    assert session.epoch == 1


def test_partitions_are_listed_and_forgotten(fetch):
    session = fetch(0, T0, T1)
    fetch(1, T2, forgotten=[T0])
    assert list(session.partitions) == [T1, T2]


def test_what_is_new_is_told_once(fetch):
    session = fetch(0, T0)
    fetch(1, T1)
    assert not session.is_news(T0, has_records=False, failed=False)
    assert session.is_news(T1, has_records=False, failed=False)
    assert not session.is_news(T1, has_records=False, failed=False)


def test_the_recovery_from_an_error_is_told(fetch):
    session = fetch(0, T0)
    assert session.is_news(T0, has_records=False, failed=True)
    assert session.is_news(T0, has_records=False, failed=False)
    assert not session.is_news(T0, has_records=False, failed=False)


def test_every_partition_comes_first_in_its_turn(fetch):
    session = fetch(0, T0, T1, T2)
    assert [session.rotated(epoch)[0] for epoch in range(4)] == [T0, T1, T2, T0]
    assert sorted(session.rotated(5)) == [T0, T1, T2]


def test_the_first_fetch_does_not_acknowledge(fetch):
    with refused(ErrorCode.INVALID_REQUEST):
        fetch(0, T0, acknowledges=True)


def test_without_a_session_nothing_goes_on(sessions, fetch):
    for epoch in (1, -1):
        with refused(ErrorCode.SHARE_SESSION_NOT_FOUND):
            fetch(epoch)
        with refused(ErrorCode.SHARE_SESSION_NOT_FOUND):
            sessions.begin_acknowledge("g", "m", epoch)
    with refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH):
        sessions.begin_acknowledge("g", "m", 0)


def test_a_session_ends_once(sessions, fetch, peer, ended):
    session = fetch(0, T0)
    assert fetch(-1) is session
    sessions.end(session)
    peer.closed()
    assert ended == [session]
    assert not sessions.has_group("g")


def test_a_session_ends_with_its_connection(sessions, fetch, peer, ended):
    one, two = fetch(0, T0), fetch(0, T0, member="n")
    assert sessions.has_group("g")
    peer.closed()
    assert sorted(each.member_id for each in ended) == ["m", "n"]
    assert one.ended
    assert two.ended
    assert not len(sessions)


def test_a_new_session_of_a_member_takes_the_place_of_the_old_one(sessions, fetch, peer, ended):
    old = fetch(0, T0)
    other = Peer("PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 2))
    new = fetch(0, T1, peer=other)
    assert old.ended
    assert not ended
    peer.closed()
    assert not new.ended
    other.closed()
    assert ended == [new]


def test_there_may_be_so_many_sessions(fetch, peer):
    fetch(0, member="one")
    fetch(0, member="two")
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        fetch(0, member="three")
    fetch(0, member="two")
    peer.closed()
    fetch(0, member="three")


def many(number: int, first: int = 0) -> list[tuple[bytes, int]]:
    return [(b"t" * 16, first + each) for each in range(number)]


def test_a_session_lists_so_many_partitions(fetch):
    with refused(ErrorCode.INVALID_REQUEST):
        fetch(0, *many(10_001))
    session = fetch(0, *many(9_999))
    fetch(1, *many(10_000))
    with refused(ErrorCode.INVALID_REQUEST):
        fetch(2, (b"u" * 16, 0))
    assert len(session.partitions) == 10_000
    fetch(3, forgotten=[T0])  # the one that was refused counts, as clients count
    fetch(4, (b"u" * 16, 0))
    assert len(session.partitions) == 10_000


def test_all_sessions_list_so_many_partitions(fetch, sessions):
    one = fetch(0, *many(6_000), member="one")
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        fetch(0, *many(6_000), member="two")
    fetch(0, *many(4_000), member="two")
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        fetch(1, *many(1, 4_000), member="two")
    fetch(0, *many(4_000), member="two")  # in the place of the other one
    fetch(1, *many(4_000), member="two")
    fetch(1, member="one", forgotten=many(1))
    fetch(2, *many(1, 4_000), member="two")
    sessions.end(one)
    fetch(3, *many(9_000), member="two")
