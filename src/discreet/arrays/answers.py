"""Turn answers as callers have them into item indices, and validate them. They may be lists,
generators, or columns and frames of numpy, Arrow, pandas or polars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.types import Answers, Ints
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = "^-?[0-9]{1,18}$"  # an index in text; its range is checked later


class _Framed(Protocol):
    """A column or a table of pandas or polars."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def columns(self) -> Iterable[object]: ...
    def __getitem__(self, name: object, /) -> _Framed: ...
    def to_numpy(self) -> NDArray[np.generic]: ...


def places(mechanism: Mechanism, answers: Answers, indices: bool = False) -> Ints:
    """The item index of every answer, for single answers."""
    column = _column(answers)
    if _is_arrow(column):
        return lookup(mechanism, column, indices or _are_indices(mechanism, column.type))
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.ndim == 1:
        _check_meaning(mechanism, indices)
        _check_range(mechanism, column)
        return column.astype(np.int64)
    listed = _listed(column, "answers are a sequence of items, one per person")
    index = mechanism.policy.index
    labels = [answer for answer in listed if type(answer) is str and answer in index]
    if not indices and len(labels) == len(listed):
        return np.array([index[label] for label in labels], dtype=np.int64)
    place = mechanism.policy.place
    return np.array([place(_no_set(answer), indices) for answer in listed], dtype=np.int64)


def _listed(answers: object, what: str) -> list[object]:
    """The answers as a list. Refuses a single text, a frame, and what has no order."""
    odd = isinstance(answers, str | bytes | Mapping | set | frozenset)
    if odd or not isinstance(answers, Iterable) or getattr(answers, "ndim", 1) != 1:
        raise DataError(f"{what}, got {_kind(answers)}")
    return answers.tolist() if isinstance(answers, np.ndarray) else list(answers)


def _kind(answers: object) -> str:
    shape: tuple[int, ...] = getattr(answers, "shape", ())
    return type(answers).__name__ + (f" of shape {shape}" if len(shape) > 1 else "")


# ---- columns and frames of notebooks -------------------------------------------------------------


def _column(answers: object) -> object:
    """Turn a Series, or a frame with one column, into an Arrow array; leave all else as it is."""
    _refuse_masked(answers)
    if not _is_framed(answers):
        return answers
    if len(getattr(answers, "shape", ())) == 2:
        if answers.shape[1] != 1:
            names = ", ".join(quoted(str(name)) for name in list(answers.columns)[:5])
            raise DataError(
                f"the frame has {answers.shape[1]} columns ({names}); pass the one with the "
                'answers, such as frame["answer"]'
            )
        answers = answers[next(iter(answers.columns))]
    return _series(answers)


def _is_framed(answers: object) -> TypeGuard[_Framed]:
    """Whether pandas or polars made it."""
    return type(answers).__module__.partition(".")[0] in ("pandas", "polars")


def _refuse_masked(answers: object) -> None:
    if isinstance(answers, np.ma.MaskedArray):
        raise DataError("the array masks some answers as missing; leave those people out")


def _series(series: _Framed) -> pa.Array:
    if hasattr(series, "to_arrow"):  # polars
        return series.to_arrow()
    import pyarrow as pa

    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(
            "the column holds values of several kinds; items are labels (text) or whole numbers"
        ) from None


def _ticks(mechanism: Mechanism, answers: object) -> tuple[Ints, Ints] | None:
    """Read sets given as a column of true and false per item: an array of people x items, or a
    frame whose columns are items. None where the answers are not such a table.
    """
    shape: tuple[int, ...] = getattr(answers, "shape", ())
    if len(shape) != 2:
        return None
    _refuse_masked(answers)
    if _is_framed(answers):
        names = [str(name) for name in answers.columns]
        if len(names) == 1 and names[0] not in mechanism.policy.index:
            return None  # one column of sets
        columns = [mechanism.policy.place(name) for name in names]
        if len(set(columns)) < len(columns):
            raise DataError("the frame has two columns of one item; keep one")
        held = np.asarray(answers.to_numpy())
    else:
        held = np.asarray(answers)
        if shape[1] != mechanism.m:
            raise DataError(
                f"an array of true and false has a column for each of the {mechanism.m} items, "
                f"got {shape[1]} columns"
            )
        columns = list(range(mechanism.m))
    if held.dtype.kind not in "biu" or (held.dtype.kind != "b" and not np.isin(held, (0, 1)).all()):
        raise DataError(
            "a table with a column per item holds true and false (or 1 and 0) and nothing else"
        )
    people, places = np.nonzero(held)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(people, minlength=len(held)))))
    return np.array(columns, np.int64)[places], offsets


