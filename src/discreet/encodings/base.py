"""What every encoding knows of one report: its size, how to write it, refuse it, read it, and its
exact law.

An `Encoding` is the public parameters, as they stand in a mechanism file. Its `Coder` is the same
with the tables that one mechanism needs. Nothing here needs numpy: this is what runs on a device.
`arrays/` has the same for many people at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar, cast

from discreet.check import exact
from discreet.check.exact import D
from discreet.check.parts import AnyPart, Part
from discreet.policy import Policy
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.mechanism import Mechanism
    from discreet.policy.types import JsonObject

P = TypeVar("P", bound=AnyPart)  # the parts of an encoding

REASONS = {
    "length": "a report of this mechanism has {size} bytes",
    "part": "the first byte names a part that the mechanism does not have",
    "tail": "a bit beyond the last item is set",
    "size": "the report names another number of items of a level than every report does",
    "silent": "the report names an item of a level that its part says nothing about",
    "ticket": "the number is beyond the last ticket",
    "residue": "a coefficient is not below the prime",
    "order": "the numbers of the items do not go up, or one is beyond the last item",
}


class Source(Protocol):
    """Uniform random numbers; on a device they come from `device.randomness`, and nowhere else."""

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, each with the same chance."""

    def bits(self, count: int) -> int:
        """A whole number of `count` random bits."""


@dataclass(frozen=True)
class Encoding(ABC, Generic[P]):
    """How a report names items: the public parameters."""

    kind: ClassVar[str]
    name: ClassVar[str]  # the word people use: bits, ticket, hits or picks
    summary: ClassVar[str]  # what a report is, in a few words
    fixed_size: ClassVar[bool] = False  # every report of a part names the same number of items
    independent: ClassVar[bool] = False  # items of one report are named independently
    # how a list is reported: one item sampled, counted by hits, picked in a subset, or each
    lists: ClassVar[str] = "sampled"
    as_uint32: ClassVar[bool] = False  # a table holds a report as a number, not as bytes
    plain: ClassVar[bool] = False  # its last part may hold answers as they are

    def document(self) -> JsonObject:
        """What stands in the mechanism file."""
        return {"kind": self.kind, **asdict(self)}

    @abstractmethod
    def denominator(self, size: int) -> int:
        """What `other` of a group of `size` items is a numerator over."""

    @abstractmethod
    def report_size(self, m: int, parts: int, padding: int | None) -> int:
        """Bytes of every report."""

    @abstractmethod
    def part(self, row: JsonObject, denominators: tuple[int, ...], groups: tuple[int, ...]) -> P:
        """A part as it stands in a mechanism file."""

    @abstractmethod
    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[P]
    ) -> exact.Violation | None:
        """The exact check of the guarantee. Call `unfit_policy` first."""

    @abstractmethod
    def unfit_policy(self, mechanism: Mechanism) -> str | None:
        """Why the policy or the numbers of the parts are not for this encoding."""

    def unfit_size(self, m: int, parts: int) -> str:
        """Why these parameters do not fit m items and this number of parts; empty when they do."""
        return ""

    def shares(self, groups: int, policy: Policy, padding: int | None) -> int:
        """The number of shares in a mechanism: of every group, then of empty samples of sets."""
        return groups + policy.kind.lists

    def unbiased(self, mechanism: Mechanism) -> bool:
        """Whether the counts are right for everybody. Privacy does not depend on it."""
        return True

    @abstractmethod
    def coder(self, mechanism: Mechanism) -> Coder[P]:
        """The same with the tables of one mechanism."""


class Sampling(Encoding[Part]):
    """Where a report is about one item: the only one, or one that is sampled of a set."""

    def part(self, row: JsonObject, denominators: tuple[int, ...], groups: tuple[int, ...]) -> Part:
        """A part as it stands in a mechanism file."""
        return Part.from_document(row, denominators, groups)

    def check(
        self, policy: Policy, groups: Sequence[int], parts: Sequence[Part]
    ) -> exact.Violation | None:
        """The exact check of any two answers. Call `unfit_policy` first."""
        if misplaced := self._misplaced_plain(parts):
            return exact.Violation(misplaced)
        return exact.check(policy, groups, parts[0].denominators, [part.ints for part in parts])

    def unfit_policy(self, mechanism: Mechanism) -> str | None:
        """Not where every item is asked on its own, nor with numbers of another kind."""
        if mechanism.policy.kind.alone:
            return f'kind = "each" asks every item on its own, which "{self.kind}" does not'
        return malformed(mechanism)

    def _misplaced_plain(self, parts: Sequence[Part]) -> str | None:
        """Answers are sent as they are in the last part of tickets alone, which holds nothing
        else.
        """
        *rows, last = (part.ints for part in parts)
        if not self.plain or not is_plain(last):
            rows.append(last)
        elif any(last.other) or any(
            own != D * (chance > 0) for chance, own in zip(*last[:2], strict=True)
        ):
            return "a part of answers that are sent as they are holds nothing else"
        if any(map(is_plain, rows)):
            return "answers are sent as they are in the last part of tickets alone"
        return None


