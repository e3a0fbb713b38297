"""Subscription by regular expression: RE2's syntax, whole names, no catastrophic patterns."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from kbroker.coordinators.groups.errors import InvalidRegularExpression
from kbroker.coordinators.groups.topic_regex import (
    MAX_PATTERN_LENGTH,
    matching_topics,
    validate_regex,
)

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


CATASTROPHIC = ["(a+)+$", "(a|aa)+$", "(.*)*b", "(x+x+)+y"]
LONG_NAMES = ["a" * 240 + "!", "x" * 249]


def processor_time_is_enough(program: str, seconds: int) -> bool:
    """Whether a program ends within this time of a processor, however many others want one."""
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))\n{program}"
    code = subprocess.run([sys.executable, "-c", limited], check=False).returncode
    assert code in (0, -signal.SIGXCPU, -signal.SIGKILL)
    return code == 0


def test_patterns_that_are_catastrophic_elsewhere_end():
    """2 ** 240 steps of a backtracking matcher do not end on any machine; RE2 takes some thousand."""
    module = "from kbroker.coordinators.groups.topic_regex import matching_topics\n"
    matching = f"for regex in {CATASTROPHIC}: assert not matching_topics(regex, {LONG_NAMES})"
    assert processor_time_is_enough(module + matching, 20)
    backtracking = f"import re\nre.fullmatch({CATASTROPHIC[0]!r}, {LONG_NAMES[0]!r})"
    assert not processor_time_is_enough(backtracking, 1)


def test_ten_thousand_topics_are_matched():
    topics = [f"topic-{number}" for number in range(10_000)]
    assert len(matching_topics("topic-.*7", topics)) == 1_000
