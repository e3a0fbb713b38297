"""Why a query failed, in a sentence, and whether starting it again may help.

Spark's messages are long and name classes; the table here knows those that people meet. Whatever the reason,
the checkpoint stands where the last whole batch ended: the next start loses nothing and doubles nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Failure(NamedTuple):
    message: str
    may_pass: bool


class _Known(NamedTuple):
    pattern: re.Pattern[str]
    message: str
    may_pass: bool


def _known(pattern: str, message: str, *, may_pass: bool = False) -> _Known:
    return _Known(re.compile(pattern, re.DOTALL), message, may_pass)


_TABLE = (
    _known(r"JAVA_GATEWAY_EXITED", "Java ended at once, for the reason that stands above"),
    _known(
        r"kbroker-rejected: ([^\n]*?)(?:\n|\. SQLSTATE| SQLSTATE|$)",
        "a record was rejected: {0}. Give the source a dead_letter topic, or on_reject: drop",
    ),
    _known(
        r"No space left on device",
        "the disk is full. Nothing is lost: make room, and the query goes on where it was",
        may_pass=True,
    ),
    _known(
        r"Disk quota exceeded",
        "the disk quota is used up. Nothing is lost: make room, and the query goes on where it was",
        may_pass=True,
    ),
    _known(
        r"failOnDataLoss|(?:Cannot fetch offset|KAFKA_DATA_LOSS)",
        "records that were not read yet are gone from the topic (retention, deletion, or a topic created "
        "anew). With the source's option failOnDataLoss: false the query goes on with what is there",
    ),
    _known(
        r"UnknownTopicOrPartitionException|does not host this topic-partition",
        "a topic is missing or was deleted",
    ),
    _known(
        r"DELTA_(?:FAILED_TO_MERGE_FIELDS|MERGE_INCOMPATIBLE\w*)[^\n]*",
        "the rows no longer fit the table: {whole}",
    ),
    _known(
        r"A schema mismatch detected when writing to the Delta table",
        "the rows no longer fit the table. merge_schema: true adds columns",
    ),
    _known(r"DELTA_CONCURRENT_\w+|Concurrent\w+Exception", "another writer changed the table", may_pass=True),
    _known(
        r"RecordTooLargeException[^\n]*",
        "a record is larger than the broker or the topic takes: {whole}",
    ),
    _known(r"(?:Topic|Group|Cluster)AuthorizationException[^\n]*", "Kafka does not allow it: {whole}"),
    _known(r"SaslAuthenticationException[^\n]*", "Kafka refuses the credentials: {whole}"),
    _known(
        r"TimeoutException|DisconnectException|Connection to node|ConnectException|NotLeaderOrFollower"
        r"|NetworkException|Failed to construct kafka|CoordinatorNotAvailable|BrokerNotAvailable",
        "the broker does not answer",
        may_pass=True,
    ),
    _known(
        r"java\.lang\.OutOfMemoryError",
        "Spark's memory is not enough: give it more, such as spark.driver.memory: 4g under spark",
    ),
    _known(
        r"STATE_STORE|StateSchemaNotCompatible|Provided schema doesn't match",
        "the steps changed so that the state of the checkpoint no longer fits: undo the change, or give the "
        "sink a new name (it then starts anew)",
    ),
)


# A query's message holds its plan, in which any word may stand.
_PLAN = re.compile(r"=== Streaming Query ===.*?(?=\n\s+at |\Z)", re.DOTALL)


_REFUSALS = (
    (
        re.compile(
            r"with name (`[^\n]+?`) cannot be resolved\.(?: Did you mean one of the following\? \[(.*?)\])?"
        ),
        "there is no column {0}; there are {1}",
    ),
    (re.compile(r"Cannot resolve routine (`[^\n]+?`)"), "there is no function {0}"),
    (re.compile(r"The table or view (`[^\n]+?`) cannot be found"), "there is no source, table or step {0}"),
)


def refusal(error: BaseException) -> str:
    """Why Spark refuses a query, in a line: without the plan, which is a screenful."""
    said = str(error).strip()
    for pattern, message in _REFUSALS:
        found = pattern.search(said)
        if found is not None:
            return message.format(*(_public(each or "others") for each in found.groups()))
    line = said.split("\n", 1)[0].rstrip(";")
    where = re.search(r"\(line \d+, pos \d+\)", line)
    line = re.sub(r"^\[[A-Z_.]+\] ", "", line.split(" SQLSTATE")[0])
    return f"Spark refuses it: {line}{f' {where[0]}' if where else ''}"


def _public(names: str) -> str:
    """Without columns that are the pipeline's own."""
    return ", ".join(name for name in names.split(", ") if not name.startswith("`__"))


def explain(error: BaseException | str) -> Failure:
    said = _said(error)
    for known in _TABLE:
        found = known.pattern.search(said)
        if found is not None:
            return Failure(known.message.format(*found.groups(), whole=found[0].strip()), known.may_pass)
    return Failure(_first_cause(said), may_pass=False)


def _said(error: object) -> str:
    """The message, Java's stack trace and those of the causes, without plans."""
    texts, seen = [], 0
    while error is not None and seen < 10:
        texts += [str(error), str(getattr(error, "_stackTrace", "") or "")]
        error = getattr(error, "_cause", None)
        seen += 1
    return _PLAN.sub("", "\n".join(texts)).strip()


def _first_cause(said: str) -> str:
    """The sentence that says most: the last "Caused by", else the first line."""
    causes = re.findall(r"Caused by: ([^\n]+)", said)
    # py4j's own first line says only which method was called.
    said = re.sub(r"\AAn error occurred while calling [^\n]*\n: ", "", said.strip())
    text = causes[-1] if causes else said.split("\n", 1)[0]
    return text.split(" SQLSTATE")[0].strip() or "no reason given"
