"""Refusals as RFC 9457 problem documents, from one table.

The table feeds the answers, the metrics and the OpenAPI description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import orjson
from starlette.responses import Response

from discreet.collector import limits
from discreet.collector.logs import log_event
from discreet.device import wire
from discreet.encodings import REASONS

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

UPLOAD, ESTIMATE, DESK, ANY = "an upload", "an estimate", "the desk", "anything"


class Refusal(NamedTuple):
    """A reason to refuse a request: the HTTP status, the meaning in general (the `detail` of an
    answer has the particulars), and which requests can be refused for it.
    """

    status: int
    meaning: str
    applies_to: str = UPLOAD


REFUSALS = {
    "header": Refusal(400, f"The header {wire.HEADER} is missing."),
    "empty": Refusal(400, "The body is empty."),
    "frame": Refusal(400, "The body is not a whole number of frames."),
    "query": Refusal(400, "A parameter is unknown, wrong, or given more than once.", ESTIMATE),
    "token": Refusal(401, "The organiser's token is missing or wrong.", ESTIMATE),
    "early": Refusal(403, "The collection has not opened yet."),
    "unknown": Refusal(404, "There is no such collection.", ANY),
    "slow": Refusal(408, "The body came too slowly."),
    "survey": Refusal(409, "The fingerprint is that of another survey."),
    "closed": Refusal(410, "The collection is closed."),
    "large": Refusal(413, "The body is too large."),
    "type": Refusal(415, f"Reports are {wire.BINARY}."),
    "question": Refusal(422, "A frame is about a question that the survey does not have."),
    "public": Refusal(422, "A frame has a public answer that there is not."),
    **dict.fromkeys(REASONS, Refusal(422, "A frame is not a report.")),
    "unexpected": Refusal(500, "An error in the service; nothing was acknowledged.", ANY),
    "busy": Refusal(503, "Too many reports are waiting; nothing was acknowledged. Try again."),
    "store": Refusal(503, "The store cannot be reached; nothing was acknowledged. Try again.", ANY),
    "damaged": Refusal(503, "This collection is damaged; nothing was acknowledged.", ANY),
    "session": Refusal(401, "The organiser has not logged in.", DESK),
    "origin": Refusal(403, "Another site asks, or not the desk's own page.", DESK),
    "guesses": Refusal(429, "Too many wrong tokens.", DESK),
    "draft": Refusal(422, "The survey file or the request is not valid.", DESK),
    "refused": Refusal(409, "The survey's state does not allow this.", DESK),
    "http": Refusal(400, "The service does not understand this request.", "no endpoint"),
}
RETRY = MappingProxyType({"Retry-After": str(limits.RETRY)})


def list_refusals(request: str) -> dict[str, Refusal]:
    """The refusals that apply to this kind of request (`UPLOAD` or `ESTIMATE`), by reason."""
    return {
        reason: refusal
        for reason, refusal in REFUSALS.items()
        if refusal.applies_to in (request, ANY)
    }


class Problem(Exception):
    """A refused request, answered as application/problem+json. `index` is the number of the first
    bad frame of an upload.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.index = reason, detail, index
        self.headers = dict(headers or {})  # a copy, because callers add to it
        self.status = status or REFUSALS[reason].status

    def response(self) -> Response:
        """Make the HTTP response."""
        body: dict[str, Json] = {
            "type": "about:blank",
            "title": self.reason,
            "status": self.status,
            "detail": self.detail,
        }
        if self.index is not None:
            body["index"] = self.index
        return answer(body, self.status, self.headers, "application/problem+json")


def answer(
    document: Json,
    status: int = 200,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    """Answer with a JSON document; numbers that are not finite become null."""
    return Response(orjson.dumps(document), status, headers, media_type)


def down(error: Exception) -> Problem:
    """The problem of a store that is down; also logged."""
    log_event("store", problem=str(error))
    detail = "the store cannot be reached just now; send the same reports again in a few seconds"
    return Problem("store", detail, RETRY)


def damaged(name: str, error: Exception) -> Problem:
    """The problem of a damaged collection; also logged."""
    log_event("damaged", collection=name, problem=str(error))
    detail = (
        f'the collection "{name}" is damaged and the organiser must repair it; nothing was '
        "acknowledged, send the same reports again later"
    )
    return Problem("damaged", detail, RETRY)


def unexpected(error: Exception) -> Problem:
    """The problem of an error in our own code; only its type is logged."""
    log_event("unexpected", problem=type(error).__name__)
    detail = "an error in the service; nothing was acknowledged, so send it again"
    return Problem("unexpected", detail)
