"""From the file's text to a `Pipeline`: every value of its kind, every problem with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kbroker.pipeline import json_schema, kinds, options
from kbroker.pipeline.document import Value, parse
from kbroker.pipeline.errors import PipelineError, Problem, SpecError
from kbroker.pipeline.kinds import NAME, described
from kbroker.pipeline.options import REQUIRED, Section
from kbroker.pipeline.spec import (
    Decode,
    Deduplicate,
    Join,
    Pipeline,
    Rule,
    Sink,
    Source,
    Sql,
    Step,
    Table,
    Trigger,
    Watermark,
    Window,
)
from kbroker.pipeline.suggestions import suggestion

_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SINK_KINDS = ("delta", "parquet", "kafka", "console")


def load(path: str | Path) -> Pipeline:
    """Read a file; all its problems at once as a SpecError."""
    path = Path(path)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"cannot read {path}: {error}") from None
    problems: list[Problem] = []
    document = parse(text, problems)
    pipeline = _Reader(path, problems).pipeline(document) if document is not None else None
    if pipeline is not None and not problems:
        from kbroker.pipeline.checks import check

        problems.extend(check(pipeline))
    if problems or pipeline is None:
        raise SpecError(str(path), problems)
    return pipeline


class _Reader:
    """Reads sections; what is wrong is added to `problems`, and reading goes on with the default."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self._path = path
        self._problems = problems
        self._trigger = Trigger("interval", "1 second")

    def pipeline(self, document: Value) -> Pipeline | None:
        found = self._section(options.PIPELINE, document)
        if found is None:
            return None
        self._trigger = found["trigger"]
        self._unique_views(document)
        return Pipeline(
            path=str(self._path),
            name=found["name"],
            bootstrap_servers=found["bootstrap_servers"],
            state=self._location(found["state"] or f"{found['name']}.state"),
            progress_group=found["progress_group"],
            kafka=found["kafka"],
            spark=found["spark"],
            retry_for=found["retry_for"],
            sources=self._each(found["sources"], _VIEW, self._source),
            tables=self._each(found["tables"], _VIEW, self._table),
            steps=self._each(found["steps"], _VIEW, self._step),
            sinks=self._each(found["sinks"], NAME, self._sink),
        )

    def _each(
        self, found: Value | Mapping[str, Any], names: re.Pattern[str], read: Callable[[str, Value], Any]
    ) -> dict[str, Any]:
        entries = found.data if isinstance(found, Value) else found
        result = {}
        for name, value in entries.items():
            if not names.fullmatch(name):
                self._problem(value.line, f"{name!r} is no name: letters, digits and _ only")
            elif (made := read(name, value)) is not None:
                result[name] = made
        return result

    def _unique_views(self, document: Value) -> None:
        seen: dict[str, str] = {}
        for kind in ("sources", "tables", "steps"):
            entries = document.data.get(kind)
            for name, value in (entries.data if entries and isinstance(entries.data, dict) else {}).items():
                if name in seen:
                    self._problem(value.line, f"there is a view {name!r} in {seen[name]} already")
                seen.setdefault(name, kind)

    def _source(self, name: str, value: Value) -> Source | None:
        found = self._section(options.SOURCE, value)
        if found is None:
            return None
        lines = {key: each.line for key, each in value.data.items()}
        chosen = [key for key in ("topics", "pattern", "assign") if found[key]]
        if len(chosen) != 1:
            self._problem(value.line, f"source {name!r} needs one of topics, pattern, assign")
        decode = self._decode(value.data.get("decode"), value.line)
        return Source(
            name=name,
            line=value.line,
            topics=tuple(found["topics"] or ()),
            pattern=found["pattern"],
            assign=self._assignment(value.data.get("assign")),
            starting_offsets=found["starting_offsets"],
            options=found["options"],
            decode=decode,
            rules=self._rules(value.data.get("validate")),
            dead_letter=found["dead_letter"],
            on_reject=found["on_reject"],
            tombstones=found["tombstones"],
            watermark=self._watermark(value.data.get("watermark")),
            lines=lines,
        )

    def _assignment(self, value: Value | None) -> dict[str, list[int]] | None:
        if value is None:
            return None
        plain = value.plain()
        good = isinstance(plain, dict) and all(
            isinstance(numbers, list) and all(isinstance(n, int) for n in numbers)
            for numbers in plain.values()
        )
        if not good:
            self._problem(value.line, "assign is partitions by topic, such as {orders: [0, 1]}")
            return None
        return dict(plain)

    def _decode(self, value: Value | None, line: int) -> Decode:
        if value is None:
            return Decode("raw", line)
        if isinstance(value.data, str):
            value = Value({"format": value}, value.line)
        found = self._section(options.DECODE, value)
        if found is None or not found["format"]:
            return Decode("raw", value.line)
        schema = found["schema"]
        rules: tuple[Rule, ...] = ()
        if found["json_schema"] is not None:
            where = value.data["json_schema"].line
            try:
                schema, conditions = json_schema.convert(found["json_schema"])
                rules = tuple(Rule(condition.name, condition.expect, where) for condition in conditions)
            except json_schema.Unsupported as error:
                self._problem(where, f"json_schema: {error}")
        avro = json.dumps(found["avro_schema"]) if found["avro_schema"] is not None else None
        return Decode(
            format=found["format"],
            line=value.line,
            schema=schema,
            avro_schema=avro,
            infer=found["infer"],
            columns=tuple(found["columns"] or ()),
            rules=rules,
            confluent_header=found["confluent_header"],
            options=found["options"],
            lines={option: each.line for option, each in value.data.items()},
        )

    def _rules(self, value: Value | None) -> tuple[Rule, ...]:
        if value is None:
            return ()
        if not isinstance(value.data, list):
            self._problem(value.line, "validate is a list of conditions")
            return ()
        rules = []
        for each in value.data:
            if isinstance(each.data, str):
                rules.append(Rule(each.data, each.data, each.line))
            elif (found := self._section(options.RULE, each)) is not None and found["expect"]:
                rules.append(Rule(found["name"] or found["expect"], found["expect"], each.line))
        return tuple(rules)

    def _watermark(self, value: Value | None) -> Watermark | None:
        if value is None or (found := self._section(options.WATERMARK, value)) is None:
            return None
        return Watermark(found["column"], found["delay"], found["late"], value.line)

    def _table(self, name: str, value: Value) -> Table | None:
        found = self._section(options.TABLE, value)
        if found is None or found["path"] is None:
            return None
        return Table(
            name,
            value.line,
            self._location(found["path"]),
            found["format"],
            found["schema"],
            found["options"],
        )

    def _step(self, name: str, value: Value) -> Step | None:
        found = self._section(options.STEP, value)
        if found is None:
            return None
        chosen = [key for key in ("sql", "window", "deduplicate", "join") if value.data.get(key) is not None]
        if len(chosen) != 1:
            self._problem(value.line, f"step {name!r} needs one of sql, window, deduplicate, join")
            return None
        where = value.data[chosen[0]]
        action = getattr(self, f"_{chosen[0]}")(where)
        if action is None:
            return None
        return Step(name, value.line, action, where.line, self._watermark(value.data.get("watermark")))

    def _sql(self, value: Value) -> Sql | None:
        return Sql(value.data) if isinstance(value.data, str) else None

    def _window(self, value: Value) -> Window | None:
        found = self._section(options.WINDOW, value)
        if found is None or None in (found["from"], found["time"], found["size"]):
            return None
        return Window(
            found["from"], found["time"], found["size"], found["slide"], tuple(found["group_by"]),
            found["aggregate"],
        )  # fmt: skip

    def _deduplicate(self, value: Value) -> Deduplicate | None:
        found = self._section(options.DEDUPLICATE, value)
        return Deduplicate(found["from"], tuple(found["by"] or ())) if found and found["from"] else None

    def _join(self, value: Value) -> Join | None:
        found = self._section(options.JOIN, value)
        if found is None or not (found["left"] and found["right"]):
            return None
        return Join(found["left"], found["right"], tuple(found["on"] or ()), found["how"])

    def _sink(self, name: str, value: Value) -> Sink | None:
        found = self._section(options.SINK, value)
        if found is None or found["from"] is None:
            return None
        chosen = [kind for kind in _SINK_KINDS if found[kind]]
        if len(chosen) != 1:
            self._problem(value.line, f"sink {name!r} needs one of {', '.join(_SINK_KINDS)}")
            return None
        kind = chosen[0]
        target = "" if kind == "console" else found[kind]
        return Sink(
            name=name,
            line=value.line,
            view=found["from"],
            kind=kind,
            target=self._location(target) if kind in ("delta", "parquet") else target,
            mode=found["mode"],
            key=tuple(found["key"]),
            latest_by=found["latest_by"],
            partition_by=tuple(found["partition_by"]),
            merge_schema=found["merge_schema"],
            encode=found["encode"],
            output_mode=found["output_mode"],
            trigger=found["trigger"] or self._trigger,
            options=found["options"],
            lines={key: each.line for key, each in value.data.items()},
        )

    # sections and kinds

    def _section(self, section: Section, value: Value) -> dict[str, Any] | None:
        if not isinstance(value.data, dict):
            self._problem(
                value.line, f"a {section.name} is a mapping of options, not {described(value.data)}"
            )
            return None
        for name, given in value.data.items():
            if name not in section.names():
                self._problem(
                    given.line,
                    f"a {section.name} has no option {name!r}{suggestion(name, section.names())}",
                )
        found: dict[str, Any] = {}
        for option in section.options:
            given = value.data.get(option.name)
            if given is None or given.data is None:
                if option.default is REQUIRED:
                    self._problem(value.line, f"a {section.name} needs {option.name!r}")
                found[option.name] = _absent(option)
                continue
            try:
                found[option.name] = kinds.convert(option.kind, given, self._path.parent)
            except ValueError as error:
                self._problem(given.line, f"{option.name}: {error}")
                found[option.name] = _absent(option)
        return found

    def _location(self, path: str) -> str:
        """Absolute, relative to the file; URLs stay as they are."""
        return path if "://" in path else str((self._path.parent / path).expanduser().absolute())

    def _problem(self, line: int, message: str) -> None:
        self._problems.append(Problem(line, message))


def _absent(option: options.Option) -> Any:
    if option.kind == "trigger" and isinstance(option.default, str):
        return Trigger("interval", option.default)
    if option.kind == "mapping":
        return {}
    if option.default is REQUIRED:
        return {} if option.kind in ("sections", "mapping") else None
    return option.default
