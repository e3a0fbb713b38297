"""The HTTP API of a broker, for commands that ask for what Kafka's protocol does not have."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from typing import Any

from kbroker.exit_codes import UNREACHABLE, USAGE, CommandFailed

URL_VARIABLE, PASSWORD_VARIABLE = "KBROKER_HTTP", "KBROKER_HTTP_PASSWORD"
_DEFAULT_URL = "http://127.0.0.1:8080"


def add_http_options(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("the broker's HTTP API")
    options.add_argument(
        "--url",
        default=os.environ.get(URL_VARIABLE, _DEFAULT_URL),
        help=f"where it is (or {URL_VARIABLE}; default {_DEFAULT_URL})",
    )
    options.add_argument(
        "--user", metavar="NAME", help=f"log in; the password is asked for, or in {PASSWORD_VARIABLE}"
    )
    options.add_argument("--cacert", metavar="FILE", help="certificates to believe, in PEM")
    options.add_argument(
        "--timeout", type=float, default=10, metavar="SECONDS", help="longest wait for an answer (default 10)"
    )


def get(arguments: argparse.Namespace, path: str, parameters: Mapping[str, object] | None = None) -> Any:
    """The document that is there. Raises CommandFailed, with what the broker says of it."""
    import http.client
    import urllib.error
    import urllib.request
    from urllib.parse import urlencode

    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    url = f"{arguments.url.rstrip('/')}/api/v1{path}" + (f"?{urlencode(given)}" if given else "")
    try:
        request = urllib.request.Request(url, headers=_headers(arguments))
        with urllib.request.urlopen(request, timeout=arguments.timeout, context=_tls(arguments)) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise CommandFailed(_said(error)) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise CommandFailed(
            f"no HTTP API at {arguments.url}: {reason}. 'kbroker serve' says where it has opened it: name "
            f"that with --url or {URL_VARIABLE}",
            UNREACHABLE,
        ) from None
    except ValueError as error:
        raise CommandFailed(f"{arguments.url}: {error}", USAGE) from None


def _headers(arguments: argparse.Namespace) -> dict[str, str]:
    if arguments.user is None:
        return {}
    from base64 import b64encode

    password = os.environ.get(PASSWORD_VARIABLE)
    if password is None:
        from getpass import getpass

        password = getpass(f"password of {arguments.user}: ")
    return {"Authorization": "Basic " + b64encode(f"{arguments.user}:{password}".encode()).decode()}


def _tls(arguments: argparse.Namespace) -> Any:
    if not arguments.url.startswith("https:"):
        return None
    import ssl

    return ssl.create_default_context(cafile=arguments.cacert)


def _said(error: Any) -> str:
    """The detail of a problem document, else the status."""
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the broker answered with status {error.code}"
