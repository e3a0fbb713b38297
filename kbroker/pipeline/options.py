"""Every option of the declared file, once: name, kind, default and what it does.

The reader (spec.py), `kbroker pipeline check` and docs/pipeline.md derive from these tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

REQUIRED = object()


class Option(NamedTuple):
    name: str
    kind: str
    doc: str
    default: Any = None


class Section(NamedTuple):
    name: str
    title: str
    options: tuple[Option, ...]

    def names(self) -> list[str]:
        return [option.name for option in self.options]


FORMATS = ("json", "csv", "avro", "string", "raw")
TABLE_FORMATS = ("delta", "parquet", "csv", "json", "orc")

PIPELINE = Section(
    "pipeline",
    "The file",
    (
        Option("name", "name", "Names the job, its checkpoints and its groups.", REQUIRED),
        Option("bootstrap_servers", "text", "The Kafka to read from and write to.", "localhost:9092"),
        Option(
            "state",
            "text",
            "Where checkpoints and progress are kept: a directory, or a URL that Spark can write. "
            "Default: `<name>.state` beside the file.",
        ),
        Option("trigger", "trigger", "When batches run, unless a sink says otherwise.", "1 second"),
        Option(
            "progress_group",
            "text",
            "Commit what each sink has written as offsets of the consumer group `<progress_group>.<sink>`.",
        ),
        Option("kafka", "mapping", "Settings of every Kafka client of the job, such as `security.protocol`."),
        Option("spark", "mapping", "Settings of the Spark session."),
        Option(
            "retry_for",
            "duration",
            "How long a sink is started again after an error that may pass (a broker that is away, a full "
            "disk); then the job ends with exit code 1.",
            "10 minutes",
        ),
        Option("sources", "sections", "Topics to read, by the name of their view.", REQUIRED),
        Option("tables", "sections", "Tables to join with, by the name of their view.", {}),
        Option("steps", "sections", "What becomes of the rows, by the name of the view each step makes.", {}),
        Option("sinks", "sections", "Where rows go, by name: each is one streaming query.", REQUIRED),
    ),
)

SOURCE = Section(
    "source",
    "A source",
    (
        Option("topics", "texts", "Topics to read."),
        Option("pattern", "text", "Or: a Java regular expression of topics; new ones join in."),
        Option("assign", "any", "Or: partitions by topic, such as `{orders: [0, 1]}`."),
        Option(
            "starting_offsets",
            "any",
            "`earliest`, `latest`, or offsets by topic and partition. Only for the first run.",
            "earliest",
        ),
        Option("options", "mapping", "Any other option of Spark's `kafka` format."),
        Option("decode", "section", "How values become columns. A format's name alone will do.", "raw"),
        Option("validate", "rules", "Conditions in SQL that every row meets; others are rejected."),
        Option("dead_letter", "text", "The topic that rejected records go to, with the reason as headers."),
        Option(
            "on_reject",
            "choice:fail,drop",
            "Without `dead_letter`: stop at a rejected record, or leave it out and count it.",
            "fail",
        ),
        Option(
            "tombstones",
            "choice:reject,drop,keep",
            "What to do with records whose value is null. `keep`: all columns null but Kafka's.",
            "reject",
        ),
        Option("watermark", "section", "How late rows may be."),
    ),
)

DECODE = Section(
    "decode",
    "decode",
    (
        Option("format", f"choice:{','.join(FORMATS)}", "The format of the values.", REQUIRED),
        Option("schema", "schema", "Columns: a mapping of name to Spark type, or DDL in one text."),
        Option(
            "json_schema", "document", "Or: a JSON Schema, inline or as a file; its rules are checked too."
        ),
        Option("avro_schema", "document", "For avro: the writer's schema, inline or as an `.avsc` file."),
        Option(
            "infer",
            "integer",
            "Or (json, csv): infer it from so many records, print it, and keep it in the state directory.",
        ),
        Option("columns", "texts", "For csv with `infer`: the columns' names. Default: `c0`, `c1`, …"),
        Option(
            "confluent_header", "boolean", "For avro: skip the 5 bytes of a schema registry's framing.", False
        ),
        Option("options", "mapping", "Options of Spark's from_json, from_csv or from_avro."),
    ),
)

WATERMARK = Section(
    "watermark",
    "watermark",
    (
        Option("column", "text", "The column with the event's time.", REQUIRED),
        Option("delay", "duration", "How far behind the newest row a row may be.", REQUIRED),
        Option(
            "late",
            "choice:drop,dead_letter",
            "What becomes of records that are later, so that a `deduplicate` or a `window` leaves them out: "
            "they are counted, or also sent to the source's `dead_letter`.",
            "drop",
        ),
    ),
)

TABLE = Section(
    "table",
    "A table",
    (
        Option("path", "text", "Where it is.", REQUIRED),
        Option("format", f"choice:{','.join(TABLE_FORMATS)}", "Its format.", "delta"),
        Option("schema", "schema", "Its columns, where the format does not know them."),
        Option("options", "mapping", "Options of Spark's reader, such as `header: true`."),
    ),
)

STEP = Section(
    "step",
    "A step (one of `sql`, `window`, `deduplicate`, `join`)",
    (
        Option("sql", "text", "A SELECT over sources, tables and earlier steps."),
        Option("window", "section", "Aggregates per time window."),
        Option("deduplicate", "section", "The first row of each key within the watermark."),
        Option("join", "section", "A join with a table or with another stream."),
        Option("watermark", "section", "How late the step's rows may be."),
    ),
)

WINDOW = Section(
    "window",
    "window",
    (
        Option("from", "text", "The view to aggregate.", REQUIRED),
        Option("time", "text", "The column with the event's time.", REQUIRED),
        Option("size", "duration", "The length of a window.", REQUIRED),
        Option("slide", "duration", "How far apart windows start. Default: their size."),
        Option("group_by", "texts", "More columns to group by.", ()),
        Option("aggregate", "mapping", "Column name: aggregate in SQL, such as `sum(amount)`.", REQUIRED),
    ),
)

DEDUPLICATE = Section(
    "deduplicate",
    "deduplicate",
    (
        Option("from", "text", "The view to read.", REQUIRED),
        Option("by", "texts", "The columns that make a key.", REQUIRED),
    ),
)

JOIN = Section(
    "join",
    "join",
    (
        Option("left", "text", "A view.", REQUIRED),
        Option("right", "text", "A table, or another view.", REQUIRED),
        Option(
            "on",
            "texts",
            "Columns that both sides have; or one condition in SQL over `left.` and `right.`",
            REQUIRED,
        ),
        Option("how", "choice:inner,left,right,full,semi", "The kind of join.", "inner"),
    ),
)

SINK = Section(
    "sink",
    "A sink (one of `delta`, `parquet`, `kafka`, `console`)",
    (
        Option("from", "text", "The source or step to write.", REQUIRED),
        Option("delta", "text", "A Delta table, by its path."),
        Option("parquet", "text", "A directory of Parquet files."),
        Option("kafka", "text", "A topic."),
        Option("console", "boolean", "Print rows."),
        Option(
            "mode", "choice:append,upsert", "Delta: add rows, or replace those with the same key.", "append"
        ),
        Option(
            "key", "texts", "Delta: the key of an upsert. Kafka: the columns that make the record's key.", ()
        ),
        Option(
            "latest_by",
            "text",
            "Upsert: of several rows of one key, and against the table, the highest of this column wins. "
            "Default: `_offset`, where the view has it.",
        ),
        Option("partition_by", "texts", "Delta, Parquet: columns to partition the table by.", ()),
        Option("merge_schema", "boolean", "Delta: add columns that the table does not have yet.", False),
        Option(
            "encode",
            "choice:json,raw",
            "Kafka: all columns but Kafka's as JSON; or the view has key, value, headers, partition itself.",
            "json",
        ),
        Option("output_mode", "choice:append,update,complete", "Spark's output mode. Default: what fits."),
        Option("trigger", "trigger", "When batches of this sink run."),
        Option("options", "mapping", "Any other option of Spark's writer."),
    ),
)

RULE = Section(
    "rule",
    "A rule of `validate`",
    (
        Option(
            "expect", "text", "A condition in SQL; a row for which it is false or null is rejected.", REQUIRED
        ),
        Option("name", "text", "What the reason says. Default: the condition."),
    ),
)

SECTIONS = (
    PIPELINE, SOURCE, DECODE, RULE, WATERMARK, TABLE, STEP, WINDOW, DEDUPLICATE, JOIN, SINK,
)  # fmt: skip
