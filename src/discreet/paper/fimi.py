"""Whole FIMI files of item numbers, as the paper's data sets are published."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.data.files import Advance, read_fimi
from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

_LONGEST = 18  # digits of an id that a 64-bit integer certainly holds


@dataclass(frozen=True, eq=False)
class Lines:
    """All item ids in order, how many there are on every line (repeated ones counted), and the
    file's hash.
    """

    ids: Ints
    lengths: Ints
    sha256: str


def read(path: Path, advance: Advance = lambda _: None) -> Lines:
    """The lines of a file; raises DataError with the number of the first that is wrong."""
    ids, lengths = [], []
    for before, items, counts in read_fimi(str(path), advance):
        ids.append(_numbers(f"{path}, line", before, items, counts))
        lengths.append(counts)
    counts = np.concatenate(lengths) if lengths else np.empty(0, np.int64)
    if not counts.any():
        raise DataError(f"{path} is empty; it should hold one line of item ids per person")
    counts = counts[: np.flatnonzero(counts)[-1] + 1]  # blank lines at the end are nobody
    if not counts.all():
        empty = int((counts == 0).argmax()) + 1
        raise DataError(f"{path}, line {empty} is empty; every line holds the items of one person")
    return Lines(np.concatenate(ids), counts, hashlib.sha256(path.read_bytes()).hexdigest())


def _numbers(where: str, before: int, items: pa.StringArray, counts: Ints) -> Ints:
    import pyarrow as pa
    import pyarrow.compute as pc

    good = pc.match_substring_regex(items, f"^[0-9]{{1,{_LONGEST}}}$")
    if not pc.all(good, min_count=0).as_py():
        place = int(np.argmin(good.to_numpy(zero_copy_only=False)))
        line = before + int(np.searchsorted(np.cumsum(counts), place, side="right")) + 1
        raise DataError(
            f'{where} {line}: "{items[place].as_py()[:40]}" is not an item id; items are whole '
            "numbers"
        )
    return items.cast(pa.int64()).to_numpy(zero_copy_only=False)
