"""What is answered instead of what was asked for: one table of refusals, as RFC 9457 says them.

The table feeds the answers, the metrics and the OpenAPI description.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from discreet import wire
from discreet.collector import limits
from discreet.encodings import REASONS

UPLOAD, ESTIMATE, ANY = "an upload", "an estimate", "anything"


class Refusal(NamedTuple):
    """The status of an answer, and what it means in general; its `detail` says it in particular.
    `of` is what can be refused so.
    """

    status: int
    meaning: str
    of: str = UPLOAD


REFUSALS = {
    "header": Refusal(400, f"The header {wire.HEADER} is missing."),
    "empty": Refusal(400, "The body is empty."),
    "frame": Refusal(400, "The body is not a whole number of frames."),
    "query": Refusal(400, "A parameter is not one that is known.", ESTIMATE),
    "token": Refusal(401, "The organiser's token is missing or wrong.", ESTIMATE),
    "early": Refusal(403, "The collection has not opened yet."),
    "unknown": Refusal(404, "There is no such collection.", ANY),
    "slow": Refusal(408, "The body came too slowly."),
    "mechanism": Refusal(409, "The mechanism named is not this collection's."),
    "closed": Refusal(410, "The collection is closed."),
    "large": Refusal(413, "The body is too large."),
    "type": Refusal(415, f"Reports are {wire.BINARY}."),
    **dict.fromkeys(REASONS, Refusal(422, "A frame is not a report.")),
    "unexpected": Refusal(500, "Something went wrong here; nothing was acknowledged.", ANY),
    "busy": Refusal(503, "Too many reports are waiting; nothing was acknowledged. Come back."),
    "store": Refusal(503, "The store cannot be reached; nothing was acknowledged. Come back.", ANY),
    "damaged": Refusal(503, "This collection is damaged; nothing was acknowledged.", ANY),
    "http": Refusal(400, "This is not a request that is known here.", "no endpoint"),
}
RETRY = MappingProxyType({"Retry-After": str(limits.RETRY)})


def refusals_of(what: str) -> dict[str, Refusal]:
    """Those that an upload or an estimate can meet."""
    return {reason: one for reason, one in REFUSALS.items() if one.of in (what, ANY)}


log = logging.getLogger("discreet")
_said: dict[str, float] = {}  # when the log last said something


class Problem(Exception):
    """An answer that is not what was asked for, as application/problem+json."""

    def __init__(
        self,
        reason: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.more = reason, detail, more
        self.headers = dict(headers or {})  # its own: others are added
        self.status = status or REFUSALS[reason].status

    def response(self) -> Response:
        """The answer."""
        body = {
            "type": "about:blank",
            "title": self.reason,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }
        return answer(body, self.status, self.headers, "application/problem+json")


def answer(
    document: Any,
    status: int = 200,
    headers: dict[str, str] | None = None,
    kind: str = "application/json",
) -> Response:
    """A document as an answer; what is not a number is null."""
    return Response(orjson.dumps(document), status, headers, kind)


def down(error: Exception) -> Problem:
    """The store is down: said to whoever asks, and in the log now and then."""
    say("store", problem=str(error))
    detail = "the store cannot be reached just now; send the same reports again in some seconds"
    return Problem("store", detail, RETRY)


def damaged(name: str, error: Exception) -> Problem:
    """A collection is damaged: said to whoever asks for it, and in the log now and then."""
    say("damaged", collection=name, problem=str(error))
    detail = (
        f'the collection "{name}" is damaged and the organiser must mend it; nothing was '
        "acknowledged, send the same reports again later"
    )
    return Problem("damaged", detail, RETRY)


def say(event: str, **facts: Any) -> None:
    """A line in the log, but not the same one about the same collection again and again."""
    mark = f"{event} {facts.get('collection', '')}"
    if time.monotonic() - _said.get(mark, -math.inf) > limits.SILENCE:
        _said[mark] = time.monotonic()
        log.error(event, extra={"facts": facts})


def unexpected(error: Exception) -> Problem:
    """Our own fault; the log learns its kind and nothing else."""
    say("unexpected", problem=type(error).__name__)
    detail = "something went wrong here; nothing was acknowledged, so send it again"
    return Problem("unexpected", detail)
