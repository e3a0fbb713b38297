"""Java's names of cipher suites."""

from __future__ import annotations

import ssl

import pytest

from kbroker.security.tls.cipher_suites import cipher_suites
from kbroker.security.tls.errors import TlsError

# Those of TLS 1.2 that Java enables, as far as OpenSSL has them at its usual level of security.
JAVAS = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": "DHE-RSA-AES128-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
}
ALL_OF_1_3 = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]


@pytest.mark.parametrize(("java", "openssl"), JAVAS.items())
def test_a_suite_is_the_one_that_openssl_calls_otherwise(java, openssl):
    found = cipher_suites([java])
    assert found is not None
    assert found.openssl_names == [openssl]
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(openssl)


def test_suites_of_both_versions_may_be_mixed():
    found = cipher_suites([*ALL_OF_1_3, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])
    assert found == (["ECDHE-RSA-AES128-GCM-SHA256"], True)


def test_no_suites_are_the_default():
    assert cipher_suites([]) is None
    assert cipher_suites(["TLS_EMPTY_RENEGOTIATION_INFO_SCSV"]) is None


def test_some_suites_of_tls_1_3_alone_cannot_be_had():
    with pytest.raises(TlsError, match="add TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256"):
        cipher_suites(ALL_OF_1_3[:1])
