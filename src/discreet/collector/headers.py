"""The headers of every answer: strict security headers, and which origins may read it."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.collector.pages import POLICY
from discreet.device import wire

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
_DEFAULTS = [(b"cache-control", b"no-store"), (b"content-security-policy", POLICY.encode())]
# Every header of the most frequent answer, the receipt of an upload.
RECEIPT = [
    (b"content-type", b"application/json"),
    *((name.lower().encode(), value.encode()) for name, value in ANYONE.items()),
    *STRICT,
    *_DEFAULTS,
]

_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")


def accepts_gzip(request: Request) -> bool:
    """Whether an answer may be compressed."""
    return bool(_GZIP.search(request.headers.get("accept-encoding", "")))


def with_headers(app: ASGIApp) -> ASGIApp:
    """Wrap an application: every answer gets the strict headers, and the defaults that it does not
    set itself.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                missing = (pair for pair in _DEFAULTS if pair[0] not in given)
                message["headers"] = [*message["headers"], *STRICT, *missing]
            await send(message)

        await app(scope, receive, strict if scope["type"] == "http" else send)

    return wrapped
