"""Reports as callers have them, as rows of an array; how often each was seen."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from discreet.arrays.types import Bools, Bytes, Ints
from discreet.errors import DataError
from discreet.mechanism import Mechanism


def as_rows(mechanism: Mechanism, reports: object) -> tuple[Bytes, Bools]:
    """The reports of the right length as rows of an n x report_size array, and which ones they are.

    Takes an array of rows, a list of bytes, or tickets as an array of whole numbers.
    """
    size = mechanism.report_size
    if isinstance(reports, bytes | bytearray | memoryview):
        raise DataError(
            "reports are a list of bytes or an array with one row per report; put a single one in "
            "a list"
        )
    if isinstance(reports, np.ndarray):
        if mechanism.encoding.as_uint32 and reports.ndim == 1 and reports.dtype.kind in "iu":
            if reports.dtype == np.uint32:
                rows = np.ascontiguousarray(reports, "<u4").view(np.uint8).reshape(-1, 4)
                return rows, np.ones(len(reports), bool)
            good = (reports >= 0) & (reports < 2**32)
            return reports[good].astype("<u4").view(np.uint8).reshape(-1, 4), good
        if reports.dtype != np.uint8 or reports.ndim != 2:
            raise DataError(
                f"an array of reports is n x {size} of uint8, got {reports.ndim} dimensions of "
                f"{reports.dtype}"
            )
        fits = reports.shape[1] == size
        rows = reports if fits else np.empty((0, size), np.uint8)
        return rows, np.full(len(reports), fits)
    if isinstance(reports, Iterable) and not isinstance(reports, str):
        listed = [_as_bytes(report) for report in reports]
        good = np.array([len(report) == size for report in listed], bool)
        joined = b"".join(report for report in listed if len(report) == size)
        return np.frombuffer(joined, np.uint8).reshape(-1, size), good
    raise DataError(
        "reports are a list of bytes or an array with one row per report, got "
        f"{type(reports).__name__}"
    )


def as_times(counts: object, n: int) -> Ints:
    """How many times each of n reports was seen, validated."""
    times = np.asarray(counts)
    if times.shape != (n,) or (n and times.dtype.kind not in "iu"):
        raise DataError(f"counts are one whole number for each of the {n:,} reports")
    if n and (int(times.min()) < 0 or float(times.astype(float).sum()) >= 2**62):
        raise DataError("counts are whole numbers from 0, and their sum is below 2^62")
    return times.astype(np.int64)


def _as_bytes(report: object) -> bytes:
    if isinstance(report, bytes | bytearray | memoryview) or (
        isinstance(report, np.ndarray) and report.dtype == np.uint8
    ):
        return bytes(report)
    raise DataError(f"a report is bytes, got {type(report).__name__}")
