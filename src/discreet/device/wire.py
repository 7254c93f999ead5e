"""What a client and a collector say to each other: names and sizes, once."""

from __future__ import annotations

from urllib.parse import quote

ID_SIZE = 16  # bytes of the random id before a report
COLLECTIONS = "/v1/collections"
HEADER = "Discreet-Mechanism"  # the fingerprint of an upload's mechanism
BINARY = "application/octet-stream"


def path_of(collection: str) -> str:
    """The path of a collection."""
    return f"{COLLECTIONS}/{quote(collection, safe='')}"


def page_of(collection: str) -> str:
    """The path of its page for participants."""
    return f"/c/{quote(collection, safe='')}"


def upload_headers(fingerprint: str) -> dict[str, str]:
    """The headers of an upload."""
    return {"Content-Type": BINARY, HEADER: fingerprint}


def origin(scheme: str, host: str, port: int | None) -> str:
    """Scheme, host and port as browsers write them: without the usual port."""
    shown = f"[{host}]" if ":" in host else host
    usual = port is None or port == {"http": 80, "https": 443}[scheme]
    return f"{scheme}://{shown}" + ("" if usual else f":{port}")
