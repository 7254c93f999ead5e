"""The log of the service: one JSON object per line, without personal data."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import deque
from typing import ClassVar

from discreet.collector import limits

log = logging.getLogger("discreet")
_logged: dict[str, float] = {}  # when an event was last logged


def log_event(event: str, **facts: str) -> None:
    """Log an error, at most once every few seconds for the same event and collection: anyone can
    cause one with every request.
    """
    key = f"{event} {facts.get('collection', '')}"
    if time.monotonic() - _logged.get(key, -math.inf) > limits.SILENCE:
        _logged[key] = time.monotonic()
        log.error(event, extra={"facts": facts})


class JsonLines(logging.Formatter):
    """One JSON object per line: the minute, the level, the event and its facts. Of an exception
    only the type is logged; its message could hold personal data.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        facts = {
            "time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
        }
        facts |= {"event": record.getMessage() if record.name.startswith("discreet") else "server"}
        facts |= getattr(record, "facts", {})
        if record.name.startswith("uvicorn"):
            facts["message"] = record.getMessage().splitlines()[0][:200]
        if record.exc_info and record.exc_info[0]:
            facts["exception"] = record.exc_info[0].__name__
        return json.dumps(facts, ensure_ascii=False)


class RateLimit(logging.Filter):
    """Passes the same message once every few seconds: anyone can send invalid requests."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        message, now = str(record.msg)[:80], time.monotonic()
        if now - self._passed.get(message, -limits.SILENCE) < limits.SILENCE:
            return False
        self._passed[message] = now
        return True


class Recent(logging.Handler):
    """Keeps the last lines in memory, for the desk."""

    lines: ClassVar[deque[str]] = deque(maxlen=limits.LOG_LINES)  # of this process

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.lines.append(self.format(record))


LOGGING: dict[str, object] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonLines}},
    "filters": {"rate limit": {"()": RateLimit}},
    "handlers": {
        "all": {"class": "logging.StreamHandler", "formatter": "json"},
        "recent": {"()": Recent, "formatter": "json"},
        "rate limited": {
            "class": "logging.StreamHandler",
            "formatter": "json",
            "filters": ["rate limit"],
        },
    },
    "loggers": {
        "discreet": {"handlers": ["all", "recent"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["rate limited"], "level": "WARNING", "propagate": False},
    },
}
