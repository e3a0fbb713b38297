"""Log lines as JSON objects, for machines that collect them."""

from __future__ import annotations

import json
import logging

from kbroker.cli.times import iso
from kbroker.observability.log_lines import fields_of


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": iso(int(record.created * 1000)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
