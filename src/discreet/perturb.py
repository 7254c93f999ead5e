"""The user's side: answer -> report. Secure randomness only; there is no seed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.answers import places, ragged
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.randomness import Keystream
from discreet.threads import run_blocks

Bytes = NDArray[np.uint8]
_BLOCK_BYTES = 1 << 21  # of reports made at once by a thread


def one(mechanism: Mechanism, answer: Any) -> bytes:
    """One person's report."""
    if not mechanism.policy.takes_sets:
        if isinstance(answer, set | frozenset | list | tuple):
            raise DataError(
                f"this mechanism takes a single item, got {type(answer).__name__}; the policy's "
                "input is single"
            )
        items = np.array([mechanism.policy.place(answer)])
        return _rows(mechanism, items).tobytes()
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise DataError(f'this mechanism takes a set of items, got {answer!r}; write {{"…"}}')
    chosen = sorted({mechanism.policy.place(item) for item in answer})
    return _rows(mechanism, np.array(chosen, dtype=np.int64), np.array([0, len(chosen)])).tobytes()


def many(
    mechanism: Mechanism, answers: Any, threads: int | None = None, indices: bool = False
) -> Bytes:
    """Many people's reports as an n x report_size array.

    Single input: a sequence of labels or of indices. Set input: a sequence of sets, a pair (items,
    offsets) of a ragged array, or an Arrow list array. `threads`: by default as many as there are
    cores, where the work is worth it. `indices`: all items are indices, also where labels look like
    whole numbers.
    """
    if not mechanism.policy.takes_sets:
        return _rows(mechanism, places(mechanism, answers, indices), threads=threads)
    items, offsets = ragged(mechanism, answers, indices)
    return _rows(mechanism, items, offsets, threads=threads)


# ---- reports -------------------------------------------------------------------------------------


def _rows(
    mechanism: Mechanism,
    items: NDArray[np.int64],
    offsets: NDArray[np.int64] | None = None,
    threads: int | None = None,
) -> Bytes:
    n = len(items) if offsets is None else len(offsets) - 1
    out = np.empty((n, mechanism.report_size), np.uint8)

    def work(first: int, last: int) -> None:
        source = Keystream()  # of this block alone
        if offsets is None:
            mechanism.coder.write(source, items[first:last], out[first:last])
        else:
            mechanism.coder.write_sets(source, items, offsets[first : last + 1], out[first:last])

    run_blocks(work, n, max(64, min(_BLOCK_BYTES // mechanism.report_size, 1 << 16)), threads)
    return out
