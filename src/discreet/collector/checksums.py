"""Checksums of what a store writes, so that a flipped bit is noticed before it is served."""

from __future__ import annotations

import zlib

from discreet.collector.records import StoreDamaged


def with_checksum(content: bytes) -> bytes:
    """The same bytes behind their checksum."""
    return b"c" + zlib.crc32(content).to_bytes(4, "little") + content


def checked(raw: bytes) -> bytes:
    """The bytes behind a checksum; StoreDamaged if they are not those that were written."""
    begun = isinstance(raw, bytes) and raw[:1] == b"c"  # a damaged file holds text and numbers too
    if not begun or zlib.crc32(raw[5:]).to_bytes(4, "little") != raw[1:5]:
        raise StoreDamaged(
            "the stored data is damaged: the checksum differs; restore a copy of the store"
        )
    return raw[5:]
