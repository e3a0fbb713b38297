"""Subscription by regular expression: RE2's syntax, whole names, no catastrophic patterns."""

from __future__ import annotations

import pytest

from kbroker.coordinators.groups.consumer.topic_regex import (
    MAX_PATTERN_LENGTH,
    matching_topics,
    validate_regex,
)
from kbroker.coordinators.groups.errors import InvalidRegularExpression

TOPICS = ["orders", "orders-eu", "payments", "my.orders"]


def test_the_whole_name_must_match():
    assert matching_topics("orders", TOPICS) == {"orders"}
    assert matching_topics("orders.*", TOPICS) == {"orders", "orders-eu"}
    assert matching_topics("^(orders|payments)$", TOPICS) == {"orders", "payments"}


@pytest.mark.parametrize("regex", ["a(b", "[a-", "*", r"(a)\1", "(?=a)", "(?<!a)b", "a{2000}"])
def test_what_re2_does_not_know_is_refused_with_the_reason(regex):
    with pytest.raises(InvalidRegularExpression) as refused:
        validate_regex(regex)
    assert f"SubscribedTopicRegex {regex} cannot be read: " in str(refused.value)


@pytest.mark.parametrize("regex", ["((a{100}){100}){100}", "x" * (MAX_PATTERN_LENGTH + 1)])
def test_a_pattern_that_is_too_large_is_refused(regex):
    with pytest.raises(InvalidRegularExpression):
        validate_regex(regex)


@pytest.mark.parametrize("regex", ["(a+)+$", "(a|aa)+$", "(.*)*b", "(x+x+)+y"])
def test_patterns_that_are_catastrophic_elsewhere_end(regex):
    # With a backtracking matcher this would not end before the sun does.
    matching_topics(regex, ["a" * 240 + "!", "x" * 249])


def test_ten_thousand_topics_are_matched():
    topics = [f"topic-{number}" for number in range(10_000)]
    assert len(matching_topics("topic-.*7", topics)) == 1_000
