"""Writes the source of the two loops that run per record: one decodes records, one only finds where they lie.

Both read the same fields (codec.py has the layout) and mostly varints of one or two bytes. These are decoded
in line, because a call per varint would cost more than all else. In the template below a line

    varint NAME         stands for reading a varint into NAME
    varint NAME past N  … behind N bytes that nobody looks at
    int32 NAME          … and refusing one beyond 32 bits
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

_VARINT: Final = """\
byte = data[{position}]
pos += {size}
if byte < 0x80:
    {name} = short[byte]
elif (second := data[pos]) < 0x80:
    byte = byte & 0x7F | second << 7
    {name} = (byte >> 1) ^ -(byte & 1)
    pos += 1
else:
    {name}, pos = rest(data, pos)
"""
_INT32: Final = """\
    if not -0x80000000 <= {name} <= 0x7FFFFFFF:
        raise InvalidRecord(f"{label} {{{name}}} is no int32", index)
"""
_MARK: Final = re.compile(r"^( *)(varint|int32) (\w+)(?: past (\d+))?\n", re.MULTILINE)

_UP_TO_KEY: Final = """\
            varint size
            end = pos + size
            if size < 0 or end > total:
                raise InvalidRecord(f"a record of {size} bytes where {total - pos} remain", index)
            varint timestamp_delta past 1
            int32 offset_delta
            varint size
            key = None
            if size >= 0:
                key = data[pos : pos + size]
                pos += size
                if pos > end:
                    raise InvalidRecord(f"a key of {size} bytes reaches beyond its record", index)
            varint size
"""
_END: Final = """\
    except IndexError:
        raise InvalidRecord(f"the batch ends within its record {index} of {record_count}", index) from None
    if pos != total:
        raise InvalidRecord(f"{total - pos} bytes follow the last of {record_count} records")
"""

DECODE_RECORDS: Final = f"""\
def decode_records(data, record_count, base_offset, base_timestamp, log_append_time):
    make, short, rest = Record._make, zigzag, long_varint
    pos, total = 0, len(data)
    try:
        for index in range(record_count):
{_UP_TO_KEY}
            value = None
            if size >= 0:
                value = data[pos : pos + size]
                pos += size
                if pos > end:
                    raise InvalidRecord(f"a value of {{size}} bytes reaches beyond its record", index)
            headers = ()
            if data[pos] == 0:
                pos += 1
            else:
                headers, pos = decode_headers(data, pos, end, index)
            if pos != end:
                raise InvalidRecord(f"the parts of a record end at {{pos}}, the record at {{end}}", index)
            if log_append_time is not None:
                timestamp = log_append_time
            else:
                timestamp = base_timestamp + timestamp_delta
                if not -0x8000000000000000 <= timestamp <= 0x7FFFFFFFFFFFFFFF:
                    raise InvalidRecord(f"timestamp {{timestamp}} is no int64", index)
            yield make((timestamp, key, value, headers, base_offset + offset_delta, offset_delta))
{_END}"""

# Not RecordSpan._make: a call in Python would cost as much as the decoding.
RECORD_SPANS: Final = f"""\
def record_spans(data, record_count):
    new, span, short, rest = tuple.__new__, RecordSpan, zigzag, long_varint
    pos, total = 0, len(data)
    try:
        for index in range(record_count):
            start = pos
{_UP_TO_KEY}
            if pos >= end or size >= end - pos:  # the header count follows
                raise InvalidRecord(f"a value of {{size}} bytes reaches beyond its record", index)
            pos = end
            yield new(span, (start, end, offset_delta, timestamp_delta, key, size >= 0))
{_END}"""


def expanded(template: str) -> str:
    """The template with its marks replaced by what they stand for."""

    def replace(mark: re.Match[str]) -> str:
        indent, kind, name, past = mark.groups()
        skipped = int(past or 0)
        code = _VARINT + (_INT32 if kind == "int32" else "")
        position = f"pos + {skipped}" if skipped else "pos"
        text = code.format(name=name, label=name.replace("_", " "), position=position, size=skipped + 1)
        return "".join(indent + line for line in text.splitlines(keepends=True))

    return _MARK.sub(replace, template)


def compiled(template: str, name: str, names: dict[str, Any]) -> Callable[..., Iterator[Any]]:
    """The function of a template, in which these names have a meaning."""
    exec(compile(expanded(template), f"<{name}>", "exec"), names)
    found: Callable[..., Iterator[Any]] = names[name]
    return found
