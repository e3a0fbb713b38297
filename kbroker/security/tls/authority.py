"""A private certificate authority, for development and tests: it signs certificates of brokers and of
clients.

Needs `cryptography`, which the extra kbroker[tls] brings.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CLOCK_SKEW = datetime.timedelta(hours=1)


class Issued(NamedTuple):
    key: str
    """In PEM, not encrypted."""
    certificate: str
    """In PEM."""


class Authority:
    def __init__(self, now: datetime.datetime, days: int, name: str = "kbroker development CA") -> None:
        self._now = now
        self._days = days
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = _key_usage(sign_certificates=True)
        self._certificate = builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    @property
    def own(self) -> Issued:
        return Issued(_key_text(self._key), _certificate_text(self._certificate))

    def issue_broker(self, hosts: Sequence[str], common_name: str | None = None) -> Issued:
        """For a broker that clients reach by these names and addresses. It may be a client, too."""
        alternative = [_general_name(host) for host in hosts]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name or hosts[0])])
        return self.issue(name, usages, alternative)

    def issue_client(self, name: str) -> Issued:
        """For a client whose principal will be User:CN=name."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self.issue(subject, [ExtendedKeyUsageOID.CLIENT_AUTH], [])

    def issue(
        self,
        subject: x509.Name,
        usages: Sequence[x509.ObjectIdentifier],
        alternative: Sequence[x509.GeneralName],
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(sign_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if alternative:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
        return Issued(_key_text(key), _certificate_text(builder.sign(self._key, hashes.SHA256())))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _CLOCK_SKEW)
            .not_valid_after(self._now + datetime.timedelta(days=self._days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _key_text(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _certificate_text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
