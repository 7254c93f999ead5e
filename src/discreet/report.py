"""The bytes on the wire: what a report looks like, and what makes one unacceptable. No HTTP, no database.

bits: ceil(m/8) bytes, item k at byte k // 8, bit k % 8, unused high bits 0.  compact: s, t, r, 4 bytes each, little-endian.
item (direct, grr): the item's index, 4 bytes little-endian.  Several parts: one byte, the part's number, in front.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError, ReportError
from discreet.exact import P
from discreet.mechanism import Mechanism

Bytes = NDArray[np.uint8]
_TRIPLE = struct.Struct("<3I")
REASONS = {
    "length": "a report of this mechanism has {size} bytes, got {got}",
    "part": "the first byte names part {got}, but the mechanism has parts 0 to {last}",
    "padding": "a bit beyond the last item is set",
    "range": "s, t and r of a compact report are below 2^31 - 1",
    "item": "the item's index must be below {m}, got {got}",
}


def as_rows(mechanism: Mechanism, reports: Any) -> tuple[Bytes, int]:
    """Reports as rows of an n x report_size array, and how many had another length."""
    size = mechanism.report_size
    if isinstance(reports, bytes | bytearray | memoryview):
        raise DataError("reports are a list of bytes or an array with one row per report; put a single one in a list")
    if isinstance(reports, np.ndarray):
        if reports.dtype != np.uint8 or reports.ndim != 2:
            raise DataError(f"an array of reports is n x {size} of uint8, got {reports.ndim} dimensions of {reports.dtype}")
        if reports.shape[1] != size:
            return np.empty((0, size), np.uint8), len(reports)
        return reports, 0
    if isinstance(reports, Iterable) and not isinstance(reports, str):
        listed = [_bytes(report) for report in reports]
        good = [report for report in listed if len(report) == size]
        return np.frombuffer(b"".join(good), np.uint8).reshape(-1, size), len(listed) - len(good)
    raise DataError(f"reports are a list of bytes or an array with one row per report, got {type(reports).__name__}")


def _bytes(report: Any) -> bytes:
    if isinstance(report, bytes | bytearray | memoryview) or (isinstance(report, np.ndarray) and report.dtype == np.uint8):
        return bytes(report)
    raise DataError(f"a report is bytes, got {type(report).__name__}")


def split(mechanism: Mechanism, rows: Bytes) -> tuple[NDArray[np.uint8], Bytes]:
    """The part of every row and its body."""
    if mechanism.direct or len(mechanism.parts_) == 1:
        return np.zeros(len(rows), np.uint8), rows
    return rows[:, 0], rows[:, 1:]


def refusals(mechanism: Mechanism, part: NDArray[np.uint8], body: Bytes) -> dict[str, NDArray[np.bool_]]:
    """For every reason, which rows it applies to."""
    if mechanism.direct:
        return {"item": words_of(body)[:, 0] >= mechanism.m}
    found: dict[str, Any] = {"part": part >= len(mechanism.parts_)} if len(mechanism.parts_) > 1 else {}
    if mechanism.encoding == "compact":
        found["range"] = (words_of(body) >= P).any(axis=1)
    elif mechanism.m % 8:
        found["padding"] = body[:, -1] >> (mechanism.m % 8) != 0
    return found


def words_of(body: Bytes) -> NDArray[np.uint32]:
    """Rows of 4-byte little-endian integers."""
    return np.ascontiguousarray(body).view("<u4")


def check(mechanism: Mechanism, report: bytes) -> None:
    """Raise ReportError unless this is a report of the mechanism; the same as `refusals`, for one and without numpy."""
    size, m, parts = mechanism.report_size, mechanism.m, len(mechanism.parts_)
    if len(report) != size:
        raise ReportError(REASONS["length"].format(size=size, got=len(report)), "length")
    if mechanism.direct:
        got = int.from_bytes(report, "little")
        if got >= m:
            raise ReportError(REASONS["item"].format(m=m, got=got), "item")
    elif parts > 1 and report[0] >= parts:
        raise ReportError(REASONS["part"].format(got=report[0], last=parts - 1), "part")
    elif mechanism.encoding == "compact":
        if max(_TRIPLE.unpack_from(report, size - 12)) >= P:
            raise ReportError(REASONS["range"], "range")
    elif m % 8 and report[-1] >> (m % 8):
        raise ReportError(REASONS["padding"], "padding")