def _are_indices(mechanism: Mechanism, kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are indices: whole numbers that cannot be labels."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not pa.types.is_integer(kind):
        return False
    _check_meaning(mechanism, False)
    return True


def _check_meaning(mechanism: Mechanism, indices: bool) -> None:
    if not indices and mechanism.policy.integer_like_label is not None:
        raise DataError(
            "whole numbers may be labels or indices here, because "
            f"{quoted(mechanism.policy.integer_like_label)} is a label; pass labels as text, or "
            "say indices=True"
        )


def _is_arrow(answers: object) -> TypeGuard[pa.Array]:
    if not type(answers).__module__.startswith("pyarrow"):
        return False
    import pyarrow as pa

    if not isinstance(answers, pa.Array | pa.ChunkedArray):
        raise DataError(
            f"answers are a sequence of items, one per person, got {type(answers).__name__}; pass "
            "one column"
        )
    return True


def _no_set(answer: object) -> object:
    """The answer; refused if it is a set."""
    if isinstance(answer, set | frozenset | list | tuple):
        raise DataError(
            "this mechanism takes a single item per person, got a set; the policy's kind is single"
        )
    return answer


def ragged(mechanism: Mechanism, answers: Answers, indices: bool = False) -> tuple[Ints, Ints]:
    """Sets as (items, offsets), every set without duplicates, validated."""
    ticked = _ticks(mechanism, answers)
    if ticked is not None:
        return distinct(*ticked)
    column = _column(answers)
    if _is_arrow(column):
        kind = column.type.value_type if _is_lists(column.type) else None
        return lists(mechanism, column, indices or bool(kind and _are_indices(mechanism, kind)))
    if isinstance(column, tuple) and len(column) == 2:
        items, offsets = column
        if isinstance(items, np.ndarray) and isinstance(offsets, np.ndarray):
            return _checked_pair(mechanism, items, offsets, indices)
    return _joined_sets(mechanism, column, indices)


def _checked_pair(
    mechanism: Mechanism, items: NDArray[np.generic], offsets: NDArray[np.generic], indices: bool
) -> tuple[Ints, Ints]:
    """The items and offsets of a ragged array, validated, without duplicates."""
    if any(x.ndim != 1 or x.dtype.kind not in "iu" for x in (items, offsets)):
        raise DataError("items and offsets of a ragged array are two lists of whole numbers")
    ends = offsets.astype(np.int64)
    rises = len(ends) and ends[0] == 0 and not (np.diff(ends) < 0).any()
    if not rises or ends[-1] != len(items):
        raise DataError(
            "offsets of a ragged array start at 0, never fall and end at the number of items"
        )
    _check_meaning(mechanism, indices or not len(items))
    _check_range(mechanism, items)
    return distinct(items.astype(np.int64), ends)


def _joined_sets(mechanism: Mechanism, answers: object, indices: bool) -> tuple[Ints, Ints]:
    """A sequence of sets as items and offsets."""
    sets = []
    for answer in _listed(answers, "answers are a sequence of sets of items, one set per person"):
        if isinstance(answer, str | Mapping) or not isinstance(answer, Iterable):
            raise DataError(
                f"this mechanism takes a set of items per person, got {type(answer).__name__}; a "
                "table of true and false is a frame or an array"
            )
        sets.append(sorted({mechanism.policy.place(item, indices) for item in answer}))
    offsets = np.cumsum([0] + [len(places) for places in sets])
    return np.array([place for places in sets for place in places], dtype=np.int64), offsets


def _is_lists(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


# ---- columns of data -----------------------------------------------------------------------------


def lists(mechanism: Mechanism, answers: pa.Array, indices: bool = False) -> tuple[Ints, Ints]:
    """The sets of an Arrow list array as (items, offsets); `lookup` reads the items."""
    import pyarrow as pa

    if isinstance(answers, pa.ChunkedArray):
        answers = answers.combine_chunks()
    if not _is_lists(answers.type):
        raise DataError(f"sets are an Arrow list array, got {answers.type}")
    if answers.null_count:
        raise DataError("a person's set is null; write an empty list for someone who has no item")
    lengths = answers.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    items = lookup(mechanism, answers.flatten(), indices)
    return distinct(items, np.concatenate(([0], np.cumsum(lengths))))


def lookup(mechanism: Mechanism, values: pa.Array, indices: bool = False) -> Ints:
    """The item indices of an Arrow array. Its text and whole numbers are labels; with `indices`
    they are indices.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if values.null_count:  # also among a dictionary's values
        raise DataError("an item is missing (null or empty); items are labels or whole numbers")
    if pa.types.is_boolean(values.type):
        raise DataError("items are labels or whole numbers, got true and false")
    if pa.types.is_floating(values.type):
        raise DataError("items are labels or whole numbers, got decimal numbers")
    if indices:
        return _from_indices(mechanism, values)
    if pa.types.is_integer(values.type) and mechanism.policy.integer_like_label is None:
        raise DataError(
            "the items are whole numbers, but no label of the policy is one; if they are indices "
            "(0 is the first item), say --indices, in Python indices=True"
        )
    try:
        places = pc.index_in(values.cast(pa.string()), value_set=_labels(mechanism.policy))
    except pa.ArrowException:
        raise DataError(f"items are labels or whole numbers, got {values.type}") from None
    if places.null_count:
        unknown = str(values.filter(pc.is_null(places))[0].as_py())
        if pa.types.is_integer(values.type):
            raise DataError(f'"{unknown}" is not an item; if they are indices, say --indices')
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            mechanism.policy.place(unknown)  # raises, with the nearest label
        raise DataError(f"items are labels or whole numbers, got {values.type} such as {unknown}")
    return places.to_numpy(zero_copy_only=False).astype(np.int64)


def _from_indices(mechanism: Mechanism, values: pa.Array) -> Ints:
    """Read indices: whole numbers, or text as in a CSV or FIMI file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(values.type):
        try:
            text = values.cast(pa.string())
        except pa.ArrowException:
            raise DataError(f"indices are whole numbers, got {values.type}") from None
        wrong = text.filter(pc.invert(pc.match_substring_regex(text, INDEX)))
        if len(wrong):
            raise DataError(
                f"{quoted(wrong[0].as_py())} is not an index, a whole number from 0 to "
                f"{mechanism.m - 1}"
            )
        values = text.cast(pa.int64())
    numbers = values.to_numpy(zero_copy_only=False)
    _check_range(mechanism, numbers)
    return numbers.astype(np.int64)


@lru_cache(maxsize=4)
def _labels(policy: Policy) -> pa.Array:
    import pyarrow as pa

    return pa.array(policy.items, pa.string())


def _check_range(mechanism: Mechanism, items: NDArray[np.generic]) -> None:
    if len(items) and (int(items.min()) < 0 or int(items.max()) >= mechanism.m):
        bad = int(items.min()) if int(items.min()) < 0 else int(items.max())
        raise DataError(f"item index {bad} is out of range; it must be from 0 to {mechanism.m - 1}")


def distinct(items: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """The same sets without repeated items."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((items, owner))
    items, owner = items[order], owner[order]
    keep = np.ones(len(items), dtype=bool)
    keep[1:] = (items[1:] != items[:-1]) | (owner[1:] != owner[:-1])
    return items[keep], np.concatenate(
        ([0], np.cumsum(np.bincount(owner[keep], minlength=len(offsets) - 1)))
    )
