"""Blocks of tickets (encodings/ticket.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from discreet.arrays.base import BlockCoder, Counters, Gathered
from discreet.arrays.randomness import BitSource
from discreet.arrays.threads import run_blocks
from discreet.arrays.types import Bools, Bytes, Ints, Uint32s
from discreet.encodings import Ticket
from discreet.encodings.ticket import TicketCoder
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property

LARGEST_TABLE = 2**26  # numbers of a histogram: 320 MiB a thread

NONE = np.zeros(0, bool)
Table: TypeAlias = Uint32s | Ints  # how often every ticket was seen


class TicketBlocks(BlockCoder):
    """Draws a uniform ticket among those that give the own item its mark."""

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        field = cast(Ticket, mechanism.encoding)
        self.q, self.t, self.tickets = field.q, field.t, field.tickets
        self.plain = cast(TicketCoder, mechanism.coder).plain  # the part of answers as they are

    @cached_property
    def sent_plainly(self) -> Bools:
        """Whether every item can be sent as it is."""
        plain = self.plain
        return np.array(self.chance_ints())[plain, self.group_of] > 0 if plain is not None else NONE

    @cached_property
    def codes(self) -> Ints:
        """c_1 = x and c_j = digit_{j-1} + x^j of every item (m x t).

        The powers keep neighbouring items off common lines.
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
        source: BitSource,
        held: Ints,
        group: Ints,
        part: Ints,
        own: Bools,
        out: Bytes,
    ) -> None:
        from discreet.arrays.kernels import ticket as kernels

        limit = self.other[part, group]
        speaks = (held >= 0) & (limit > 0)
        low = np.where(speaks & ~own, limit, 0)
        span = np.where(speaks, np.where(own, limit, self.q - limit), self.q)  # silent: any mark
        code = self.codes.take(held, axis=0, mode="clip")
        tickets, done = np.empty(len(held), np.uint32), 0
        chunk = np.empty(min(1 << 16, 3 * len(held) + 64), np.uint32)
        while done < len(held):
            source.fill(chunk)
            done = kernels.draw_tickets(tickets, part, low, span, code, self.q, self.t, chunk, done)
        if self.plain is not None:
            here = part == self.plain
            tickets[here] = (self.plain * self.tickets + held[here]).astype(np.uint32)
        out[:] = tickets.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)

    def refusals(self, rows: Bytes) -> tuple[Ints, Mapping[str, Bools]]:
        """The part of every row and, for every reason, which rows it applies to."""
        part, rest = np.divmod(numbers(rows).astype(np.int64), self.tickets)
        wrong = part >= len(self.parts)
        if self.plain is not None:
            wrong |= (part == self.plain) & ~self._known(rest)
        return part, {"ticket": wrong}

    def _known(self, items: Ints) -> Bools:
        """Whether these are items that can be sent as they are."""
        return (items < self.m) & self.sent_plainly[np.minimum(items, self.m - 1)]

    def count(self, part: int, rows: Bytes) -> Ints:
        """How many of these reports name each item. Looks at every mark of every ticket."""
        from discreet.arrays.kernels import ticket as kernels

        tickets = numbers(rows) % np.uint32(self.tickets)
        if part == self.plain:
            return np.bincount(tickets, minlength=self.m)
        limits, counts = self.other[part, self.group_of], np.zeros(self.m, np.int64)
        kernels.count_tickets(tickets, self.q, self.t, limits.astype(np.uint16), counts)
        return counts

    def named(self, part: Ints, rows: Bytes, places: Ints) -> Bools:
        """Which of the items at these places every report names."""
        rest, digits = numbers(rows).astype(np.int64) % self.tickets, []
        items = rest
        for _ in range(self.t + 1):
            rest, digit = np.divmod(rest, self.q)
            digits.append(digit)
        *ys, first = digits  # y_t is the last digit
        marks = (first[:, None] + np.stack(ys[::-1], axis=1) @ self.codes[places].T) % self.q
        limits: Ints = self.other[:, self.group_of[places]][part]
        plainly = (part == self.plain) if self.plain is not None else np.zeros(len(rows), bool)
        return np.where(plainly[:, None], items[:, None] == places, marks < limits)

    # ---- a large number of tickets: a histogram first, items once at the end ---------------------

    def transform_pays(self, n: int) -> bool:
        """Whether the transform decodes n tickets of a part faster than mark by mark."""
        # an addition of the transform costs about as much as four marks
        return n * self.m > 4 * self.t * self.q ** (self.t + 2)

    def worth_a_table(self, n: int) -> bool:
        """Whether n reports are worth a histogram: it saves time or memory."""
        return self.transform_pays(n) or n > min(len(self.parts) * self.tickets, LARGEST_TABLE)

    def start(self, n: int | None = None) -> Gathered:
        """A histogram of all tickets, unless it would be too large or the reports are too few."""
        size = len(self.parts) * self.tickets
        if size > LARGEST_TABLE or (n is not None and not self.transform_pays(n)):
            return super().start()
        return Histogram(size)

    def gather(self, into: Gathered, rows: Bytes, times: Ints | None = None) -> dict[str, int]:
        """Add these reports. Returns the number of refused reports by reason."""
        if not isinstance(into, Histogram):
            return super().gather(into, rows, times)
        beyond = 0
        if self.plain is not None:  # of its part most numbers are no item
            wrong = self.refusals(rows)[1]["ticket"]
            beyond = int(wrong.sum() if times is None else times[wrong].sum())
            rows, times = rows[~wrong], None if times is None else times[~wrong]
        beyond += into.add(numbers(rows), times)
        return {"ticket": beyond} if beyond else {}

    def settle(self, gathered: Sequence[Gathered], threads: int | None = None) -> Counters:
        """The total of what the threads gathered, histograms decoded."""
        total = super().settle(gathered)
        tables = [one for one in gathered if isinstance(one, Histogram)]
        if not tables:
            return total
        table = Histogram.total(tables).reshape(len(self.parts), -1)

        def decode(part: int, _: int) -> None:
            n = int(table[part].sum(dtype=np.int64))
            total.part_n[part] += n
            total.counts[part] += self._decode(part, table[part], n)

        run_blocks(decode, len(self.parts), 1, threads, fewest=2)
        return total

    def _decode(self, part: int, table: Table, n: int) -> Ints:
        """How many of the n tickets in the table name each item."""
        if part == self.plain:
            return table[: self.m].astype(np.int64)
        if self.transform_pays(n):
            # no sum on the way exceeds n
            limits = self.other[part, self.group_of]
            if n < 2**31:
                return self._transform(table.astype(np.int32, copy=False), limits)
            return self._transform(table.astype(np.int64, copy=False), limits)
        seen = np.flatnonzero(table)
        if n > 4 * len(seen):  # every ticket was seen often: look at each once
            rows = seen.astype("<u4").view(np.uint8).reshape(-1, 4)
            return self.count_times(part, rows, table[seen].astype(np.int64))
        tickets = np.repeat(seen.astype("<u4"), table[seen])
        return self.count(part, tickets.view(np.uint8).reshape(-1, 4))

    def _transform(self, table: NDArray[np.int32] | Ints, limits: Ints) -> Ints:
        """Counts of items from counts of tickets.

        Transforms one axis y_j -> c_j at a time, then counts the marks below each item's limit.
        """
        from discreet.arrays.kernels import ticket as kernels

        q, t = self.q, self.t
        cube = table.reshape((q,) * (t + 1))  # y_0, y_1, …, y_t
        for _ in range(t):
            front = np.ascontiguousarray(np.moveaxis(cube, 1, 0)).reshape(q, q, -1)
            turned = np.empty_like(front)
            kernels.transform_axis(front, turned)
            cube = np.moveaxis(turned.reshape((q,) * (t + 1)), 0, -1)  # v, …, c_j
        by_code = np.ascontiguousarray(cube).reshape(q, -1)  # marks x codes
        place = np.zeros(self.m, np.int64)
        for j in range(t):
            place = place * q + self.codes[:, j]
        below = np.cumsum(by_code, axis=0, dtype=np.int64)
        return np.where(limits > 0, below[np.maximum(limits, 1) - 1, place], 0)

    @property
    def block(self) -> tuple[int, int]:
        """Rows per block of counting."""
        return max(1 << 12, (1 << 25) // self.m), 1 << 20


class Histogram(Gathered):
    """How often every number below `size` was seen.

    Counters of a byte, which stay in the cache, overflow into counters of 32 bits. Those are added
    to counters of 64 bits before they could overflow.
    """

    def __init__(self, size: int) -> None:
        self._tiny, self._small = np.zeros(size, np.uint8), np.zeros(size, np.uint32)
        self._large: Ints | None = None
        self._since = 0  # numbers added since the 32-bit counters were empty

    def add(self, numbers: Uint32s, times: Ints | None = None) -> int:
        """Count these numbers, each once or times[i] times. Returns the total not below `size`."""
        from discreet.arrays.kernels import ticket as kernels

        if times is not None:
            return int(kernels.add_times(numbers, times, self._wide()))
        if self._since + len(numbers) >= 2**32:
            self._wide()
        self._since += len(numbers)
        return int(kernels.add_tickets(numbers, self._tiny, self._small))

    def _narrow(self) -> Uint32s:
        """The 32-bit counters with the bytes added."""
        self._small += self._tiny
        self._tiny[:] = 0
        return self._small

    def _wide(self) -> Ints:
        """The 64-bit counters with all others added."""
        if self._large is None:
            self._large = np.zeros(len(self._small), np.int64)
        if self._since:
            self._large += self._narrow()
            self._small[:] = 0
            self._since = 0
        return self._large

    @staticmethod
    def total(tables: Sequence[Histogram]) -> Table:
        """The sum of the tables, in 32 bits where that is enough."""
        if all(one._large is None for one in tables) and sum(x._since for x in tables) < 2**32:
            return sum((one._narrow() for one in tables[1:]), tables[0]._narrow())
        return sum((one._wide() for one in tables[1:]), tables[0]._wide())


def numbers(rows: Bytes) -> Uint32s:
    """Rows of 4 bytes as little-endian integers."""
    return np.ascontiguousarray(rows).view("<u4")[:, 0]
