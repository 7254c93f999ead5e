"""What the desk's endpoints share: reading a request, and the refusals of a store as Problems."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from discreet.collector import limits
from discreet.collector.desk_drafts import Misplaced, parse_body
from discreet.collector.problems import Problem, damaged, down
from discreet.collector.store import KEEPS, NoCollection, StoreDamaged, StoreDown
from discreet.errors import DataError

T = TypeVar("T")


async def read_content(request: Request, most: int = limits.DRAFT_SIZE) -> dict[str, object]:
    """The JSON object of a request."""
    body = bytearray()
    try:
        async with asyncio.timeout(limits.BODY_PAUSE):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise Problem("large", f"the body has more than {most:,} bytes")
    except (TimeoutError, ClientDisconnect):
        raise Problem("slow", "the body did not arrive in time; send it again") from None
    try:
        return parse_body(bytes(body))
    except Misplaced as error:
        raise Problem("draft", str(error)) from None


def read_number(content: dict[str, object], key: str, default: int, most: int) -> int:
    """A whole number of a request."""
    value = content.get(key, default)
    if type(value) is not int or not 1 <= value <= most:
        raise Problem("draft", f"{key} must be a whole number from 1 to {most:,}")
    return value


def read_keep(content: dict[str, object]) -> str:
    """What the collector keeps of a survey."""
    keep = content.get("keep", KEEPS[0])
    if not isinstance(keep, str) or keep not in KEEPS:
        raise Problem("draft", f"keep must be one of {', '.join(KEEPS)}")
    return keep


async def guarded(name: str, work: Awaitable[T]) -> T:
    """What the store answers; Problem says why it refuses."""
    try:
        return await work
    except NoCollection as error:
        raise Problem("unknown", str(error)) from None
    except StoreDown as error:
        raise down(error) from None
    except StoreDamaged as error:
        raise damaged(name, error) from None
    except DataError as error:
        raise Problem("refused", str(error)) from None
