"""Answers as people have them (lists, columns and frames of numpy, Arrow, pandas, polars,
generators) as item indices, validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError
from discreet.labels import show
from discreet.mechanism import Mechanism

INDEX = "^-?[0-9]{1,18}$"  # an index in text; whether it is out of range is seen later


def places(mechanism: Mechanism, answers: Any, indices: bool = False) -> NDArray[np.int64]:
    """Single answers as item indices, validated."""
    answers = _column(answers)
    if _is_arrow(answers):
        return lookup(mechanism, answers, indices or _are_indices(mechanism, answers.type))
    if isinstance(answers, np.ndarray) and answers.dtype.kind in "iu" and answers.ndim == 1:
        _check_meaning(mechanism, indices)
        _check_range(mechanism, answers)
        return answers.astype(np.int64)
    answers = _listed(answers, "answers are a sequence of items, one per person")
    index = mechanism.policy.index
    if not indices and all(type(a) is str and a in index for a in answers):
        return np.array([index[a] for a in answers], dtype=np.int64)
    found = [mechanism.policy.place(_no_set(a), indices) for a in answers]
    return np.array(found, dtype=np.int64)


def _listed(answers: Any, what: str) -> list[Any]:
    """All of an iterable that has an order; a whole frame or a single text is none."""
    odd = isinstance(answers, str | bytes | Mapping | set | frozenset)
    if odd or not isinstance(answers, Iterable) or getattr(answers, "ndim", 1) != 1:
        raise DataError(f"{what}, got {_kind(answers)}")
    return answers.tolist() if isinstance(answers, np.ndarray) else list(answers)


def _kind(answers: Any) -> str:
    shape = getattr(answers, "shape", ())
    return type(answers).__name__ + (f" of shape {shape}" if len(shape) > 1 else "")


# ---- what notebooks have -------------------------------------------------------------------------


def _column(answers: Any) -> Any:
    """A Series of pandas or polars, or a frame with one column, as an Arrow array."""
    _refuse_masked(answers)
    if not _is_framed(answers):
        return answers
    if len(getattr(answers, "shape", ())) == 2:
        if answers.shape[1] != 1:
            names = ", ".join(show(str(name)) for name in list(answers.columns)[:5])
            raise DataError(
                f"the frame has {answers.shape[1]} columns ({names}); pass the one with the "
                'answers, such as frame["answer"]'
            )
        answers = answers[next(iter(answers.columns))]
    return _series(answers)


def _is_framed(answers: Any) -> bool:
    """Whether pandas or polars made it."""
    return type(answers).__module__.partition(".")[0] in ("pandas", "polars")


def _refuse_masked(answers: Any) -> None:
    if isinstance(answers, np.ma.MaskedArray):
        raise DataError("a masked array says that answers are missing; leave those people out")


def _series(series: Any) -> Any:
    if hasattr(series, "to_arrow"):  # polars
        return series.to_arrow()
    import pyarrow as pa

    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(
            "the column holds values of several kinds; items are labels (text) or whole numbers"
        ) from None


def _ticks(mechanism: Mechanism, answers: Any) -> tuple[Any, Any] | None:
    """Sets given as a column per item with true and false: an array of people x items, or a frame
    whose columns are items.
    """
    if len(getattr(answers, "shape", ())) != 2:
        return None
    _refuse_masked(answers)
    if framed := _is_framed(answers):
        names = [str(name) for name in answers.columns]
        if len(names) == 1 and names[0] not in mechanism.policy.index:
            return None  # one column of sets
        columns = [mechanism.policy.place(name) for name in names]
        if len(set(columns)) < len(columns):
            raise DataError("the frame has two columns of one item; keep one")
    else:
        if answers.shape[1] != mechanism.m:
            raise DataError(
                f"an array of true and false has a column for each of the {mechanism.m} items, "
                f"got {answers.shape[1]} columns"
            )
        columns = list(range(mechanism.m))
    held = np.asarray(answers.to_numpy() if framed else answers)
    if held.dtype.kind not in "biu" or (held.dtype.kind != "b" and not np.isin(held, (0, 1)).all()):
        raise DataError(
            "a table with a column per item holds true and false (or 1 and 0) and nothing else"
        )
    people, places = np.nonzero(held)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(people, minlength=len(held)))))
    return np.array(columns, np.int64)[places], offsets


def _are_indices(mechanism: Mechanism, kind: Any) -> bool:
    """Whether values of an Arrow type are indices, as ints are in Python: if they are whole
    numbers, and that can mean nothing else.
    """
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not pa.types.is_integer(kind):
        return False
    _check_meaning(mechanism, False)
    return True


def _check_meaning(mechanism: Mechanism, indices: bool) -> None:
    if not indices and mechanism.policy.number is not None:
        raise DataError(
            "whole numbers may be labels or indices here, because "
            f"{show(mechanism.policy.number)} is a label; pass labels as text, or say indices=True"
        )


def _is_arrow(answers: Any) -> bool:
    if not type(answers).__module__.startswith("pyarrow"):
        return False
    import pyarrow as pa

    if not isinstance(answers, pa.Array | pa.ChunkedArray):
        raise DataError(
            f"answers are a sequence of items, one per person, got {type(answers).__name__}; pass "
            "one column"
        )
    return True


def _no_set(answer: Any) -> Any:
    if isinstance(answer, set | frozenset | list | tuple):
        raise DataError(
            "this mechanism takes a single item per person, got a set; the policy's input is single"
        )
    return answer


def ragged(
    mechanism: Mechanism, answers: Any, indices: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sets as (items, offsets), every set without duplicates, validated."""
    ticked = _ticks(mechanism, answers)
    if ticked is not None:
        return distinct(*ticked)
    answers = _column(answers)
    if _is_arrow(answers):
        kind = answers.type.value_type if _is_lists(answers.type) else None
        return lists(mechanism, answers, indices or bool(kind and _are_indices(mechanism, kind)))
    if (
        isinstance(answers, tuple)
        and len(answers) == 2
        and all(isinstance(x, np.ndarray) for x in answers)
    ):
        items, offsets = (np.asarray(x) for x in answers)
        if (
            items.ndim != 1
            or offsets.ndim != 1
            or items.dtype.kind not in "iu"
            or offsets.dtype.kind not in "iu"
        ):
            raise DataError("items and offsets of a ragged array are two lists of whole numbers")
        offsets = offsets.astype(np.int64)
        if (
            not len(offsets)
            or offsets[0] != 0
            or offsets[-1] != len(items)
            or (np.diff(offsets) < 0).any()
        ):
            raise DataError(
                "offsets of a ragged array start at 0, never fall and end at the number of items"
            )
        _check_meaning(mechanism, indices or not len(items))
        _check_range(mechanism, items)
        return distinct(items.astype(np.int64), offsets)
    found = []
    for answer in _listed(answers, "answers are a sequence of sets of items, one set per person"):
        if isinstance(answer, str | Mapping) or not isinstance(answer, Iterable):
            raise DataError(
                f"this mechanism takes a set of items per person, got {answer!r}; a table of true "
                "and false is a frame or an array"
            )
        found.append(sorted({mechanism.policy.place(item, indices) for item in answer}))
    offsets = np.cumsum([0] + [len(x) for x in found])
    return np.array([i for x in found for i in x], dtype=np.int64), offsets


