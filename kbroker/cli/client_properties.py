"""What clients are told about TLS and logins, in the names of Java, librdkafka and kafka-python alike.

``--command-config FILE`` is a properties file as Kafka's own tools take it, and ``-X`` gives single ones.
Both become arguments of kafka-python: one TLS context, and a user and password, or something that has tokens.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbroker.exit_codes import USAGE, CommandFailed

_TAKEN = ("security.", "ssl.", "sasl.", "client.id")
"""Of a file: all else in it is for Java's clients."""
_STORES = ("ssl.keystore.", "ssl.truststore.")
_FILES = {  # kafka-python's names, librdkafka's
    "cafile": ("ssl.cafile", "ssl.ca.location"),
    "certfile": ("ssl.certfile", "ssl.certificate.location"),
    "keyfile": ("ssl.keyfile", "ssl.key.location"),
    "password": ("ssl.password", "ssl.key.password"),
}
_ALIASES = {
    "sasl.username": "sasl.plain.username",
    "sasl.password": "sasl.plain.password",
    "sasl.mechanisms": "sasl.mechanism",
}
_WORDS = {"true": True, "false": False, "none": None}
_OPTION = r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""
_TOKEN_SECONDS = 3600


def read(path: str) -> dict[str, str]:
    from kbroker.config.files import parse_properties

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise CommandFailed(f"cannot read {path}: {reason.lower()}") from None
    return {name: value for name, value in parse_properties(text).items() if name.startswith(_TAKEN)}


def translated(given: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of kafka-python's clients; names are given with dots."""
    configs = {_ALIASES.get(name, name): value for name, value in given.items()}
    protocol = configs["security.protocol"] = configs.get("security.protocol", "PLAINTEXT").upper()
    arguments: dict[str, Any] = {}
    if protocol.endswith("SSL"):
        arguments["ssl_context"] = _context(configs)
        for name in [*configs]:
            if name.startswith("ssl.") or name == "enable.ssl.certificate.verification":
                del configs[name]
    if protocol.startswith("SASL_"):
        _log_in(configs, arguments)
    for name in [*configs]:
        if name.startswith(("ssl.", "sasl.oauthbearer.", "sasl.login.", "sasl.client.", "sasl.jaas.")):
            del configs[name]  # what is left of it is for Java alone
    return {name.replace(".", "_"): _typed(value) for name, value in configs.items()} | arguments


def _typed(value: str) -> Any:
    return int(value) if value.lstrip("-").isdecimal() else _WORDS.get(value.lower(), value)


def _context(configs: Mapping[str, str]) -> ssl.SSLContext:
    from kbroker.security.tls.errors import TlsError

    algorithm = configs.get("ssl.endpoint.identification.algorithm", "https").lower()
    checked = algorithm not in ("", "none") and configs.get("ssl.check.hostname", "true").lower() != "false"
    try:
        context = (
            _of_stores(configs) if any(name.startswith(_STORES) for name in configs) else _of_files(configs)
        )
    except TlsError as error:
        raise CommandFailed(str(error)) from None
    context.check_hostname = checked
    if configs.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _of_stores(configs: Mapping[str, str]) -> ssl.SSLContext:
    from kbroker.config.broker_configs import BROKER_CONFIGS
    from kbroker.config.definition import InvalidConfig
    from kbroker.config.settings import Settings
    from kbroker.security.tls.context import SETTINGS, make_client_context

    known = {name: value for name, value in configs.items() if name in BROKER_CONFIGS and value}
    settings = Settings(known)
    try:
        return make_client_context({name: settings[name] for name in SETTINGS})
    except InvalidConfig as error:
        raise CommandFailed(str(error), USAGE) from None


def _of_files(configs: Mapping[str, str]) -> ssl.SSLContext:
    files = {
        kind: next((configs[name] for name in names if configs.get(name)), None)
        for kind, names in _FILES.items()
    }
    try:
        context = ssl.create_default_context(cafile=files["cafile"])
        if files["certfile"]:
            context.load_cert_chain(files["certfile"], files["keyfile"], files["password"] or "")
    except OSError as error:  # of ssl, too
        reason = error.strerror or str(error)
        names = " or ".join(each for kind, each in files.items() if each and kind != "password")
        raise CommandFailed(f"TLS: {names}: {reason}") from None
    return context


# logins


def _log_in(configs: dict[str, str], arguments: dict[str, Any]) -> None:
    mechanism = configs["sasl.mechanism"] = configs.get("sasl.mechanism", "PLAIN").upper()
    options = _jaas_options(configs.pop("sasl.jaas.config", ""))
    if mechanism == "OAUTHBEARER":
        arguments["sasl_oauth_token_provider"] = _tokens(configs, options)
        return
    for name in ("username", "password"):
        if name in options:
            configs.setdefault(f"sasl.plain.{name}", options[name])
    for name in ("username", "password"):
        if f"sasl.plain.{name}" in configs:  # which may look like a number
            arguments[f"sasl_plain_{name}"] = configs.pop(f"sasl.plain.{name}")


def _jaas_options(text: str) -> dict[str, str]:
    """Of `Class required name="value" … ;`."""
    found: dict[str, str] = {}
    for match in re.finditer(_OPTION, text):
        quoted = match[2] if match[2] is not None else match[3]
        found[match[1]] = match[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return found


def _tokens(configs: Mapping[str, str], options: Mapping[str, str]) -> Any:
    url = configs.get("sasl.oauthbearer.token.endpoint.url", "")
    if url.startswith("file:"):
        path = re.sub(r"^file:(//)?", "", url)
        return _provider(lambda: Path(path).read_text(encoding="utf-8").strip())
    if url:
        return _provider(lambda: _asked_for(url, configs, options))
    subject = options.get("unsecuredLoginStringClaim_sub")
    if subject is None:
        raise CommandFailed(
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url (an address, or file:PATH of a token), or "
            'unsecuredLoginStringClaim_sub="…" in sasl.jaas.config',
            USAGE,
        )
    claims = {
        name.removeprefix("unsecuredLoginStringClaim_"): value
        for name, value in options.items()
        if name.startswith("unsecuredLoginStringClaim_")
    }
    return _provider(lambda: _unsecured(claims))


def _provider(token: Any) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider  # kafka-python's, which asks for its kind

    class Provider(AbstractTokenProvider):
        def token(self) -> str:
            return str(token())

    return Provider()  # type: ignore[no-untyped-call]


def _unsecured(claims: Mapping[str, str]) -> str:
    now = int(time.time())  # Kafka refuses what is issued a fraction of a millisecond later
    parts = ({"alg": "none"}, {**claims, "iat": now, "exp": now + _TOKEN_SECONDS})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join(encoded) + "."


def _asked_for(url: str, configs: Mapping[str, str], options: Mapping[str, str]) -> str:
    """By the client's credentials (RFC 6749, 4.4)."""
    import urllib.parse
    import urllib.request

    prefix = "sasl.oauthbearer.client.credentials.client."
    client = configs.get(f"{prefix}id", options.get("clientId", ""))
    secret = configs.get(f"{prefix}secret", options.get("clientSecret", ""))
    form = {"grant_type": "client_credentials"}
    scope = configs.get("sasl.oauthbearer.scope", options.get("scope", ""))
    if scope:
        form["scope"] = scope
    credentials = base64.b64encode(f"{client}:{secret}".encode()).decode()
    request = urllib.request.Request(
        url, urllib.parse.urlencode(form).encode(), {"Authorization": f"Basic {credentials}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(json.load(answer)["access_token"])
