"""How commands reach a kbroker's HTTP port: the option, and requests with JSON answers."""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple

from kbroker.cli import connection
from kbroker.exit_codes import UNREACHABLE, USAGE, CommandFailed

DEFAULT = "http://127.0.0.1:8080"
VARIABLE = "KBROKER_HTTP_URL"


class Unreachable(CommandFailed):
    """Nobody answers, or somebody else."""


class Answer(NamedTuple):
    status: int
    document: Any


def add_http_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http",
        metavar="URL",
        default=os.environ.get(VARIABLE) or DEFAULT,
        help=f"the broker's HTTP port (default ${VARIABLE}, else {DEFAULT})",
    )


def ask(arguments: argparse.Namespace, method: str, path: str, timeout: float | None = None) -> Answer:
    """What a kbroker answers, be it a failure or not; Unreachable where none does."""
    import json

    status, body = _exchanged(arguments, method, path, timeout)
    try:
        return Answer(status, json.loads(body) if body else None)
    except ValueError:
        raise _not_a_kbroker(arguments.http) from None


def text(arguments: argparse.Namespace, path: str, timeout: float | None = None) -> str:
    """A text that it answers; CommandFailed if it refuses."""
    import json

    status, body = _exchanged(arguments, "GET", path, timeout)
    if status >= 400:
        try:
            document = json.loads(body)
        except ValueError:
            raise _not_a_kbroker(arguments.http) from None
        raise _refused(arguments, Answer(status, document))
    return body.decode(errors="replace")


def _exchanged(
    arguments: argparse.Namespace, method: str, path: str, timeout: float | None
) -> tuple[int, bytes]:
    import http.client
    from urllib.parse import urlsplit

    url: str = arguments.http
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandFailed(f"{url} is no address of an HTTP port: write it as {DEFAULT}", USAGE)
    configs = connection.client_configs(arguments)
    timeout = arguments.timeout if timeout is None else timeout
    client = (
        http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=configs.get("ssl_context")
        )
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    )
    try:
        client.request(method, path, headers=_headers(configs))
        answer = client.getresponse()
        return answer.status, answer.read()
    except (http.client.HTTPException, ValueError):
        raise _not_a_kbroker(url) from None
    except OSError as error:
        raise Unreachable(
            f"cannot reach {url}: {error.strerror or error}. Name the HTTP port of a broker with --http URL "
            f"or {VARIABLE}",
            UNREACHABLE,
        ) from None
    finally:
        client.close()


def _not_a_kbroker(url: str) -> Unreachable:
    return Unreachable(f"{url} is not the HTTP port of a kbroker", UNREACHABLE)


def told(arguments: argparse.Namespace, method: str, path: str, timeout: float | None = None) -> Any:
    """The document that it answers; CommandFailed if it refuses."""
    answer = ask(arguments, method, path, timeout)
    if answer.status >= 400:
        raise _refused(arguments, answer)
    return answer.document


def _refused(arguments: argparse.Namespace, answer: Answer) -> CommandFailed:
    detail = answer.document.get("detail") if isinstance(answer.document, dict) else None
    return CommandFailed(f"{arguments.http}: {detail or f'status {answer.status}'}")


def _headers(configs: dict[str, Any]) -> dict[str, str]:
    import base64

    name = configs.get("sasl_plain_username")
    if name is None:
        return {}
    both = f"{name}:{configs.get('sasl_plain_password') or ''}"
    return {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}