def is_plain(ints: exact.Chances) -> bool:
    """Whether a part holds answers as they are."""
    return any(own == D and not other for own, other in zip(ints.own, ints.other, strict=True))


def malformed(mechanism: Mechanism) -> str | None:
    """Why the numbers are not those of parts at all; None when they are."""
    parts = cast(Sequence[Part], mechanism.parts)
    ints = [part.ints for part in parts]
    return exact.malformed(mechanism.policy, len(mechanism.denominators), ints)


class Coder(ABC, Generic[P]):
    """Writes, refuses and reads one report of a mechanism, and states its probability."""

    reasons: ClassVar[Sequence[str]]  # what can be wrong beside the length, in order

    def __init__(self, mechanism: Mechanism) -> None:
        self.m, self.size, self.padding = mechanism.m, mechanism.report_size, mechanism.padding
        self.parts = cast(tuple[P, ...], mechanism.parts)
        self._groups, self._level_of = mechanism.groups, mechanism.policy.level_of

    @abstractmethod
    def write(self, source: Source, items: Sequence[int]) -> bytes:
        """The report of a person who holds these items: one, or a set without repeats."""

    @abstractmethod
    def refusal(self, report: bytes) -> str | None:
        """The reason why this is not a report of the mechanism, or None."""

    @abstractmethod
    def named(self, report: bytes) -> list[int]:
        """The items that a report names."""

    @abstractmethod
    def read_part(self, report: bytes) -> int:
        """The part that a report belongs to."""

    @abstractmethod
    def law(self, report: bytes, items: Sequence[int]) -> Fraction:
        """The exact probability of this report for a person who holds these items."""

    def group(self, item: int) -> int:
        """The group of an item."""
        return self._groups[self._level_of[item]]

    @cached_property
    def members(self) -> list[list[int]]:
        """The items of every group, in their order."""
        members: list[list[int]] = [[] for _ in range(max(self._groups) + 1)]
        for item, level in enumerate(self._level_of):
            members[self._groups[level]].append(item)
        return members


class SamplingCoder(Coder[Part]):
    """Where a report is about one item: the only one, or one that is sampled of a set."""

    def write(self, source: Source, items: Sequence[int]) -> bytes:
        """The part, whether the own item is named, and then a report like that."""
        held = items[0] if self.padding is None else sample(source, items, self.padding)
        group = None if held is None else self.group(held)
        part = draw(source, self._chances(group))
        own = None  # a silent group draws nothing of its own
        if group is not None and self.parts[part].ints.own[group]:
            own = source.below(D) < self.parts[part].ints.own[group]
        return self._write(source, part, held, own)

    @abstractmethod
    def _write(self, source: Source, part: int, held: int | None, own: bool | None) -> bytes:
        """A report of a part. `own`: whether the held item is named; None where it is not drawn."""

    def law(self, report: bytes, items: Sequence[int]) -> Fraction:
        """The exact probability of this report for a person who holds these items."""
        part, named = self.read_part(report), set(self.named(report))
        places = 1 if self.padding is None else max(len(items), self.padding)
        one = sum((self._named_law(report, part, named, item) for item in items), Fraction(0))
        empty = places - len(items)
        return (one + (empty * self._named_law(report, part, named, None) if empty else 0)) / places

    def _named_law(self, report: bytes, part: int, named: set[int], held: int | None) -> Fraction:
        group = None if held is None else self.group(held)
        chance, own = self._chances(group)[part], Fraction(1)
        named_own = 0 if group is None else self.parts[part].ints.own[group]
        if named_own:
            own = Fraction(named_own if held in named else D - named_own, D)
        rest = self._rest(report, part, named, held if named_own else None)
        return Fraction(chance, D) * own * rest

    @abstractmethod
    def _rest(self, report: bytes, part: int, named: set[int], held: int | None) -> Fraction:
        """The probability of a report, given its part and whether the held item is named."""

    def _chances(self, group: int | None) -> list[int]:
        """The chance of every part over 2^32, for an answer of a group or an empty sample."""
        if group is None:
            return [part.ints.none or 0 for part in self.parts]
        return [part.ints.chance[group] for part in self.parts]


def sample(source: Source, items: Sequence[int], padding: int) -> int | None:
    """Padding-and-Sampling (paper, Algorithm 1): one of max(|x|, padding) places of a set; None
    where it is a dummy.
    """
    place = source.below(max(len(items), padding))
    return items[place] if place < len(items) else None


def draw(source: Source, weights: Sequence[int]) -> int:
    """A place with a chance proportional to its weight."""
    left = source.below(sum(weights))
    for place, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return place
    raise AssertionError("a draw lies below the sum")


def choose(source: Source, items: Sequence[int], count: int) -> list[int]:
    """A uniform subset of `count` items (Fisher and Yates, stopped early)."""
    left = list(items)
    for k in range(count):
        other = k + source.below(len(left) - k)
        left[k], left[other] = left[other], left[k]
    return left[:count]


def is_prime(q: int) -> bool:
    """By trial division: q is below 2^32."""
    return q > 1 and all(q % k for k in range(2, int(q**0.5) + 1))
