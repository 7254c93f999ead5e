"""Privacy budgets, kept exactly: of a level, and of a pair of levels."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real

from discreet.errors import PolicyError
from discreet.policy.labels import quoted

_LN = re.compile(r"\s*ln\(\s*([0-9./]+)\s*\)(?:\s*/\s*([0-9]{1,4}))?\s*")
_RATIO = re.compile(r"\s*([0-9]+)\s*/\s*([0-9]+)\s*")
# characters of a budget; its canonical text is held to the same limit, so it can be read back
_LONGEST = 100
_ROOTS = 1000  # the most parts of a logarithm


@dataclass(frozen=True)
class Budget:
    """A privacy budget, kept exactly: a decimal as written, or the logarithm of a rational, also
    divided by a whole number.

    >>> Budget.parse("ln(4)"), float(Budget.parse("ln(4)"))
    (Budget('ln(4)'), 1.3862943611198906)
    >>> Budget.parse(1.2).value
    Fraction(6, 5)
    >>> Budget.parse("ln(4)").divided(3), Budget.parse(1).divided(3)
    (Budget('ln(4)/3'), Budget('1/3'))
    """

    value: Fraction  # epsilon itself, or k where epsilon = ln(k) / root; 0 where there is no limit
    is_log: bool = False
    is_open: bool = False  # nothing is promised: OPEN is the only one
    root: int = 1  # of logarithms only

    def __post_init__(self) -> None:
        """Refuse what cannot be written and read back: files hold the text."""
        if self.is_open is True and self.value == 0 and self.is_log is False and self.root == 1:
            return
        if self.is_open is not False:
            raise PolicyError("a budget without a limit is budgets.OPEN, and has no number")
        fine = isinstance(self.value, Fraction) and isinstance(self.is_log, bool)
        fine = fine and type(self.root) is int and 1 <= self.root <= (_ROOTS if self.is_log else 1)
        if not fine or self.value <= self.is_log:
            raise PolicyError(
                f"a budget is a positive number, or ln(k) with k > 1, got {quoted(self.value)}"
            )
        text = self.text
        endless = self.is_log or "/" not in text or not _terminates(self.value.denominator)
        if len(text) > _LONGEST or not endless:
            raise PolicyError(
                f"epsilon = {quoted(self.value)} cannot be kept exactly; write it with fewer digits"
            )

    @classmethod
    def parse(cls, raw: object, where: str = "") -> Budget:
        """Read a number (also numpy's: the shortest decimal, as it is printed) or "ln(k)"; `where`
        completes the sentence if it is neither.
        """
        where = f" in {where}" if where else ""
        bad = PolicyError(
            f'epsilon = {quoted(raw)}{where} must be a positive number or "ln(k)" with k > 1'
        )
        if isinstance(raw, Budget):
            return raw
        if isinstance(raw, bool) or not isinstance(raw, Real | Decimal | str):
            raise bad
        long = PolicyError(
            f"epsilon{where} is too long to be kept exactly; write it with fewer digits"
        )
        try:
            text = str(raw)
        except ValueError:  # an integer of thousands of digits
            raise long from None
        if len(text) > _LONGEST:
            raise long
        log, ratio, root = _LN.fullmatch(text), _RATIO.fullmatch(text), 1
        try:
            if log:
                value, root = Fraction(log[1]), int(log[2] or 1)
                ok = value > 1 and 1 <= root <= _ROOTS
            elif ratio:
                value = Fraction(int(ratio[1]), int(ratio[2]))
                ok = Fraction(1, 10**29) <= value < 10**30
            else:
                number = Decimal(text)
                ok = number.is_finite() and number > 0 and abs(number.adjusted()) < 30
                value = Fraction(number) if ok else Fraction(0)
        except (ValueError, ZeroDivisionError, InvalidOperation):
            raise bad from None
        if not ok:
            raise bad
        try:
            return cls(value, bool(log), root=root)
        except PolicyError:
            raise long from None

    @property
    def text(self) -> str:
        """The canonical text, which `parse` reads back."""
        if self.is_open:
            return "open"
        if self.is_log:
            return f"ln({self.value})" + (f"/{self.root}" if self.root > 1 else "")
        exact = Context(prec=100).divide(
            Decimal(self.value.numerator), Decimal(self.value.denominator)
        )
        decimal = format(exact.normalize(Context(prec=100)), "f")
        return decimal if Fraction(decimal) == self.value else str(self.value)

    def __float__(self) -> float:
        if self.is_open:
            return math.inf
        if not self.is_log:
            return float(self.value)
        return (math.log(self.value.numerator) - math.log(self.value.denominator)) / self.root

    def divided(self, parts: int) -> Budget:
        """The budget divided by a whole number, exactly.

        >>> Budget.parse("ln(4)").divided(2), Budget.parse("1.5").divided(2)
        (Budget('ln(4)/2'), Budget('0.75'))
        """
        if self.is_open or parts == 1:
            return self
        if self.is_log:
            return Budget(self.value, True, root=self.root * parts)
        return Budget(self.value / parts)

    def __repr__(self) -> str:
        return f"Budget({self.text!r})"


def _terminates(denominator: int) -> bool:
    """Whether decimals with this denominator come to an end."""
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


OPEN = Budget(Fraction(0), is_open=True)  # of an open level


@dataclass(frozen=True)
class Level:
    """A group of items with one budget; `weight` is how much its error counts in the design. A
    level whose budget is OPEN is promised nothing.
    """

    name: str
    budget: Budget
    weight: float = 1.0


@dataclass(frozen=True)
class Pair:
    """An explicit pair budget between two levels; with None the pair is not protected. If it is
    `one_way`, it is of an answer of the first level over one of the second alone.

    >>> Pair("serious", "common", 2.5)
    Pair(first='serious', second='common', budget=Budget('2.5'), one_way=False)
    """

    first: str
    second: str
    budget: Budget | None  # given as a number or "ln(k)" too
    one_way: bool = False

    def __post_init__(self) -> None:
        for name in (self.first, self.second):
            if not isinstance(name, str):
                raise PolicyError(f"a pair names two levels, got {quoted(name)} for one")
        if not isinstance(self.one_way, bool):
            raise PolicyError(f"one_way = {quoted(self.one_way)} in a pair must be true or false")
        if self.budget is OPEN:
            object.__setattr__(self, "budget", None)
        if self.budget is not None:
            where = f"the pair {quoted([self.first, self.second])}"
            object.__setattr__(self, "budget", Budget.parse(self.budget, where))

    @classmethod
    def read(cls, raw: object) -> Pair:
        """Itself, or from (level, level, epsilon) or (level, level, epsilon, one_way); None for
        epsilon where it is not protected.
        """
        if isinstance(raw, Pair):
            return raw
        if not isinstance(raw, tuple | list) or len(raw) not in (3, 4):
            raise PolicyError(
                f"a pair is (level, level, epsilon), with None for a pair that is not protected, "
                f"got {quoted(raw)}"
            )
        return cls(*raw)
