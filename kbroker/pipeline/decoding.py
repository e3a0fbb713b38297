"""From records to rows: decode values, check rules, and part the good from the rejected.

A decoded frame has the connector's columns, `_data` (the decoded struct, or null) and `_reason` (null for a
good record). A source's view has the columns of `_data`, and Kafka's as KAFKA_COLUMNS names them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from kbroker.pipeline.errors import FileProblem
from kbroker.pipeline.failures import refusal
from kbroker.pipeline.spec import Decode, Rule, Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KAFKA_COLUMNS = ("_topic", "_partition", "_offset", "_timestamp", "_key", "_headers")
_CORRUPT = "_corrupt_record"
_PREFIX = "kbroker."


def decode(frame: DataFrame, source: Source, schema: str | None) -> DataFrame:
    """Add `_data` and `_reason`; `schema` is DDL, given or inferred."""
    from pyspark.sql import functions as F

    if source.tombstones == "drop":
        frame = frame.where("value is not null")
    data, problem = _data(source.decode)
    null = F.lit("the value is null") if source.tombstones == "reject" else F.lit(None).cast("string")
    decoded = (
        frame.withColumn("_parsed", _parsed(source.decode, schema))
        .withColumn("_reason", F.when(F.col("value").isNull(), null).otherwise(problem))
        .withColumn("_data", data)
        .drop("_parsed")
    )
    rules = (*source.decode.rules, *source.rules)
    return _with_rules(decoded, rules) if rules else decoded


def accepted(decoded: DataFrame, source: Source) -> DataFrame:
    """The source's view: good rows only."""
    from pyspark.sql import functions as F

    if source.dead_letter is None and source.on_reject == "fail":
        said = F.concat(
            F.lit("kbroker-rejected: "), F.col("topic"), F.lit("-"), F.col("partition").cast("string"),
            F.lit("@"), F.col("offset").cast("string"), F.lit(": "), F.col("_reason"),
        )  # fmt: skip
        good = F.when(F.col("_reason").isNull(), F.lit(True)).otherwise(F.raise_error(said).cast("boolean"))
    else:
        good = F.col("_reason").isNull()
    return _view(decoded.where(good))


def dead_letters(decoded: DataFrame, source: Source, pipeline: str) -> DataFrame:
    """Rejected records as they were, with the reason and their origin as more headers."""
    from pyspark.sql import functions as F

    return letters(decoded.where("_reason is not null"), source, pipeline, F.col("_reason"))


def letters(records: DataFrame, source: Source, pipeline: str, reason: Column, **more: Column) -> DataFrame:
    """Records of a decoded frame as they were, with the reason, their origin and `more` as headers."""
    from pyspark.sql import functions as F

    def header(name: str, value: Column) -> Column:
        text = value.cast("string").cast("binary")
        return F.struct(F.lit(_PREFIX + name).alias("key"), text.alias("value"))

    added = F.array(
        header("reason", reason),
        header("pipeline", F.lit(pipeline)),
        header("source", F.lit(source.name)),
        header("topic", F.col("topic")),
        header("partition", F.col("partition")),
        header("offset", F.col("offset")),
        header("timestamp", F.unix_millis(F.col("timestamp"))),
        *(header(name, value) for name, value in more.items()),
    )
    empty = F.array().cast("array<struct<key:string,value:binary>>")
    headers = F.concat(F.coalesce(F.col("headers"), empty), added)
    return records.select("key", "value", headers.alias("headers"))


def _parsed(decode: Decode, schema: str | None) -> Column:
    from pyspark.sql import functions as F

    value = F.col("value")
    options = {**decode.options}
    if decode.format in ("json", "csv"):
        assert schema is not None
        options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        function = F.from_json if decode.format == "json" else F.from_csv
        return function(value.cast("string"), f"{schema}, {_CORRUPT} string", options)
    if decode.format == "avro":
        from pyspark.sql.avro.functions import from_avro

        assert decode.avro_schema is not None
        body = F.expr("substring(value, 6)") if decode.confluent_header else value
        return from_avro(body, decode.avro_schema, {"mode": "PERMISSIVE", **options})
    whole = value.cast("string") if decode.format == "string" else value
    return F.struct(whole.alias("value"))


def _data(decode: Decode) -> tuple[Column, Column]:
    """The decoded struct, and what is wrong with it."""
    from pyspark.sql import functions as F

    parsed = F.col("_parsed")
    if decode.format in ("json", "csv"):
        broken = parsed.isNull() | parsed[_CORRUPT].isNotNull()
        problem = F.when(broken, F.lit(f"the value is no {decode.format} of the schema"))
        return parsed.dropFields(_CORRUPT), problem
    if decode.format == "avro":
        return parsed, F.when(_broken_avro(decode, parsed), F.lit("the value is no avro of the schema"))
    if decode.format == "string":
        valid = F.is_valid_utf8(F.col("value").cast("string"))
        return parsed, F.when(~valid, F.lit("the value is no UTF-8"))
    return parsed, F.lit(None).cast("string")


def _broken_avro(decode: Decode, parsed: Column) -> Column:
    """from_avro makes a row of nulls of what it cannot read.

    Told by a field that may not be null; in a record of optional fields by its length: a null is one byte.
    """
    from pyspark.sql import functions as F

    schema = json.loads(decode.avro_schema or "{}")
    fields = schema.get("fields", []) if isinstance(schema, dict) else []
    required = [field["name"] for field in fields if "null" not in field["type"]]
    if required:
        return reduce(lambda found, name: found | parsed[name].isNull(), required, parsed.isNull())
    length = F.octet_length("value") - (5 if decode.confluent_header else 0)
    return reduce(lambda found, field: found & parsed[field["name"]].isNull(), fields, length != len(fields))


def _with_rules(decoded: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Give good records that break a rule its name as the reason.

    Rules see the decoded columns by their names, and Kafka's; the record itself is set aside meanwhile.
    """
    from pyspark.sql import functions as F

    record = F.struct(*decoded.columns).alias("__record")
    checked = decoded.select(record, "_data.*", *_kafka_columns())
    for rule in rules:
        _check_rule(checked, rule)
    broken = [F.when(~F.coalesce(F.expr(rule.expect), F.lit(False)), F.lit(rule.name)) for rule in rules]
    passed = F.col("__record._reason").isNotNull() | F.col("__record.value").isNull()
    reason = F.when(passed, F.col("__record._reason")).otherwise(F.coalesce(*broken))
    kept = [F.col(f"__record.{name}") for name in decoded.columns if name != "_reason"]
    return checked.select(*kept, reason.alias("_reason"))


def _check_rule(checked: DataFrame, rule: Rule) -> None:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    try:
        checked.select(F.expr(rule.expect))
    except AnalysisException as error:
        raise FileProblem(f"line {rule.line}: rule {rule.name!r}: {refusal(error)}") from None


def _view(decoded: DataFrame) -> DataFrame:
    return decoded.select("_data.*", *_kafka_columns())


def _kafka_columns() -> list[Column]:
    from pyspark.sql import functions as F

    return [F.col(name.removeprefix("_")).alias(name) for name in KAFKA_COLUMNS]
