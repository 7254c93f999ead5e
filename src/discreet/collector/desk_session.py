"""Who may use the desk: sessions in a cookie, the limit on wrong tokens, and the check that a
request comes from our own page.

A session is an expiry and a nonce, signed with a key that is made from the token's hash. Nothing is
stored, so it survives a restart, every worker knows it, and it ends when its token is replaced.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from discreet.collector import limits
from discreet.collector.problems import Problem
from discreet.collector.tokens import TokenCheck

COOKIE, PATH = "discreet-desk", "/desk"
HEADER = "discreet-desk"  # a form cannot set it, and another site may not
_COOKIE = re.compile(r"([0-9a-f]{1,12})\.([0-9a-f]{32})\.([01])\.([0-9a-f]{64})")


class Session(NamedTuple):
    """Somebody who has sent a token that works. `secure`: over TLS."""

    secure: bool


class Sessions:
    """Makes and reads the cookies."""

    def __init__(self, lock: TokenCheck, now: Callable[[], float] = time.time) -> None:
        self._lock, self._now = lock, now

    def begin(self, token: str, secure: bool) -> str | None:
        """The cookie of a new session; None if the token does not work."""
        hashed = self._lock.find(token)
        if hashed is None:
            return None
        expires = math.ceil(self._now() + limits.SESSION_SECONDS)
        payload = f"{expires:x}.{secrets.token_hex(16)}.{secure:d}"
        return f"{payload}.{_sign(hashed, payload)}"

    def find(self, request: Request) -> Session:
        """The session of a request; Problem (401) if it has none."""
        cookie = _COOKIE.fullmatch(request.cookies.get(COOKIE, ""))
        if cookie:
            payload, sent = cookie[0].rpartition(".")[0], cookie[4]
            good = [
                hmac.compare_digest(_sign(hashed, payload), sent) for hashed in self._lock.hashes()
            ]
            if any(good) and int(cookie[1], 16) > self._now():
                return Session(cookie[3] == "1")
        raise Problem("session", "log in with the organiser's token")


def set_cookie(value: str, secure: bool) -> str:
    """The header Set-Cookie. Without a date the cookie ends with the browser's session; an empty
    value removes it.
    """
    end = "" if value else "; Max-Age=0"
    return f"{COOKIE}={value}; Path={PATH}; HttpOnly; SameSite=Strict{end}{'; Secure' * secure}"


def _sign(hashed: bytes, payload: str) -> str:
    key = hmac.digest(hashed, b"the key of the desk's sessions", "sha256")
    return hmac.new(key, payload.encode(), hashlib.sha256).hexdigest()


# ---- where a request comes from ------------------------------------------------------------------


def check_origin(request: Request, public_url: str = "") -> bool:
    """Problem (403) unless a request that changes something comes from our own page: browsers say
    so, and let no other site set the header. Returns whether the page was loaded over TLS.
    """
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "")
    ours = {request.headers.get("host", "").lower(), urlsplit(public_url).netloc.lower()} - {""}
    named = _netloc(origin) in ours if origin else site == "same-origin"
    if site not in ("", "same-origin") or not named or HEADER not in request.headers:
        raise Problem("origin", "only the desk's own page may ask for this; open /desk")
    return origin.startswith("https:") or request.url.scheme == "https"


def _netloc(origin: str) -> str:
    """Host and port of an origin; empty if it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def check_reader(request: Request) -> None:
    """Problem (403) if another site asks, whatever its cookie."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Problem("origin", "only the desk's own page may ask for this; open /desk")


# ---- wrong tokens --------------------------------------------------------------------------------


class WrongTokens:
    """How many wrong tokens an address has sent lately. Behind a proxy everybody has the same."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Problem (429) after too many: a further token is not even looked at."""
        times = self._times.get(address, deque())
        while times and times[0] <= self._now() - limits.WRONG_SECONDS:
            times.popleft()
        if len(times) >= limits.WRONG_TOKENS:
            wait = math.ceil(times[0] + limits.WRONG_SECONDS - self._now())
            detail = f"too many wrong tokens; try again in {wait} seconds"
            raise Problem("guesses", detail, {"Retry-After": str(wait)})

    def add(self, address: str) -> None:
        """Count a wrong token."""
        self._times.setdefault(address, deque()).append(self._now())
        self._times.move_to_end(address)
        while len(self._times) > limits.WRONG_ADDRESSES:
            self._times.popitem(last=False)
