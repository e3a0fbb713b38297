"""ssl.principal.mapping.rules: from the distinguished name of a client's certificate to the name of its
principal.

Rules are separated by commas and tried in their order: ``DEFAULT`` takes the distinguished name as it is,
``RULE:pattern/replacement/`` one that the pattern matches as a whole, with ``L`` or ``U`` behind it in lower
or upper case. Patterns and replacements are Java's ($1, ${name}, \\$ for a dollar).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kbroker.security.tls.errors import TlsError

_SETTING = "ssl.principal.mapping.rules"
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = rf"\s*({_RULE})\s*(,\s*|$)"


class NoMatchingRule(ValueError):
    """No rule is for this distinguished name: its client is nobody."""


class PrincipalMapping:
    def __init__(self, rules: str) -> None:
        """Raises TlsError."""
        self._rules = [_rule(found[1]) for found in re.finditer(_SPLITTER, rules.strip()) if found[1]]

    def name(self, distinguished_name: str) -> str:
        for rule in self._rules:
            name = rule(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRule(f"no rule of {_SETTING} is for {distinguished_name}")


def _rule(text: str) -> Callable[[str], str | None]:
    found = re.match(_RULE, text)
    if found is None or found.end() != len(text):
        raise TlsError(f"{_SETTING}: {text} is neither DEFAULT nor RULE:pattern/replacement/")
    if found[1] is not None:
        return lambda name: name
    replacement, case = found[3], found[4]
    try:
        pattern = re.compile(_from_java(found[2]))
    except re.error as error:
        raise TlsError(f"{_SETTING}: {found[2]} is not a pattern: {error}") from None

    def apply(name: str) -> str | None:
        if pattern.fullmatch(name) is None:
            return None
        mapped = pattern.sub(lambda match: _replaced(replacement, match), name)
        return mapped.lower() if case == "L" else mapped.upper() if case == "U" else mapped

    return apply


def _from_java(pattern: str) -> str:
    """A named group is written otherwise, and a dot does not stand for any end of a line."""

    def each(part: re.Match[str]) -> str:
        if part[0] == ".":
            return r"[^\n\r\u0085\u2028\u2029]"
        return "(?P<" if part[0] == "(?<" else part[0]

    return re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<(?=[A-Za-z])|\.", each, pattern)


def _replaced(replacement: str, match: re.Match[str]) -> str:
    """What Java puts in place of a match. A group that there is none of stands for itself."""
    groups = match.re.groups

    def each(part: re.Match[str]) -> str:
        if part[1] is not None:  # escaped
            return part[1]
        if part[2] is not None:  # a group's name
            return match[part[2]] or ""
        digits = part[3]
        number = int(digits[0])
        taken = 1
        if number > groups:
            return f"${digits}"
        # Java takes as many digits as still make a group.
        while taken < len(digits) and number * 10 + int(digits[taken]) <= groups:
            number = number * 10 + int(digits[taken])
            taken += 1
        return (match[number] or "") + digits[taken:]

    return re.sub(r"\\(.)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|\$(\d+)", each, replacement)
