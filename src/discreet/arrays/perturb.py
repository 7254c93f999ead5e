"""Turn the answers of many people into reports. Secure randomness only; there is no seed here."""

from __future__ import annotations

import numpy as np

from discreet.arrays.answers import places, ragged
from discreet.arrays.randomness import Keystream
from discreet.arrays.threads import run_blocks
from discreet.arrays.types import Answers, Bytes, Ints
from discreet.mechanism import Mechanism

_BLOCK_BYTES = 1 << 21  # of reports that a thread makes at once


def perturb_many(
    mechanism: Mechanism, answers: Answers, threads: int | None = None, indices: bool = False
) -> Bytes:
    """The reports of many people as an n x report_size array.

    Single answers are a sequence of labels or of indices. Sets are a sequence of sets, a pair
    (items, offsets) of a ragged array, or an Arrow list array. `threads` is the number of cores by
    default, if there is enough work. `indices` says that all items are indices, even where labels
    look like whole numbers.
    """
    if not mechanism.policy.kind.lists:
        return _write_rows(mechanism, places(mechanism, answers, indices), threads=threads)
    items, offsets = ragged(mechanism, answers, indices)
    return _write_rows(mechanism, items, offsets, threads=threads)


def _write_rows(
    mechanism: Mechanism,
    items: Ints,
    offsets: Ints | None = None,
    threads: int | None = None,
) -> Bytes:
    n = len(items) if offsets is None else len(offsets) - 1
    out = np.empty((n, mechanism.report_size), np.uint8)
    coder = mechanism.arrays.coder_for(n)

    def work(first: int, last: int) -> None:
        source = Keystream()  # of this block alone
        if offsets is None:
            coder.write(source, items[first:last], out[first:last])
        else:
            coder.write_sets(source, items, offsets[first : last + 1], out[first:last])

    run_blocks(work, n, max(64, min(_BLOCK_BYTES // mechanism.report_size, 1 << 16)), threads)
    return out
