"""The columns of views as far as the file tells them, without Spark; None where it does not.

A select list is read only where every name in it is plain: of a query with one expression without a name,
nothing is known.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator

from kbroker.pipeline import schemas, sql
from kbroker.pipeline.decoding import KAFKA_COLUMNS
from kbroker.pipeline.errors import Problem
from kbroker.pipeline.spec import Decode, Deduplicate, Join, Pipeline, Sink, Sql, Step, Window
from kbroker.pipeline.suggestions import suggestion

Columns = tuple[str, ...]
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What a query's columns cannot be told from, without knowing more of SQL.
_UNREAD = frozenset({"union", "intersect", "except", "minus", "pivot", "unpivot", "lateral", "transform"})
# What may stand at the end of an expression, so that it is no name given to it.
_NO_ALIAS = frozenset({"end", "null", "true", "false"})


def of_views(pipeline: Pipeline) -> dict[str, Columns | None]:
    """By the name of the view."""
    found: dict[str, Columns | None] = {}
    for source in pipeline.sources.values():
        decoded = _decoded(source.decode)
        found[source.name] = None if decoded is None else (*decoded, *KAFKA_COLUMNS)
    for table in pipeline.tables.values():
        found[table.name] = _declared(table.schema)
    for step in pipeline.steps.values():
        found[step.name] = _of_step(step, found)
    return found


def has(columns: Columns, name: str) -> bool:
    """Whether a column, or the struct that a field is of, is among them; Spark does not tell A from a."""
    known = {column.lower() for column in columns}
    plain = name.replace("`", "").lower()
    return plain in known or plain.split(".")[0] in known


def _decoded(decode: Decode) -> Columns | None:
    if decode.format in ("string", "raw"):
        return ("value",)
    if decode.format == "avro":
        schema = json.loads(decode.avro_schema or "null")
        fields = schema.get("fields") if isinstance(schema, dict) else None
        return tuple(str(field["name"]) for field in fields) if fields else None
    return _declared(decode.schema) or decode.columns or None


def _declared(ddl: str | None) -> Columns | None:
    return None if ddl is None else schemas.column_names(ddl)


def _of_step(step: Step, known: dict[str, Columns | None]) -> Columns | None:
    action = step.action
    if isinstance(action, Window):
        return ("window_start", "window_end", *action.group_by, *action.aggregate)
    if isinstance(action, Deduplicate):
        return known.get(action.view)
    if isinstance(action, Join):
        left, right = known.get(action.left), known.get(action.right)
        if action.how == "semi" or left is None or right is None:
            return left if action.how == "semi" else None
        return (*left, *right)
    return _selected(action, known)


def _selected(action: Sql, known: dict[str, Columns | None]) -> Columns | None:
    tokens = sql.tokens(action.text)
    words = [token.word for token in tokens]
    if words[0] != "select" or _UNREAD & set(words):
        return None
    found: list[str] = []
    for item in _items(tokens[1:]):
        if [token.text for token in item] == ["*"]:
            query = sql.analyse(action.text)
            whole = known.get(query.references[0].name) if len(query.references) == 1 else None
            if whole is None or query.joins or _reads_query(tokens):
                return None
            found += whole
        elif (name := _name(item)) is not None:
            found.append(name)
        else:
            return None
    return tuple(found)


def _items(tokens: list[sql.Token]) -> Iterator[list[sql.Token]]:
    """The select list, item by item."""
    depth = 0
    item: list[sql.Token] = []
    for index, token in enumerate(tokens):
        if index == 0 and token.word in ("distinct", "all"):
            continue
        if depth == 0 and (token.text == "," or token.word == "from"):
            yield item
            item = []
            if token.word == "from":
                return
            continue
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        item.append(token)
    yield item


def _reads_query(tokens: list[sql.Token]) -> bool:
    """Whether FROM is followed by a query in brackets, which may give other columns than the view."""
    return any(
        token.word == "from" and following.text == "(" for token, following in itertools.pairwise(tokens)
    )


def _name(item: list[sql.Token]) -> str | None:
    if not item or item[-1].kind not in ("word", "name"):
        return None
    last = item[-1].text.strip("`")
    before = item[-2] if len(item) > 1 else None
    if before is None or before.word == "as":
        return last
    if before.text == ")" and item[-1].word not in _NO_ALIAS:
        return last
    path = all(
        token.text == "." if index % 2 else token.kind in ("word", "name") for index, token in enumerate(item)
    )
    return last if path else None


def problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Each use of a column that its view does not have."""
    views = of_views(pipeline)

    def missing(line: int, what: str, view: str, names: Columns) -> Iterator[Problem]:
        columns = views.get(view)
        for name in names:
            if columns is not None and not has(columns, name):
                yield Problem(line, f"{what}: {no_column(view, name, columns)}")

    for source in pipeline.sources.values():
        if source.watermark is not None:
            yield from missing(source.watermark.line, "watermark", source.name, (source.watermark.column,))
    for step in pipeline.steps.values():
        for view, names in _used(step):
            yield from missing(step.action_line, f"step {step.name!r}", view, names)
    for sink in pipeline.sinks.values():
        for option, names in named_by(sink).items():
            line = sink.lines.get(option, sink.line)
            yield from missing(line, f"sink {sink.name!r}: {option}", sink.view, names)


def no_column(view: str, name: str, columns: Iterable[str]) -> str:
    """What is wrong, and which column was probably meant."""
    close = suggestion(name, columns)
    there = ", ".join(column for column in columns if column not in KAFKA_COLUMNS)
    return f"{view!r} has no column {name!r}{close or f'; it has {there}'}"


def named_by(sink: Sink) -> dict[str, Columns]:
    """The columns that a sink needs, by the option that names them."""
    return {
        "key": sink.key,
        "latest_by": (sink.latest_by,) if sink.latest_by else (),
        "partition_by": sink.partition_by,
        "encode": ("value",) if sink.kind == "kafka" and sink.encode == "raw" else (),
    }


def _used(step: Step) -> Iterator[tuple[str, Columns]]:
    """The columns that a step names, by the view that must have them."""
    action = step.action
    own = (step.watermark.column,) if step.watermark is not None else ()
    if isinstance(action, Window):
        yield action.view, (*own, action.time, *action.group_by)
    elif isinstance(action, Deduplicate):
        yield action.view, (*own, *action.by)
    else:
        yield step.name, own
        if isinstance(action, Join) and all(PLAIN.fullmatch(column) for column in action.on):
            yield action.left, action.on
            yield action.right, action.on
