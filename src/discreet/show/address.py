"""The one public address of a collector. A browser stores data per origin, so a device that used
two names of a collector would keep two ledgers. That is why the pages are shown under one name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from discreet.device.wire import origin
from discreet.errors import DataError


def public(url: str) -> str:
    """Check a public address, and return its scheme, host and path as links show them."""
    try:
        parts = urlsplit(url)
        port = parts.port  # raises if it is not a number
    except ValueError:
        parts, port = urlsplit(""), None
    odd = parts.query or parts.fragment or parts.username or not url.isascii() or " " in url
    if parts.scheme not in ("http", "https") or not parts.hostname or odd or is_any(parts.hostname):
        raise DataError(
            f'"{url}" is not an address that people can open; it looks like '
            "https://survey.example.org"
        )
    if parts.scheme == "http" and not is_here(parts.hostname):
        raise DataError(
            f'"{url}" is not encrypted, and browsers do not let a page verify a promise there; '
            "put TLS in front (docs/deploying.md) and give its https:// address"
        )
    return origin(parts.scheme, parts.hostname, port or None) + parts.path.rstrip("/")


def framing(origins: Iterable[str]) -> tuple[str, ...]:
    """Check the websites that may show the participant's page in a frame: origins, each alone.

    >>> framing(["https://WWW.Example.org/"])
    ('https://www.example.org',)
    """
    return tuple(dict.fromkeys(map(_framing, origins)))


def _framing(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    named = all(c.isascii() and (c.isalnum() or c in ".-:") for c in host)
    more = parts.path not in ("", "/") or "?" in url or "#" in url or "@" in url
    if parts.scheme not in ("http", "https") or not host or not named or more:
        raise DataError(
            f'--frame-ancestors "{url}" is not the address of one website; write its https:// and '
            "its host, as in https://www.example.org, without a path or a *"
        )
    if parts.scheme == "http" and not is_here(host):
        raise DataError(
            f'--frame-ancestors "{url}" is not encrypted, so anybody on the way could change the '
            "page around the survey; give an https:// address"
        )
    return origin(parts.scheme, host, port)


def is_any(host: str) -> bool:
    """Whether a host means all addresses of a machine (0.0.0.0), which nobody can open."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_here(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def elsewhere(public_url: str, header: str) -> bool:
    """Whether a Host header names another host than the public one. "localhost" does not count,
    because a proxy may use it.
    """
    try:
        parts = urlsplit(f"//{header}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return True
    if is_here(host):
        return False
    public = urlsplit(public_url)
    return origin(public.scheme, host, port or None) != origin(
        public.scheme, public.hostname or "", public.port
    )
