"""Tickets: four bytes that stand for a pseudo-random subset, whatever the number of items is.

A ticket is y = (y_0, …, y_t) over the field of q elements. Item i has a code c in F_q^t, its mark
is v = y_0 + y_1 c_1 + … + y_t c_t, and it is named if v < T. Codes differ, so any two marks are
uniform and independent: every other item is named with chance exactly T / q.

The last part may be plain: its reports are the numbers of answers that nobody needs to hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from discreet.encodings.base import Sampling, SamplingCoder, Source, is_plain, is_prime

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism

LAST = 2**32  # a report is below it


@dataclass(frozen=True)
class Ticket(Sampling):
    """One 32-bit number: the part and a ticket over the field of q elements with t coordinates."""

    q: int
    t: int

    kind = "ticket"
    name = "ticket"
    summary = "a number of four bytes"
    as_uint32 = True
    plain = True

    @property
    def tickets(self) -> int:
        """Number of tickets of a part."""
        return int(self.q ** (self.t + 1))

    def denominator(self, size: int) -> int:
        """`other` is a number of marks out of q."""
        return self.q

    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Four bytes, whatever m is."""
        return 4

    def unfit_size(self, m: int, parts: int) -> str:
        """Why the field does not fit; empty when it does."""
        if not (2 <= self.t <= 31 and self.t < self.q < 2**15 and is_prime(self.q)):
            return f"q = {self.q} must be a prime above t = {self.t}, and t from 2 to 31"
        if self.q**self.t < m or parts * self.tickets > LAST:
            return (
                f"q = {self.q} and t = {self.t} do not fit {m} items and {parts} parts into 32 bits"
            )
        return ""

    def coder(self, mechanism: Mechanism) -> TicketCoder:
        """The tables of one mechanism."""
        return TicketCoder(mechanism)


class TicketCoder(SamplingCoder):
    """A uniform ticket among those that give the own item its mark."""

    reasons = ("ticket",)

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        encoding = cast(Ticket, mechanism.encoding)
        self.q, self.t, self.tickets = encoding.q, encoding.t, encoding.tickets
        last = len(self.parts) - 1
        self.plain = last if is_plain(self.parts[last].ints) else None

    def code(self, item: int) -> list[int]:
        """c_1 = x, c_j = digit_{j-1} + x^j of an item; the powers keep neighbours off common
        lines.
        """
        x = power = item % self.q
        code = [x]
        for _ in range(self.t - 1):
            item //= self.q
            power = power * x % self.q
            code.append((item + power) % self.q)
        return code

    def _write(self, source: Source, part: int, held: int | None, own: bool | None) -> bytes:
        if part == self.plain and held is not None:
            return (part * self.tickets + held).to_bytes(4, "little")
        low, high = 0, self.q  # silent: any mark
        if own is not None and held is not None:
            limit = self.parts[part].ints.other[self.group(held)]
            low, high = (0, limit) if own else (limit, self.q)
        y = [source.below(self.q) for _ in range(self.t)]
        mark = low + source.below(high - low)
        first = (mark - self._sum(y, held or 0)) % self.q
        ticket = 0
        for digit in (first, *y):
            ticket = ticket * self.q + digit
        return (part * self.tickets + ticket).to_bytes(4, "little")

    def _sum(self, y: list[int], item: int) -> int:
        return sum(a * c for a, c in zip(y, self.code(item), strict=True))

    def refusal(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""
        if len(report) != 4:
            return "length"
        part, item = divmod(int.from_bytes(report, "little"), self.tickets)
        wrong = part >= len(self.parts)
        if part == self.plain:  # only answers that are sent as they are
            wrong = item >= self.m or not self.parts[part].ints.chance[self.group(item)]
        return "ticket" if wrong else None

    def read_part(self, report: bytes) -> int:
        """The part that a report belongs to."""
        return int.from_bytes(report, "little") // self.tickets

    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""
        part, ticket = divmod(int.from_bytes(report, "little"), self.tickets)
        if part == self.plain:
            return [ticket]
        limits = self.parts[part].ints.other
        first, *y = [ticket // self.q**k % self.q for k in range(self.t, -1, -1)]
        return [
            i for i in range(self.m) if (first + self._sum(y, i)) % self.q < limits[self.group(i)]
        ]

    def _rest(self, report: bytes, part: int, named: set[int], held: int | None) -> Fraction:
        if part == self.plain:
            return Fraction(1)
        if held is None:
            return Fraction(1, self.tickets)
        limit = self.parts[part].ints.other[self.group(held)]
        marks = limit if held in named else self.q - limit
        return Fraction(1, marks * self.q**self.t)
