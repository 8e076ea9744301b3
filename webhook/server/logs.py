"""The server's own log on standard error: text for people, or one JSON object a line for log collectors."""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from gunicorn.glogging import Logger

from webhook.texts import visible

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_TEXT = "%(asctime)s %(levelname)s %(message)s"


class TextFormatter(logging.Formatter):
    """One line for each message, whatever text of a ConfigMap is in it; a traceback follows as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line for a record."""
        record.message = visible(record.message)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message`, and `exception` where there is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        # A path may be no UTF-8: Python has surrogates for its bytes, which orjson refuses.
        known = {key: value.encode(errors="backslashreplace").decode() for key, value in entry.items()}
        return orjson.dumps(known).decode()


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
    formatters: Mapping[str, logging.Formatter] = {"text": TextFormatter(_TEXT), "json": JsonFormatter()}
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatters[form])
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
