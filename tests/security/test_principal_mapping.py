"""ssl.principal.mapping.rules. compat/differential/tls compares many more with Kafka's own."""

from __future__ import annotations

import pytest

from kbroker.security.tls.errors import TlsError
from kbroker.security.tls.principal_mapping import NoMatchingRule, PrincipalMapping

NAME = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", NAME),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L", "duke@serviceusers"),
        ("RULE:^CN=nobody$/x/, RULE:^CN=(.*?),OU=(.*?),.*$/$2.$1/U, DEFAULT", "SERVICEUSERS.DUKE"),
        (r"RULE:^CN=(.*?),.*$/a\/\$$1/", "a/$Duke"),
    ],
)
def test_the_first_rule_that_matches_gives_the_name(rules, name):
    assert PrincipalMapping(rules).name(NAME) == name


def test_without_a_rule_that_matches_there_is_no_name():
    with pytest.raises(NoMatchingRule, match=NAME):
        PrincipalMapping("RULE:^CN=nobody$/x/").name(NAME)


@pytest.mark.parametrize(
    "rules", ["default", "RULE:", "RULE:a/b", "RULE:a/b/LU", "RULE:[/x/", "DEFAULT,nonsense"]
)
def test_rules_that_are_none_are_refused(rules):
    with pytest.raises(TlsError, match=r"ssl\.principal\.mapping\.rules: "):
        PrincipalMapping(rules)
