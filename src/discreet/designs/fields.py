"""The field of a ticket: which (q, t) for m items."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from discreet.encodings import Ticket
from discreet.encodings.base import is_prime
from discreet.errors import DesignError

_TABLE = 2**24  # tickets of a part, if that many are enough
_DIMENSIONS = (2, 3, 4, 5, 6)
_FEW = 1000  # items up to which t = 2 is enough
_CLOSE = 1.002  # a smaller table may have this much more error


def best_field(m: int, error: Callable[[Ticket], float], growth: float = 1.5) -> Ticket:
    """The smallest table with an expected error within 0.2 % of the best.

    `growth` is the ratio of one q that is tried to the previous one.
    """
    tried = [(error(field), field) for field in fields(m, growth)]
    best = min(score for score, _ in tried)
    good = [field for score, field in tried if score - best <= (_CLOSE - 1) * abs(best)]
    return min(good, key=lambda field: field.tickets)


def fields(m: int, growth: float = 1.5) -> Iterator[Ticket]:
    """A few fields for every t, of up to 2^24 tickets if m allows it."""
    for table in (_TABLE, 2**28, 2**30):
        fits = False
        for t in _DIMENSIONS if m > _FEW else _DIMENSIONS[:1]:
            most = _prime_to(int(table ** (1 / (t + 1)) + 1e-9))
            q = _prime_from(max(_root(m, t), t + 1))
            while q <= most:
                fits = True
                yield Ticket(q, t)
                q = _prime_from(max(q + 1, min(int(q * growth), most)))
        if fits:
            return
    raise DesignError(f"{m} items do not fit into a ticket of 4 bytes; use bits")


def _root(m: int, t: int) -> int:
    """The smallest q with q^t >= m."""
    q = max(1, round(m ** (1 / t)))
    while q > 1 and (q - 1) ** t >= m:
        q -= 1
    while q**t < m:
        q += 1
    return q


def _prime_from(n: int) -> int:
    while not is_prime(n):
        n += 1
    return n


def _prime_to(n: int) -> int:
    while n > 2 and not is_prime(n):
        n -= 1
    return n
