"""The headers of every answer: strict ones, and who may read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from discreet import wire
from discreet.collector.pages import POLICY

ANYONE = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
PREFLIGHT = {
    **ANYONE,
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": f"Content-Type, {wire.HEADER}",
    "Access-Control-Max-Age": "600",
}
STRICT = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
]
_UNLESS_SAID = [(b"cache-control", b"no-store"), (b"content-security-policy", POLICY.encode())]
# all of them, ready, for the answer that is given most often
COUNTED = [
    (b"content-type", b"application/json"),
    *((name.lower().encode(), value.encode()) for name, value in ANYONE.items()),
    *STRICT,
    *_UNLESS_SAID,
]


def with_headers(app: Any) -> Any:
    """The same application with strict headers on every answer."""

    async def wrapped(scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        async def strict(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                unsaid = (pair for pair in _UNLESS_SAID if pair[0] not in given)
                message["headers"] = [*message["headers"], *STRICT, *unsaid]
            await send(message)

        await app(scope, receive, strict if scope["type"] == "http" else send)

    return wrapped