def _is_lists(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


# ---- columns of data -----------------------------------------------------------------------------


def lists(
    mechanism: Mechanism, answers: Any, indices: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sets as (items, offsets) of an Arrow list array, its items as `lookup` reads them."""
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


def lookup(mechanism: Mechanism, values: Any, indices: bool = False) -> NDArray[np.int64]:
    """Item indices of a column of data, an Arrow array: its text and its whole numbers are labels,
    or indices where that is said.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if values.null_count:  # also of a dictionary's values
        raise DataError("an item is missing (null or empty); items are labels or whole numbers")
    if pa.types.is_boolean(values.type):
        raise DataError("items are labels or whole numbers, got true and false")
    if pa.types.is_floating(values.type):
        raise DataError("items are labels or whole numbers, got decimal numbers")
    if indices:
        return _from_indices(mechanism, values)
    if pa.types.is_integer(values.type) and mechanism.policy.number is None:
        raise DataError(
            "the items are whole numbers, but no label of the policy is one; if they are indices "
            "(0 is the first item), say --indices, in Python indices=True"
        )
    try:
        found = pc.index_in(values.cast(pa.string()), value_set=_labels(mechanism.policy))
    except pa.ArrowException:
        raise DataError(f"items are labels or whole numbers, got {values.type}") from None
    if found.null_count:
        stranger = str(values.filter(pc.is_null(found))[0].as_py())
        if pa.types.is_integer(values.type):
            raise DataError(f'"{stranger}" is not an item; if they are indices, say --indices')
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            mechanism.policy.place(stranger)  # raises, with the nearest label
        raise DataError(f"items are labels or whole numbers, got {values.type} such as {stranger}")
    return found.to_numpy(zero_copy_only=False).astype(np.int64)


def _from_indices(mechanism: Mechanism, values: Any) -> NDArray[np.int64]:
    """Indices as whole numbers, or as text in a CSV or FIMI file."""
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
                f"{show(wrong[0].as_py())} is not an index, a whole number from 0 to "
                f"{mechanism.m - 1}"
            )
        values = text.cast(pa.int64())
    numbers = values.to_numpy(zero_copy_only=False)
    _check_range(mechanism, numbers)
    return numbers.astype(np.int64)


@lru_cache(maxsize=4)
def _labels(policy: Any) -> Any:
    import pyarrow as pa

    return pa.array(policy.items, pa.string())


def _check_range(mechanism: Mechanism, items: NDArray[Any]) -> None:
    if len(items) and (int(items.min()) < 0 or int(items.max()) >= mechanism.m):
        bad = int(items.min()) if int(items.min()) < 0 else int(items.max())
        raise DataError(f"item index {bad} is out of range; it must be from 0 to {mechanism.m - 1}")


def distinct(
    items: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same sets without repeated items."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((items, owner))
    items, owner = items[order], owner[order]
    keep = np.ones(len(items), dtype=bool)
    keep[1:] = (items[1:] != items[:-1]) | (owner[1:] != owner[:-1])
    return items[keep], np.concatenate(
        ([0], np.cumsum(np.bincount(owner[keep], minlength=len(offsets) - 1)))
    )
