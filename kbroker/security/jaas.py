"""JAAS login contexts, as sasl.jaas.config holds them: one module, its flag, its options, a semicolon.

org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_TOKEN = r"\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;\"']+))"
_FLAGS = ("required", "requisite", "sufficient", "optional")
_USER = "user_"


class JaasModule(NamedTuple):
    class_name: str
    options: Mapping[str, str]

    def users(self) -> dict[str, str]:
        """The passwords of Kafka's PlainLoginModule, by name."""
        return {
            name.removeprefix(_USER): value for name, value in self.options.items() if name.startswith(_USER)
        }


class BadJaas(ValueError):
    """Not a login context; the text says why, without what stands in it."""


def parse_jaas(text: str) -> JaasModule:
    tokens = _tokens(text.strip())
    if len(tokens) < 3 or tokens[-1] != ";":
        raise BadJaas("a login module, a flag, options and a semicolon at the end are expected")
    class_name, flag, *rest = tokens[:-1]
    if flag is None or flag.lower() not in _FLAGS:
        raise BadJaas(f"behind the login module one of {', '.join(_FLAGS)} is expected")
    if ";" in rest:
        raise BadJaas("only one login module is expected")
    options: dict[str, str] = {}
    for position in range(0, len(rest), 3):
        option = rest[position : position + 3]
        if len(option) < 3 or option[1] != "=":
            raise BadJaas(f"options are NAME=VALUE; the one at place {position // 3 + 1} is not")
        options[option[0]] = option[2]
    return JaasModule(class_name, options)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = re.compile(_TOKEN).match(text, position)
        if match is None:
            raise BadJaas("a quotation mark is not closed")
        quoted = match[1] if match[1] is not None else match[2]
        tokens.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else match[3] or match[4])
        position = match.end()
        while position < len(text) and text[position].isspace():
            position += 1
    return tokens
