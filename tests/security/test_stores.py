"""Key stores and trust stores in all kinds of files. Those in stores/ were made by Java's keytool."""

from __future__ import annotations

import builtins
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from kbroker.config.settings import Settings
from kbroker.security.tls.context import SETTINGS, Tls, make_tls
from kbroker.security.tls.errors import TlsError
from tests.support.certificates import Certificates

STORES = Path(__file__).with_name("stores")
STORE_PASSWORD, KEY_PASSWORD = "storesecret", "keysecret"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def made(**given: str) -> Tls:
    """Names of settings without `ssl_`, with underscores."""
    settings = Settings.load(flags={"ssl." + name.replace("_", "."): text for name, text in given.items()})
    return make_tls({name: settings[name] for name in SETTINGS})


def refusal(**given: str) -> str:
    with pytest.raises(TlsError) as error:
        made(**given)
    text = str(error.value)
    assert "\n" not in text
    assert "secret" not in text
    return text


def java_store(name: str, **more: str) -> dict[str, Any]:
    return {"keystore_location": str(STORES / name), "keystore_password": STORE_PASSWORD, **more}


def trusted_by(tls: Tls) -> int:
    return tls.context.cert_store_stats()["x509"]


def test_a_pem_file_has_key_and_chain_in_any_order(certificates, tmp_path):
    key, certificate = (certificates.broker.with_suffix(each).read_text() for each in (".key", ".crt"))
    for number, text in enumerate((key + certificate, f"Some words\n{certificate}\nmore\n{key}")):
        path = tmp_path / f"{number}.pem"
        path.write_text(text)
        tls = made(keystore_type="PEM", keystore_location=str(path))
        assert tls.identity.distinguished_name == "CN=localhost"
        assert tls.files == (str(path),)


def test_pem_texts_may_stand_on_one_line(certificates):
    key, certificate = (certificates.broker.with_suffix(each).read_text() for each in (".key", ".crt"))
    texts = [text.replace("\n", " ") for text in (key, certificate)]
    tls = made(keystore_type="PEM", keystore_key=texts[0], keystore_certificate_chain=texts[1])
    assert tls.identity.distinguished_name == "CN=localhost"
    assert tls.files == ()


def encrypted(certificates: Certificates, form: serialization.PrivateFormat) -> str:
    plain = certificates.broker.with_suffix(".key").read_bytes()
    key = serialization.load_pem_private_key(plain, None)
    protection = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
    return key.private_bytes(serialization.Encoding.PEM, form, protection).decode()


@pytest.mark.parametrize(
    "form", [serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL]
)
def test_an_encrypted_key_needs_its_password(certificates, tmp_path, form):
    path = tmp_path / "store.pem"
    path.write_text(encrypted(certificates, form) + certificates.broker.with_suffix(".crt").read_text())
    store = {"keystore_type": "PEM", "keystore_location": str(path)}
    assert made(**store, key_password=KEY_PASSWORD).identity.distinguished_name == "CN=localhost"
    assert f"{path}: the private key is encrypted; its password is missing" in refusal(**store)
    assert "its password is wrong" in refusal(**store, key_password="nosecret")


@pytest.mark.parametrize(
    ("name", "more"),
    [("broker.jks", {"key_password": KEY_PASSWORD}), ("broker.p12", {})],
)
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_stores_of_java_are_told_apart_by_what_is_in_them(name, more, kind):
    tls = made(**java_store(name, keystore_type=kind, **more))
    assert tls.identity.distinguished_name == "CN=localhost,O=Example"
    assert len(tls.identity.alternative_names) == 2


@pytest.mark.parametrize("name", ["trusted.jks", "trusted.p12"])
def test_trust_stores_of_java_have_all_their_certificates(name):
    store = java_store("broker.p12", keystore_type="PKCS12")
    trusted = {"truststore_location": str(STORES / name), "truststore_password": STORE_PASSWORD}
    assert trusted_by(made(**store, **trusted, client_auth="required")) == 2


def test_a_jks_trust_store_needs_no_password():
    store = java_store("broker.p12", keystore_type="PKCS12")
    path = str(STORES / "trusted.jks")
    assert trusted_by(made(**store, truststore_location=path, client_auth="required")) == 2


@pytest.mark.parametrize("name", ["broker.jks", "broker.p12"])
def test_a_wrong_password_is_told_without_it(name):
    given = java_store(name) | {"keystore_password": "nosecret"}
    assert "the password is wrong, or the file was changed" in refusal(**given)


def test_a_wrong_password_of_the_key_is_told_too():
    assert "the key's password is wrong" in refusal(**java_store("broker.jks"))


@pytest.mark.parametrize("name", ["broker.jks", "broker.p12"])
def test_a_damaged_store_is_told(name, tmp_path):
    path = tmp_path / name
    path.write_bytes((STORES / name).read_bytes()[:-30])
    assert str(path) in refusal(**java_store(name) | {"keystore_location": str(path)})


def test_a_file_that_is_no_store_is_told(tmp_path):
    path = tmp_path / "store"
    path.write_bytes(b"anything")
    assert "it is neither PKCS12 nor JKS" in refusal(**java_store("x") | {"keystore_location": str(path)})


def test_without_cryptography_pkcs12_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'kbroker[tls]'" in refusal(**java_store("broker.p12"))
    assert made(**java_store("broker.jks", key_password=KEY_PASSWORD))


def test_a_key_of_another_certificate_is_told(certificates, tmp_path):
    other = Certificates(tmp_path / "other")
    path = tmp_path / "mixed.pem"
    path.write_text(
        other.broker.with_suffix(".key").read_text() + certificates.broker.with_suffix(".crt").read_text()
    )
    text = refusal(keystore_type="PEM", keystore_location=str(path))
    assert text.endswith(": the private key is not that of the first certificate")


def test_a_certificate_of_an_intermediate_authority_in_the_trust_store_is_trusted(certificates):
    store = {"keystore_type": "PEM", "keystore_location": str(certificates.broker)}
    tls = made(
        **store, truststore_type="PEM", truststore_location=str(certificates.ca), client_auth="required"
    )
    assert tls.context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN


def test_versions_that_java_has_switched_off_are_passed_over(certificates):
    store = {"keystore_type": "PEM", "keystore_location": str(certificates.broker)}
    context = made(**store, enabled_protocols="TLSv1,TLSv1.1,TLSv1.2").context
    assert context.minimum_version == context.maximum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"keystore_key": "x"}, "one is missing"),
        ({"keystore_certificate_chain": "x"}, "one is missing"),
        ({"keystore_key": "x", "keystore_certificate_chain": "y"}, "are PEM, and this is JKS"),
        (
            {"keystore_type": "PEM", "keystore_key": "x", "keystore_certificate_chain": "y"},
            "no private key in it",
        ),
        ({"keystore_password": "nosecret"}, "ssl.keystore.location is not"),
        ({"keystore_type": "BKS", "keystore_location": "/x"}, "BKS is not one of JKS, PKCS12, PEM"),
        ({"keystore_location": "/x"}, "the key store /x needs it"),
        ({}, "TLS needs a key"),
    ],
)
def test_settings_that_do_not_go_together_are_told(given, reason):
    assert reason in refusal(**given)
