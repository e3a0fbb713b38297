"""ApiVersions, and what happens to requests that nobody understands."""

from __future__ import annotations

import pytest

from compat.harness import wire
from compat.harness.connection import ConnectionClosed
from compat.harness.side import CLOSED, request_frame

GOOD = {"ClientSoftwareName": "compat", "ClientSoftwareVersion": "1.0"}


def test_every_version_answers_without_error(pair):
    pair.same(lambda side: {v: side.ask("ApiVersions", v, GOOD)["ErrorCode"] for v in range(5)})


def test_offered_apis_reach_kafkas_newest_versions(pair):
    """What kbroker offers it offers as far as Kafka does; below Kafka's oldest versions it may offer more."""

    def comparison(ours, kafkas):
        for key, (oldest, newest) in ours.items():
            if key in kafkas:
                assert newest == kafkas[key][1], f"API {key}"
                assert oldest <= kafkas[key][0], f"API {key}"

    pair.compare(lambda side: side.offered, comparison)


def test_supported_and_finalized_features_that_both_name_agree(pair):
    def features(side):
        answer = side.raw("ApiVersions", 4, GOOD)
        supported = {
            each["Name"]: (each["MinVersion"], each["MaxVersion"]) for each in answer["SupportedFeatures"]
        }
        finalized = {each["Name"]: each["MaxVersionLevel"] for each in answer["FinalizedFeatures"]}
        return supported, finalized

    def comparison(ours, kafkas):
        (supported, levels), (kafkas_supported, kafkas_levels) = ours, kafkas
        both = supported.keys() & kafkas_supported.keys()
        assert {name: supported[name] for name in both} == {name: kafkas_supported[name] for name in both}
        for name in levels:
            assert levels[name] <= kafkas_levels[name]

    pair.compare(features, comparison)


@pytest.mark.parametrize(
    "software",
    [
        {"ClientSoftwareName": "", "ClientSoftwareVersion": "1"},
        {"ClientSoftwareName": "spaced out", "ClientSoftwareVersion": "1"},
        {"ClientSoftwareName": "x", "ClientSoftwareVersion": ""},
        {"ClientSoftwareName": "-x-", "ClientSoftwareVersion": "1"},
        {"ClientSoftwareName": "x.y-z", "ClientSoftwareVersion": "1.0-SNAPSHOT"},
    ],
    ids=str,
)
def test_the_clients_name_and_version_are_checked(pair, software):
    pair.same(lambda side: [side.ask("ApiVersions", v, software)["ErrorCode"] for v in (3, 4)])


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_at_version_0(pair, version):
    def scenario(side):
        side.connection.send_body(18, version, b"\x02x\x02y\0", flexible=version >= 3)
        try:
            body = side.connection.receive(flexible=False)
        except ConnectionClosed:
            side.disconnect()
            return CLOSED
        return wire.decode(wire.apis()["ApiVersions"].response, 0, body)

    pair.same(scenario)


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (9999, 0),
        (-1, 0),
        (3, 99),
        (3, -1),
        (1, 99),
        (0, 99),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (52, 0),
        (58, 0),
        (67, 0),
    ],
)
def test_an_unknown_api_or_version_closes_the_connection(pair, key, version):
    def scenario(side):
        side.connection.send_bytes(request_frame(key, version, bytes(20)))
        try:
            side.connection.receive(flexible=False)
        except ConnectionClosed:
            side.disconnect()
            return CLOSED
        return "answered"

    pair.same(scenario)


@pytest.mark.parametrize(
    "content",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x04\x00\x03\x00\x01",
        request_frame(3, 1, b"\x00\x00"),
        request_frame(3, 1, b"\x7f\xff\xff\xff"),
    ],
    ids=["http", "tls", "size 0", "size -1", "size 2^31-1", "half a header", "short body", "huge count"],
)
def test_garbage_closes_the_connection(pair, content):
    def scenario(side):
        side.connection.send_bytes(content)
        try:
            side.connection.receive(flexible=False)
        except ConnectionClosed:
            side.disconnect()
            return CLOSED
        return "answered"

    pair.same(scenario)


def test_trailing_bytes_after_a_request_do_not_matter_or_do_on_both(pair):
    def scenario(side):
        side.connection.send_body(3, 1, b"\0\0\0\0" + bytes(7), flexible=False)
        try:
            side.connection.receive(flexible=False)
        except ConnectionClosed:
            side.disconnect()
            return CLOSED
        return "answered"

    pair.same(scenario)


def test_requests_of_one_connection_are_answered_in_order(pair):
    def scenario(side):
        correlation_ids = [side.connection.send("Metadata", 1, {"Topics": []}) for _ in range(20)]
        answered = []
        for _ in correlation_ids:
            frame = side.connection.receive_frame()
            answered.append(frame[:4])
        return [int.from_bytes(each, "big") - correlation_ids[0] for each in answered]

    pair.same(scenario)
