"""Tickets: four bytes that stand for a pseudo-random subset, whatever the number of items is.

A ticket is y = (y_0, …, y_t) over the field of q elements. Item i has a code c in F_q^t, its mark
is v = y_0 + y_1 c_1 + … + y_t c_t, and it is named if v < T. Codes differ, so any two marks are
uniform and independent: every other item is named with chance exactly T / q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encodings.base import Bytes, Coder, Encoding, Ints, is_prime
from discreet.randomness import Source
from discreet.threads import run_blocks

LAST = 2**32  # a report is below it
LARGEST_TABLE = 2**26  # numbers of a histogram: 320 MiB a thread


@dataclass(frozen=True)
class Ticket(Encoding):
    """One 32-bit number: the part and a ticket over the field of q elements with t coordinates."""

    q: int
    t: int

    kind = "ticket"
    name = "ticket"
    told = "a number of four bytes"
    number = True

    @property
    def tickets(self) -> int:
        """Number of tickets of a part."""
        return int(self.q ** (self.t + 1))

    def base(self, size: int) -> int:
        """`other` is a number of marks out of q."""
        return self.q

    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Four bytes, whatever m is."""
        return 4

    def problem(self, m: int, parts: int) -> str:
        """Why the field does not fit; empty when it does."""
        if not (2 <= self.t <= 31 and self.t < self.q < 2**15 and is_prime(self.q)):
            return f"q = {self.q} must be a prime above t = {self.t}, and t from 2 to 31"
        if self.q**self.t < m or parts * self.tickets > LAST:
            return (
                f"q = {self.q} and t = {self.t} do not fit {m} items and {parts} parts into 32 bits"
            )
        return ""

    def coder(self, mechanism: Any) -> TicketCoder:
        """The tables of one mechanism."""
        return TicketCoder(mechanism)


