"""Where random bits come from: AES-256-CTR keystreams with keys and counters from the system.

There is no global generator and no seed. Every call that perturbs makes its own keystreams, one per
block, so no two blocks, threads or forked processes ever share one.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Buffer: TypeAlias = NDArray[np.unsignedinteger]  # contiguous, of any width

_CHUNK = 1 << 18  # bytes encrypted at once: they stay in the second-level cache
_ZEROS = bytes(_CHUNK)


class BitSource(ABC):
    """Uniform random bits, and exact draws from them."""

    @abstractmethod
    def fill(self, buffer: Buffer) -> None:
        """Overwrite a contiguous array with random bits."""

    def uint32(self, count: int) -> NDArray[np.uint32]:
        """Uniform 32-bit integers."""
        buffer = np.empty(count, dtype=np.uint32)
        if count:
            self.fill(buffer)
        return buffer

    def below(self, bounds: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Uniform integers in [0, bound), 1 <= bound <= 2^32, exactly: by rejection."""
        limits = (np.uint64(2**32) // bounds) * bounds
        draws = self.uint32(len(bounds)).astype(np.uint64)
        pending = np.flatnonzero(draws >= limits)
        while len(pending):
            draws[pending] = self.uint32(len(pending))
            pending = pending[draws[pending] >= limits[pending]]
        return draws % bounds


class Keystream(BitSource):
    """Secure random bits. Do not share one between threads."""

    def __init__(self) -> None:
        key, counter = os.urandom(32), os.urandom(16)
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
        self._pid = os.getpid()

    def fill(self, buffer: Buffer) -> None:
        """Overwrite a contiguous array with random bits."""
        if os.getpid() != self._pid:  # a fork copied the state: do not repeat the parent's stream
            self.__init__()  # type: ignore[misc]
        view = memoryview(buffer.view(np.uint8).reshape(-1))  # type: ignore[arg-type]
        for start in range(0, len(view), _CHUNK):
            piece = view[start : start + _CHUNK]
            self._encryptor.update_into(
                _ZEROS[: len(piece)] if len(piece) < _CHUNK else _ZEROS, piece
            )
