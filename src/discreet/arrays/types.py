"""The arrays that the rooms pass around, by name, and what callers may pass in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Uint16s: TypeAlias = NDArray[np.uint16]
Uint32s: TypeAlias = NDArray[np.uint32]  # random bits, and tickets
Words: TypeAlias = NDArray[np.uint64]  # 64 packed bits each

# shares of participants: "uniform", "worst", or shares per item or level
Prior: TypeAlias = str | Mapping[str, float] | Sequence[float] | Floats
# one answer per person: a list, an array, a column of Arrow, pandas or polars, a generator
Answers: TypeAlias = Iterable[object]
# an n x report_size array, a list of bytes, or tickets as whole numbers
Reports: TypeAlias = Iterable[bytes] | NDArray[np.integer]

_Array = TypeVar("_Array", bound=NDArray[np.generic])


def read_only(array: _Array) -> _Array:
    """Make the array read-only: nothing of a mechanism can change after the check."""
    array.flags.writeable = False
    return array


def sum_by_place(places: NDArray[np.integer] | Sequence[int], values: Floats, size: int) -> Floats:
    """The sum of the values at every place below `size`.

    >>> sum_by_place([0, 2, 0], np.array([0.5, 1.0, 0.25]), 3).tolist()
    [0.75, 0.0, 1.0]
    """
    return np.bincount(places, values, size).astype(np.float64, copy=False)
