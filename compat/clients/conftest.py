"""Brokers with TLS and with logins, for clients of every kind, and the certificates that go with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pytest

from compat.harness import sasl
from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import APACHE, KBROKER, SETTINGS, selected_brokers
from compat.harness.kafka import RealKafka
from compat.harness.sasl import SaslServer
from compat.harness.tls import TlsKafka, TlsKbroker, TlsServer, store_settings
from tests.support.certificates import Certificates

NOTHING: Mapping[str, str] = MappingProxyType({})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On the brokers that KBROKER_COMPAT selects."""
    for name in ("tls_server", "mutual_tls_server", "one_version_tls_server"):
        if name in metafunc.fixturenames:
            brokers = [
                pytest.param(each, marks=pytest.mark.java if each == APACHE else ())
                for each in selected_brokers()
            ]
            metafunc.parametrize(name, brokers, indirect=True, scope="module")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Those of another authority."""
    return Certificates(tmp_path_factory.mktemp("strangers"), "another CA")


def _started(name: str, settings: dict[str, str]) -> Any:
    return TlsKafka(settings) if name == APACHE else TlsKbroker(settings)


@pytest.fixture(scope="module")
def tls_server(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[TlsServer]:
    """Lets everybody in."""
    with _started(request.param, store_settings(certificates)) as server:
        yield server


@pytest.fixture(scope="module")
def mutual_tls_server(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[TlsServer]:
    """Lets those in that show a certificate."""
    with _started(request.param, store_settings(certificates, "required")) as server:
        yield server


@pytest.fixture(scope="module", params=["TLSv1.2", "TLSv1.3"])
def tls_version(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return version


@pytest.fixture(scope="module")
def one_version_tls_server(
    request: pytest.FixtureRequest, certificates: Certificates, tls_version: str
) -> Iterator[TlsServer]:
    """Speaks `tls_version` alone, for clients that cannot be told to."""
    settings = store_settings(certificates) | {"ssl.enabled.protocols": tls_version}
    with _started(request.param, settings) as server:
        yield server


@pytest.fixture(scope="session", params=selected_brokers())
def sasl_server(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[SaslServer]:
    """A broker that asks who comes, over TLS; its users: compat/harness/sasl.py."""
    with _asking(request.param, certificates) as server:
        sasl.make_users(server.bootstrap, certificates.client_context())
        yield server


@pytest.fixture(scope="module", params=selected_brokers())
def guarded_server(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[SaslServer]:
    """The same, where users may do what ACLs allow, and the administrator everything."""
    with _asking(request.param, certificates, sasl.WITH_ACLS) as server:
        yield server


@contextmanager
def _asking(name: str, certificates: Certificates, more: Mapping[str, str] = NOTHING) -> Iterator[SaslServer]:
    settings = SETTINGS | sasl.SETTINGS | sasl.OVER_TLS | store_settings(certificates) | more
    server = KBrokerProcess(settings | sasl.KBROKER_ALONE) if name == KBROKER else RealKafka(settings)
    with server:
        yield SaslServer(server.bootstrap, certificates.ca)
