"""The one address that people use. A browser keeps what it remembers apart per origin, so a
collector with several names would be asked by several memories: its pages are shown under one.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from discreet.errors import DataError
from discreet.wire import origin


def public(url: str) -> str:
    """A public address as it is printed and redirected to: scheme, host, and perhaps a path."""
    try:
        parts = urlsplit(url)
        port = parts.port  # raises where there is none
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
            f'"{url}" is not encrypted, and browsers let no page verify a promise there; put TLS '
            "in front (docs/deploying.md) and give its https:// address"
        )
    return origin(parts.scheme, parts.hostname, port or None) + parts.path.rstrip("/")


def is_any(host: str) -> bool:
    """Whether a host stands for all addresses of a machine, and so for none to be opened."""
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
    """Whether a Host header names another host than the public one. This machine is none: a proxy
    may ask for it by that name.
    """
    try:
        asked = urlsplit(f"//{header}")
        host, port = asked.hostname or "", asked.port
    except ValueError:
        return True
    if is_here(host):
        return False
    known = urlsplit(public_url)
    return origin(known.scheme, host, port or None) != origin(
        known.scheme, known.hostname or "", known.port
    )