class TicketCoder(Coder):
    """A uniform ticket among those that give the own item its mark."""

    reasons = ("ticket",)
    encoding: Ticket

    def __init__(self, mechanism: Any) -> None:
        super().__init__(mechanism)
        self.encoding = mechanism.encoding
        self.q, self.t, self.tickets = self.encoding.q, self.encoding.t, self.encoding.tickets

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """c_1 = x, c_j = digit_{j-1} + x^j, of every item (m x t); the powers keep neighbours off
        common lines.
        """
        digits, rest = [], np.arange(self.m)
        for _ in range(self.t):
            digits.append(rest % self.q)
            rest = rest // self.q
        x, power = digits[0], digits[0]
        columns = [x]
        for digit in digits[1:]:
            power = power * x % self.q
            columns.append((digit + power) % self.q)
        return np.stack(columns, axis=1)

    def _write(
        self,
        source: Source,
        held: Ints,
        group: Ints,
        part: Ints,
        own: NDArray[np.bool_],
        out: Bytes,
    ) -> None:
        from discreet import kernels

        limit = self.other[part, group]
        speaks = (held >= 0) & (limit > 0)
        low = np.where(speaks & ~own, limit, 0)
        span = np.where(speaks, np.where(own, limit, self.q - limit), self.q)  # silent: any mark
        code = self.codes.take(held, axis=0, mode="clip")
        tickets, done = np.empty(len(held), np.uint32), 0
        chunk = np.empty(min(1 << 16, 3 * len(held) + 64), np.uint32)
        while done < len(held):
            source.fill(chunk)
            done = kernels.tickets(tickets, part, low, span, code, self.q, self.t, chunk, done)
        out[:] = tickets.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)

    def check(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""
        if len(report) != 4:
            return "length"
        beyond = int.from_bytes(report, "little") >= len(self.parts) * self.tickets
        return "ticket" if beyond else None

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, NDArray[np.bool_]]]:
        """The part of every row and, for every reason, which rows it applies to."""
        part = numbers(rows).astype(np.int64) // self.tickets
        return part, {"ticket": part >= len(self.parts)}

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item, by looking at every mark of every ticket."""
        from discreet import kernels

        tickets = numbers(rows) % np.uint32(self.tickets)
        limits, counts = self.other[part, self.group_of], np.zeros(self.m, np.int64)
        kernels.count_tickets(tickets, self.q, self.t, limits.astype(np.uint16), counts)
        return counts

    # ---- many tickets: a histogram, and items come in once, at the end ---------------------------

    def transform_pays(self, n: int) -> bool:
        """Whether n tickets of a part are decoded faster by the transform than mark by mark."""
        # additions of the transform, about four times as dear as a mark
        return n * self.m > 4 * self.t * self.q ** (self.t + 2)

    def worth_a_table(self, n: int) -> bool:
        """Whether so many reports are worth a histogram: it saves work, or they are as large."""
        return self.transform_pays(n) or n > min(len(self.parts) * self.tickets, LARGEST_TABLE)

    def start(self, n: int | None = None) -> Any:
        """A histogram of all tickets, unless there are too many of them, or too few reports."""
        large = len(self.parts) * self.tickets
        if large > LARGEST_TABLE or (n is not None and not self.transform_pays(n)):
            return super().start()
        return Histogram(large)

    def gather(self, into: Any, rows: Bytes, times: Ints | None = None) -> dict[str, int]:
        """Add these reports; returns how many were refused, by reason."""
        if not isinstance(into, Histogram):
            return super().gather(into, rows, times)
        beyond = into.add(numbers(rows), times)
        return {"ticket": beyond} if beyond else {}

    def settle(self, gathered: Sequence[Any], threads: int | None = None) -> tuple[Ints, Ints]:
        """Reports per part, and how many name every item (parts x m), of all that was gathered."""
        tables = [one for one in gathered if isinstance(one, Histogram)]
        part_n, counts = super().settle([x for x in gathered if not isinstance(x, Histogram)])
        if not tables:
            return part_n, counts
        table = Histogram.total(tables).reshape(len(self.parts), -1)

        def decode(part: int, _: int) -> None:
            n = int(table[part].sum(dtype=np.int64))
            part_n[part] += n
            counts[part] += self._decoded(part, table[part], n)

        run_blocks(decode, len(self.parts), 1, threads, fewest=2)
        return part_n, counts

    def _decoded(self, part: int, table: NDArray[Any], n: int) -> Ints:
        if self.transform_pays(n):
            # the numbers on the way are at most n
            small = table.astype(np.int32 if n < 2**31 else np.int64, copy=False)
            return self._named_by(small, self.other[part, self.group_of])
        seen = np.flatnonzero(table)
        if n > 4 * len(seen):  # seen often: each is looked at once
            rows = seen.astype("<u4").view(np.uint8).reshape(-1, 4)
            return self.count_times(part, rows, table[seen].astype(np.int64))
        tickets = np.repeat(seen.astype("<u4"), table[seen])
        return self.count(part, tickets.view(np.uint8).reshape(-1, 4))

    def _named_by(self, table: NDArray[Any], limits: Ints) -> Ints:
        """Counts of items from counts of tickets: one axis y_j -> c_j at a time, then the marks
        below each item's limit.
        """
        from discreet import kernels

        q, t = self.q, self.t
        cube = table.reshape((q,) * (t + 1))  # y_0, y_1, …, y_t
        for _ in range(t):
            front = np.ascontiguousarray(np.moveaxis(cube, 1, 0)).reshape(q, q, -1)
            turned = np.empty_like(front)
            kernels.turn(front, turned)
            cube = np.moveaxis(turned.reshape((q,) * (t + 1)), 0, -1)  # v, …, c_j
        by_code = np.ascontiguousarray(cube).reshape(q, -1)  # marks x codes
        place = np.zeros(self.m, np.int64)
        for j in range(t):
            place = place * q + self.codes[:, j]
        below = np.cumsum(by_code, axis=0, dtype=np.int64)
        return np.where(limits > 0, below[np.maximum(limits, 1) - 1, place], 0)

    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""
        part, ticket = divmod(int.from_bytes(report, "little"), self.tickets)
        digits = [ticket // self.q**k % self.q for k in range(self.t, -1, -1)]
        marks = (digits[0] + self.codes @ np.array(digits[1:])) % self.q
        return np.flatnonzero(marks < self.other[part, self.group_of]).tolist()

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return max(1 << 12, (1 << 25) // self.m), 1 << 20


class Histogram:
    """How often every number below `size` was seen: counters of a byte, which stay in the cache,
    over others of 32 bits, over others of 64 once those could overflow.
    """

    def __init__(self, size: int) -> None:
        self._tiny, self._small = np.zeros(size, np.uint8), np.zeros(size, np.uint32)
        self._large: NDArray[np.int64] | None = None
        self._since = 0  # numbers added since the 32-bit counters were empty

    def add(self, numbers: NDArray[np.uint32], times: Ints | None = None) -> int:
        """Count these, each once or so many times; returns how often one was not below `size`."""
        from discreet import kernels

        if times is not None:
            return int(kernels.add_times(numbers, times, self._wide()))
        if self._since + len(numbers) >= 2**32:
            self._wide()
        self._since += len(numbers)
        return int(kernels.add_tickets(numbers, self._tiny, self._small))

    def _narrow(self) -> NDArray[np.uint32]:
        """The 32-bit counters with the bytes added."""
        self._small += self._tiny
        self._tiny[:] = 0
        return self._small

    def _wide(self) -> NDArray[np.int64]:
        """The 64-bit counters with all others added."""
        if self._large is None:
            self._large = np.zeros(len(self._small), np.int64)
        if self._since:
            self._large += self._narrow()
            self._small[:] = 0
            self._since = 0
        return self._large

    @staticmethod
    def total(tables: Sequence[Histogram]) -> NDArray[Any]:
        """The sum of them; 32 bits where that is enough."""
        if all(one._large is None for one in tables) and sum(x._since for x in tables) < 2**32:
            return sum((one._narrow() for one in tables[1:]), tables[0]._narrow())
        return sum((one._wide() for one in tables[1:]), tables[0]._wide())


def numbers(rows: Bytes) -> NDArray[np.uint32]:
    """Rows of 4 bytes as little-endian integers."""
    return np.ascontiguousarray(rows).view("<u4")[:, 0]
