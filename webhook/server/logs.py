"""The server's own log on standard error: text for people, or one JSON object a line for log collectors."""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from gunicorn.glogging import Logger

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_TEXT = "%(asctime)s %(levelname)s %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message`, and `exception` where there is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str).decode(errors="replace")


class ServerLog(Logger):  # type: ignore[misc]
    """gunicorn's log, written as all other lines."""

    def setup(self, cfg: Any) -> None:
        """Pass gunicorn's records on, instead of printing them in a format of their own."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def configure_logging(level: str = "info", form: str = "text") -> None:
    """Log to standard error.

    Args:
        level: one of LEVELS; less important records are dropped.
        form: one of FORMATS.
    """
    formatters: Mapping[str, logging.Formatter] = {"text": logging.Formatter(_TEXT), "json": JsonFormatter()}
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatters[form])
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
