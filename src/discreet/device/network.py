"""Requests to a collector, tried again while it is away or busy."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from discreet.errors import ClientError
from discreet.policy.labels import cleaned
from discreet.policy.sniff import parse_document

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

_LARGEST = 256 << 20  # bytes of an answer that are read
_LONGEST_PAUSE = 20.0  # seconds between two attempts, whatever the server asks for


class Network:
    """Talks to one collector, for so many seconds per request."""

    def __init__(self, url: str, patience: float, waiting: Callable[[str], None]) -> None:
        self.url, self.patience, self.waiting = url, patience, waiting
        # made here, and not once and for all: it reads SSL_CERT_FILE when it is made
        self._opener = urllib.request.build_opener(NoRedirects)

    def request(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> JsonObject:
        """The JSON that the collector answers; tried again while it is away or busy."""
        end, pause = time.monotonic() + self.patience, 0.25
        request = urllib.request.Request(
            url, body, {"User-Agent": "discreet", "Accept": "application/json", **headers}
        )
        while True:
            why, wait = "", pause * (1 + random.random())
            try:
                with self._opener.open(
                    request, timeout=max(1.0, min(_LONGEST_PAUSE, end - time.monotonic()))
                ) as answer:
                    raw = answer.read(_LARGEST + 1)
                if len(raw) > _LARGEST:
                    raise ClientError(
                        f"{self.url} sends a longer answer than any collector; check the address"
                    )
                if len(raw) < _whole(answer.headers.get("Content-Length")):
                    raise http.client.IncompleteRead(raw)
                return parse_document(raw)
            except urllib.error.HTTPError as error:
                with error:  # it holds the connection
                    if error.code < 500 and error.code not in (408, 425, 429):
                        raise ClientError(f"the collector refused: {_detail(error)}") from None
                    why = f"it answers {error.code}"
                    asked = float(_whole(error.headers.get("Retry-After")))
                    wait = min(_LONGEST_PAUSE, max(wait, asked))
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                reason = getattr(error, "reason", error)
                said = getattr(reason, "strerror", None) or str(reason)
                why = cleaned(said) or type(error).__name__
            except (ValueError, RecursionError):
                raise ClientError(
                    f"{self.url} does not answer like a collector; check the address"
                ) from None
            if time.monotonic() + wait > end:
                raise ClientError(
                    f"the collector at {self.url} cannot be used: {why}; try again later"
                )
            self.waiting(why)
            time.sleep(wait)
            pause = min(_LONGEST_PAUSE, 2 * pause)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A collector does not redirect: a report goes where it was meant to go."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Never."""


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(error.read(65536))["detail"]
        return (cleaned(said) if isinstance(said, str) else "") or f"it answers {error.code}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return f"it answers {error.code}"


def _whole(text: str | None) -> int:
    """A header that is a whole number; 0 if it is none, or no sensible one."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else 0
