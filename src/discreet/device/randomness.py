"""Random numbers for one report: fresh from the operating system, never reused, without a seed."""

from __future__ import annotations

import os

_CHUNK = 512  # bytes asked of the system at once


class SystemRandomness:
    """Uniform random numbers for one report. Every report gets one of its own, so no two reports,
    threads or forked processes ever share a number.
    """

    def __init__(self) -> None:
        self._bytes, self._used = b"", 0

    def bits(self, count: int) -> int:
        """A whole number of so many random bits."""
        size = -(-count // 8)
        return int.from_bytes(self._take(size), "little") >> (8 * size - count)

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, each with the same chance: what is beyond the bound
        is drawn again.
        """
        count = (bound - 1).bit_length()
        while True:
            number = self.bits(count)
            if number < bound:
                return number

    def _fresh(self, size: int) -> bytes:
        return os.urandom(size)

    def _take(self, size: int) -> bytes:
        if size > len(self._bytes) - self._used:
            self._bytes, self._used = self._fresh(max(size, _CHUNK)), 0
        first, self._used = self._used, self._used + size
        return self._bytes[first : self._used]
