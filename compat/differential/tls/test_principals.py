"""The names of principals: Kafka's own mapper and Java's own certificates, beside ours."""

from __future__ import annotations

import base64
import datetime
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from compat.harness import jars, java
from kbroker.security.tls.authority import Authority
from kbroker.security.tls.certificate import identity
from kbroker.security.tls.errors import TlsError
from kbroker.security.tls.pem import certificates
from kbroker.security.tls.principal_mapping import NoMatchingRule, PrincipalMapping

pytestmark = pytest.mark.java

CN, ORG, OU, C = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COUNTRY_NAME,
)
TITLE, EMAIL, SERIAL = NameOID.TITLE, NameOID.EMAIL_ADDRESS, NameOID.SERIAL_NUMBER
UID, DC, STREET = NameOID.USER_ID, NameOID.DOMAIN_COMPONENT, NameOID.STREET_ADDRESS

SUBJECTS = {
    "plain": [[(CN, "alice")]],
    "several": [[(C, "DE")], [(ORG, "Example")], [(OU, "Dev")], [(CN, "bob")]],
    "commas and quotes": [[(ORG, 'Sue, "Grabbit" and Runn')], [(CN, 'a+b<c>d;e#f=g\\h"')]],
    "a number sign first": [[(CN, "#leading")]],
    "blanks at both ends": [[(CN, "  two  ")], [(ORG, " ")]],
    "UTF-8": [[(ORG, "Žluťoučký kůň")], [(CN, "Jörg 漢字 😀")]],
    "control characters": [[(CN, "tab\there\x00nul\r")]],
    "several in one": [[(CN, "multi"), (UID, "m1"), (OU, "Ops")], [(ORG, "Example")]],
    "types with numbers": [[(EMAIL, "me@example.org")], [(SERIAL, "42")], [(TITLE, "Dr")], [(CN, "carol")]],
    "types with names": [[(DC, "org")], [(DC, "example")], [(STREET, "1 Main St")], [(UID, "u")]],
    "a type of one's own": [[(ObjectIdentifier("1.3.6.1.4.1.99999.1"), "mine")], [(CN, "dora")]],
}
TAGS = {
    "printable": _ASN1Type.PrintableString,
    "IA5": _ASN1Type.IA5String,
    "T61": _ASN1Type.T61String,
    "BMP": _ASN1Type.BMPString,
    "universal": _ASN1Type.UniversalString,
}
RULES = [
    "DEFAULT",
    "RULE:^CN=([^,]+).*$/$1/",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L,DEFAULT",
    "RULE:^CN=(.*?),.*$/$1/U , RULE:^.*CN=([a-z]+)$/$1/L, DEFAULT",
    "RULE:.*/whole/",
    "RULE:^CN=(.).*$/$1$2$10\\$1/,DEFAULT",
    "RULE:^(?<first>..).*$/${first}-${first}/L",
    "RULE:CN=alice/a\\/b/",
    "RULE:^CN=bob$/x/",
    "",
    "DEFAULT,RULE:x/y/",
    "RULE:^CN=([a-z]+)$/$1/L/trailing words,DEFAULT",
    "nonsense",
    "RULE:missing",
    "DEFAULT ,  , DEFAULT",
]


def subject(parts: list[list[tuple[ObjectIdentifier, str]]]) -> x509.Name:
    return x509.Name(
        [
            x509.RelativeDistinguishedName(
                [x509.NameAttribute(kind, value, _validate=False) for kind, value in part]
            )
            for part in parts
        ]
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("certificates")
    authority = Authority(datetime.datetime.now(datetime.UTC), 1)
    names = {name: subject(parts) for name, parts in SUBJECTS.items()}
    for name, tag in TAGS.items():
        attribute = x509.NameAttribute(CN, "tag, " + name, tag, _validate=False)
        names[f"tag {name}"] = x509.Name([attribute])
    paths = {}
    for name, each in names.items():
        paths[name] = directory / f"{name.replace(' ', '-')}.pem"
        issued = authority.issue(each, [ExtendedKeyUsageOID.CLIENT_AUTH], [])
        paths[name].write_text(issued.certificate)
    return paths


def in_java(lines: list[tuple[Path, str]], directory: Path) -> list[str]:
    classpath = jars.classpath("kafka")
    classes = java.compile_sources([Path(__file__).with_name("Principals.java")], "principals", classpath)
    asked = directory / "asked"
    asked.write_text("".join(f"{path}\t{rules}\n" for path, rules in lines))
    command = java.command("Principals", [str(asked)], classpath=f"{classes}:{classpath}", heap_mb=128)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return [base64.b64decode(line).decode() for line in done.stdout.splitlines()]


def here(path: Path, rules: str) -> str:
    (certificate,) = certificates(path.read_text())
    try:
        return PrincipalMapping(rules).name(identity(certificate).distinguished_name)
    except NoMatchingRule:
        return "!NoMatchingRule"
    except TlsError:
        return "!IllegalArgumentException"


def test_distinguished_names_and_mapped_names_are_those_of_kafka(
    made: dict[str, Path], tmp_path: Path
) -> None:
    asked = [(path, rules) for path in made.values() for rules in RULES]
    expected = in_java(asked, tmp_path)
    found = [here(path, rules) for path, rules in asked]
    different = [
        (path.stem, rules, kafka, ours)
        for (path, rules), kafka, ours in zip(asked, expected, found, strict=True)
        if kafka != ours
    ]
    assert not different, "\n".join(map(str, different))
