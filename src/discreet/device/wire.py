"""What a client and a collector say to each other: names and sizes, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from discreet.survey import Survey

ID_SIZE = 16  # bytes of the random id before a report
COLLECTIONS = "/v1/collections"
HEADER = "Discreet-Survey"  # the fingerprint of an upload's survey
BINARY = "application/octet-stream"


def collection_path(collection: str) -> str:
    """The path of a collection."""
    return f"{COLLECTIONS}/{quote(collection, safe='')}"


def page_path(collection: str) -> str:
    """The path of its page for participants."""
    return f"/c/{quote(collection, safe='')}"


def front_size(survey: Survey) -> int:
    """Bytes between the id and the report: the question's number where there are several, and the
    chosen item of every public question.
    """
    return survey.has_several + len(survey.public)


def front(survey: Survey, question: int, group: Sequence[int]) -> bytes:
    """These bytes, for the question and the public answers at these places."""
    return bytes([*([question] if survey.has_several else []), *group])


def question_place(survey: Survey, content: Sequence[int]) -> int:
    """The number of the question in the bytes after an id; the survey may have no such question."""
    return content[0] if survey.has_several and content else 0


def public_part(survey: Survey) -> slice:
    """Where the public answers stand in the bytes after an id."""
    return slice(int(survey.has_several), front_size(survey))


def upload_headers(fingerprint: str) -> dict[str, str]:
    """The headers of an upload."""
    return {"Content-Type": BINARY, HEADER: fingerprint}


def origin(scheme: str, host: str, port: int | None) -> str:
    """Scheme, host and port as browsers write them: without the usual port."""
    shown = f"[{host}]" if ":" in host else host
    usual = port is None or port == {"http": 80, "https": 443}[scheme]
    return f"{scheme}://{shown}" + ("" if usual else f":{port}")
