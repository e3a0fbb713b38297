"""What must fit together where a listener asks who comes: mechanisms, login contexts, users.

What is missing or wrong is refused at the start: a listener that lets nobody in, or everybody, is no help.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kbroker.config.errors import SettingError
from kbroker.security.jaas import BadJaas, JaasModule, parse_jaas
from kbroker.security.scram_credentials import SCRAM_SHA_256, SCRAM_SHA_512
from kbroker.security.users import BadUser, GivenUser, parse_users

if TYPE_CHECKING:
    from kbroker.config.settings import Settings

PLAIN, OAUTHBEARER, GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
KNOWN_MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
UNSECURED_HANDLER = _PACKAGE + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_HANDLERS = {
    PLAIN: ("org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler",),
    OAUTHBEARER: (
        _PACKAGE + "OAuthBearerValidatorCallbackHandler",
        _PACKAGE + "secured.OAuthBearerValidatorCallbackHandler",
        UNSECURED_HANDLER,
    ),
}
"""Kafka's own, which do what is done here."""


def given_users(users: str | None, file: str | None) -> dict[str, GivenUser]:
    """Of kbroker.users and kbroker.users.file. Raises SettingError."""
    entries = [entry.strip() for entry in (users or "").split(",") if entry.strip()]
    try:
        given = parse_users(entries)
    except BadUser as error:
        raise SettingError(f"kbroker.users: {error}") from None
    if not file:
        return given
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"kbroker.users.file: {file} cannot be read: {error}") from None
    try:
        of_file = parse_users(line for line in lines if line.strip() and not line.startswith("#"))
    except BadUser as error:
        raise SettingError(f"kbroker.users.file: {file}: {error}") from None
    return {**of_file, **given}


def check_sasl(settings: Settings) -> None:
    """Raises SettingError."""
    listeners = [listener for listener in settings.all_listeners if listener.uses_sasl]
    if not listeners:
        if settings["kbroker.users"] or settings["kbroker.users.file"]:
            raise SettingError(
                "users are given, but no listener asks for logins: name one with SASL_PLAINTEXT or SASL_SSL "
                "in listeners"
            )
        return
    given_users(settings["kbroker.users"], settings["kbroker.users.file"])
    for listener in listeners:
        _check_listener(settings, listener.name)


def _check_listener(settings: Settings, name: str) -> None:
    enabled = settings.of_listener(name, "sasl.enabled.mechanisms")
    unknown = [each for each in enabled if each not in (*KNOWN_MECHANISMS, GSSAPI)]
    if unknown:
        raise SettingError(
            f"sasl.enabled.mechanisms: {', '.join(unknown)}: kbroker knows {', '.join(KNOWN_MECHANISMS)}"
        )
    if not set(enabled) & set(KNOWN_MECHANISMS):
        raise SettingError(
            f"sasl.enabled.mechanisms: listener {name} offers {', '.join(enabled) or 'no mechanism'} only, "
            f"and kbroker has no GSSAPI (Kerberos); enable some of {', '.join(KNOWN_MECHANISMS)}"
        )
    for mechanism in enabled:
        handler = settings.of_listener(name, "sasl.server.callback.handler.class", mechanism)
        if handler is not None and handler not in _HANDLERS.get(mechanism, ()):
            raise SettingError(
                f"sasl.server.callback.handler.class: kbroker has no {handler} for {mechanism}"
            )
        if mechanism == PLAIN:
            jaas_of(settings, name, PLAIN)
        if mechanism == OAUTHBEARER:
            _check_oauthbearer(settings, name, handler)


def jaas_of(settings: Settings, listener: str, mechanism: str) -> JaasModule | None:
    """The login context of a mechanism, if there is one. Raises SettingError."""
    text = settings.of_listener(listener, "sasl.jaas.config", mechanism)
    if text is None:
        return None
    try:
        return parse_jaas(text)
    except BadJaas as error:
        raise SettingError(
            f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config: {error}"
        ) from None


def unsecured_options(jaas: JaasModule | None, handler: str | None) -> Mapping[str, str] | None:
    """How tokens without a signature are checked, where they are asked for; None: they are not."""
    options = {} if jaas is None else jaas.options
    asked = handler == UNSECURED_HANDLER or any(name.startswith("unsecuredValidator") for name in options)
    return options if asked else None


def _check_oauthbearer(settings: Settings, listener: str, handler: str | None) -> None:
    if unsecured_options(jaas_of(settings, listener, OAUTHBEARER), handler) is not None:
        return
    url = settings.of_listener(listener, "sasl.oauthbearer.jwks.endpoint.url", OAUTHBEARER)
    if url and urlsplit(url).scheme not in ("file", "http", "https"):
        raise SettingError("sasl.oauthbearer.jwks.endpoint.url: file://, http:// or https:// is expected")
    if not url:
        raise SettingError(
            "sasl.oauthbearer.jwks.endpoint.url: OAUTHBEARER needs the keys of the provider; tokens without "
            f"a signature are taken only with sasl.server.callback.handler.class={UNSECURED_HANDLER}"
        )
