"""The OpenAPI document says what the routes say, and all of it. The page shows it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from kbroker.http import openapi, table
from kbroker.http.endpoint import JSON, OBJECT, STRING, WEBSOCKET, Answer, Endpoint, Parameter, json_answer_of
from tests.support.http_client import HttpClient


def made(endpoints: list[tuple[str, Endpoint]]) -> dict[str, Any]:
    steps = openapi.steps(endpoints)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            document: dict[str, Any] = json.loads(end.value)
            return document


DOCUMENT = made(list(table.endpoints()))
OPERATIONS = [
    pytest.param(path, operation, id=f"{method} {path}")
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]


async def nothing(_: Any) -> Any:
    raise NotImplementedError


def one(method: str, path: str, **more: Any) -> tuple[str, Endpoint]:
    return path, Endpoint(method, path, nothing, "One.", **more)


# of what there is


def test_it_is_valid_openapi() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator, validate

    validate(DOCUMENT, cls=OpenAPIV31SpecValidator)


def test_it_lists_every_route_and_nothing_else() -> None:
    routes = {
        ("get" if endpoint.method == WEBSOCKET else endpoint.method.lower(), path.rstrip("/") or "/")
        for path, endpoint in table.endpoints()
    }
    told = {(method, path) for path, item in DOCUMENT["paths"].items() for method in item}
    short = {
        (method, path.removeprefix(table.PREFIX) or "/") for method, path in told if path.startswith("/api/")
    }
    assert told <= routes
    assert routes - told <= short


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_every_operation_is_described_whole(path: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert {*operation["tags"]} <= {tag["name"] for tag in DOCUMENT["tags"]}
    parameters = operation.get("parameters", [])
    in_path = {each["name"] for each in parameters if each["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", path))
    for each in parameters:
        assert each["description"], each["name"]
        assert each["schema"], each["name"]
    for media, content in operation.get("requestBody", {"content": {}})["content"].items():
        assert content["schema"], media
    assert any(status < "4" for status in operation["responses"])
    for status, answer in operation["responses"].items():
        assert answer["description"], status
        for content in answer.get("content", {}).values():
            assert content["schema"], status


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [parameter.values[1]["operationId"] for parameter in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)


def test_it_is_served_to_anybody_and_is_the_same_each_time(http: HttpClient) -> None:
    answer = http.get("/openapi.json")
    assert (answer.status, answer.media_type) == (200, "application/json")
    assert answer.json == DOCUMENT
    assert http.get("/openapi.json").body == answer.body


# how it is made


def test_a_schema_with_a_title_stands_once() -> None:
    named = {"title": "Thing", "type": "object", "properties": {"name": STRING}}
    answers = {200: json_answer_of("Some.", {"type": "array", "items": named})}
    document = made([one("GET", "/a", answers=answers), one("GET", "/b", answers=answers)])
    assert document["components"]["schemas"]["Thing"]["properties"] == {"name": STRING}
    for path in ("/a", "/b"):
        schema = document["paths"][path]["get"]["responses"]["200"]["content"][JSON]["schema"]
        assert schema["items"] == {"$ref": "#/components/schemas/Thing"}


def test_two_schemas_of_one_title_are_refused() -> None:
    endpoints = [
        one("GET", f"/{name}", answers={200: json_answer_of("It.", {"title": "It", "const": name})})
        for name in ("a", "b")
    ]
    with pytest.raises(ValueError, match="title It"):
        made(endpoints)


def test_endpoints_that_differ_by_media_type_are_one_operation() -> None:
    endpoints = [
        one("POST", "/a", body={JSON: OBJECT}),
        one(
            "POST",
            "/a",
            body={"text/plain": STRING},
            media="text/plain",
            answers={200: Answer("Done.", {"text/plain": STRING})},
        ),
    ]
    operation = made(endpoints)["paths"]["/a"]["post"]
    assert set(operation["requestBody"]["content"]) == {JSON, "text/plain"}
    assert set(operation["responses"]["200"]["content"]) == {JSON, "text/plain"}


def test_a_websocket_is_a_get_that_switches_protocols() -> None:
    operation = made([one(WEBSOCKET, "/a"), one("GET", "/a")])["paths"]["/a"]["get"]
    assert operation["x-websocket"] is True
    assert {"101", "200"} <= set(operation["responses"])


def test_failures_are_problem_documents_unless_said_otherwise() -> None:
    answers = {
        200: Answer("Done."),
        409: json_answer_of("Somebody was faster.", OBJECT),
        416: Answer("There is no such offset."),
    }
    responses = made([one("GET", "/a", answers=answers)])["paths"]["/a"]["get"]["responses"]
    for status in ("416", "4XX", "5XX"):
        schema = responses[status]["content"]["application/problem+json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Problem"}
    assert responses["409"]["content"] == {JSON: {"schema": OBJECT}}


def test_a_parameter_of_the_path_may_be_described_by_its_endpoint() -> None:
    parameter = Parameter("thing", "Which one.", where="path")
    (told,) = made([one("GET", "/a/{thing}", parameters=(parameter,))])["paths"]["/a/{thing}"]["get"][
        "parameters"
    ]
    assert (told["description"], told["required"]) == ("Which one.", True)


# the page


class Fetched(HTMLParser):
    """What a browser would fetch for a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("link", "script", "img", "iframe"):
            self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_needs_nothing_but_the_document(http: HttpClient) -> None:
    answer = http.get("/docs")
    assert (answer.status, answer.media_type) == (200, "text/html")
    text = answer.body.decode()
    assert Fetched(text).addresses == []
    assert re.findall(r"https?://", text) == []
    assert 'fetch("openapi.json")' in text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
