"""The pages of the desk: the desk itself, the preview of a draft, and results without the token."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import lru_cache
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from discreet.collector import documents, pages
from discreet.collector.store import Collection

_DESK = f"{pages.POLICY}; frame-src 'self'"


async def desk(_: Request) -> Response:
    """GET /desk: the same page for everybody; its script fetches the rest with the session."""
    headers = {"Content-Security-Policy": _DESK}
    return Response(pages.desk(), media_type="text/html", headers=headers)


async def preview(_: Request) -> Response:
    """GET /desk/preview/c/{name}: the participant's page, which gets the draft from the desk in the
    same tab. Its policy allows no connection, so no report can leave the browser.
    """
    page, policy = _preview()
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}
    return Response(page, media_type="text/html", headers=headers)


@lru_cache(maxsize=1)
def _preview() -> tuple[bytes, str]:
    before = pages.read("preview.js")
    mark = b64encode(hashlib.sha256(before.encode()).digest()).decode()
    inner = pages.answer_policy_with(f"'sha256-{mark}'", "connect-src 'none'")
    whole = pages.answer_with(inner, f"<script>{before}</script>")
    return whole, f"{inner}; frame-ancestors 'self'"


def results(collection: Collection) -> Response:
    """The results page, which reads the estimate with the session in place of the token."""
    link = f"/desk/surveys/{quote(collection.name, safe='')}/estimate"
    title = documents.title(collection)
    page = pages.results(collection.name, title, False, desk_link=link)
    headers = {"Content-Security-Policy": pages.RESULTS_POLICY}
    return Response(page, media_type="text/html", headers=headers)
