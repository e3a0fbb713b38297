"""Writes docs/http-endpoints.md from the table of endpoints: `python -m docs.http_endpoints`."""

from __future__ import annotations

from pathlib import Path

from kbroker.http import openapi, table
from kbroker.http.endpoint import WEBSOCKET

TARGET = Path(__file__).with_name("http-endpoints.md")

_HEAD = f"""\
# HTTP endpoints

Derived from the table of endpoints (kbroker/http/table.py) by docs/http_endpoints.py. A running broker tells
the same with parameters, bodies and answers: `/docs` as a page, `/openapi.json` for tools. What is below
`{table.PREFIX}` is there without that prefix, too. How to use them: [http.md](http.md).
"""


def text() -> str:
    sections: dict[str, list[str]] = {}
    for path, methods in openapi.listed(table.endpoints()).items():
        for endpoints in methods.values():
            for endpoint in endpoints:
                method = "WebSocket" if endpoint.method == WEBSOCKET else endpoint.method
                media = f" With `{endpoint.media}`." if endpoint.media else ""
                sections.setdefault(endpoint.tag, []).append(
                    f"| {method} | `{path}` | {endpoint.summary}{media} |"
                )
    parts = [_HEAD]
    for tag, doc in openapi.TAGS.items():
        if rows := sections.pop(tag, []):
            parts.append(f"\n## {tag}\n\n{doc}\n\n| | path | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    assert not sections, "openapi.TAGS must name every tag"
    return "".join(parts)


if __name__ == "__main__":
    TARGET.write_text(text())
