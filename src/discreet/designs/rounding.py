"""From a solver's floats to integers that pass the exact check: shrink them until they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from discreet.arrays.types import Floats, Ints
from discreet.check.exact import Chances, D
from discreet.check.parts import Part
from discreet.encodings import Encoding
from discreet.errors import DesignError, GuaranteeError
from discreet.mechanism import Mechanism, denominators
from discreet.policy import Policy

SHRINKS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)  # of the budgets a design is made for
_UNBOUND, _ROUND_OFF = 300.0, 1e-12
_STEPS = [0.0] + [2.0**-k for k in range(44, 3, -2)]  # of u and w of a model with one part


def make_parts(
    policy: Policy,
    encoding: Encoding,
    groups: tuple[int, ...],
    chance: Floats,
    own: Floats,
    other: Floats | Ints,
    budgets: Floats | None = None,
) -> tuple[Part, ...]:
    """Make parts from the chances of the parts and of an own item; `other` is already whole.

    All are parts x groups; `chance` has a last column for an empty sample. A chance of 0 stays 0,
    and a chance of an own item of exactly 1 stays 1. With `budgets` of every two columns of
    `chance`, small numbers move until these budgets hold: the nearest integers might break them.
    """
    over = denominators(encoding, groups, policy)
    count = len(over)
    whole = np.rint(chance / chance.sum(axis=0) * D)
    sent = whole.any(axis=1)  # other parts are nearly never sent
    whole, chance, own, other = whole[sent], chance[sent], own[sent], other[sent]
    whole = np.where(chance > 0, np.maximum(whole, 1), 0).astype(np.int64)
    speaks = (other > 0) | ((own == 1) & (other == 0) & (chance[:, :count] > 0) & encoding.plain)
    own = np.where(speaks, own, 0.0)
    if budgets is None:
        whole, named = _summed(whole), np.rint(own * D)
    else:
        share = np.zeros(chance.shape)
        share[:, :count] = other / np.array(over)
        whole, mine = _kept(whole, _widened(own, chance.shape[1]), share, budgets)
        named = np.floor(mine[:, :count] * D)
    most = np.where(own == 1, D, D - 1)
    named = np.where(speaks, np.clip(named, 1, most), 0).astype(np.int64)
    none = [int(row[count]) if len(row) > count else None for row in whole]
    return tuple(
        Part(Chances(c[:count].tolist(), a.tolist(), b.tolist(), n), over, groups)
        for c, a, b, n in zip(whole, named, other.astype(np.int64), none, strict=True)
    )


def _summed(whole: Ints) -> Ints:
    """The largest chance of every column takes what is left to 2^32."""
    whole, columns = whole.copy(), np.arange(whole.shape[1])
    whole[whole.argmax(axis=0), columns] += D - whole.sum(axis=0)
    return whole


def _widened(values: Floats, columns: int) -> Floats:
    """The values, and columns of zeros up to so many."""
    return np.hstack((values, np.zeros((len(values), columns - values.shape[1]))))


def _kept(whole: Ints, own: Floats, share: Floats, r: Floats) -> tuple[Ints, Floats]:
    """Chances and own chances that keep r of every two columns, as far as integers can.

    An answer that is named has the chance `own` / `share` of the report (high), another one
    (1 - own) / (1 - share) (low), times that of the part. Small chances of parts are raised, until
    nobody else's high is too large beside their low. Where that goes on and on, own chances go down
    to what the others' lows allow; this raises a low and so disturbs nobody.
    """
    factor = np.where(np.isfinite(r), np.exp(np.minimum(r, _UNBOUND)) * (1 - _ROUND_OFF), np.inf)
    others = np.where(np.eye(len(r), dtype=bool), np.inf, factor)

    def needed(whole: Ints) -> Floats:
        low = (1 - own) / (1 - share)
        high = np.divide(own, share, out=np.ones_like(own), where=share > 0)
        least = ((whole * high)[:, None, :] / others.T[None]).max(axis=2)
        return np.divide(least, low, out=np.zeros_like(low), where=(low > 0) & (whole > 0))

    def lowered(whole: Ints) -> Floats:
        low = whole * (1 - own) / (1 - share)
        with np.errstate(invalid="ignore"):  # nothing is promised against nobody: 0 times infinity
            tops = factor[None] * low[:, None, :]
        top = np.where(np.isnan(tops), np.inf, tops).min(axis=2)
        most = np.divide(top, np.maximum(whole, 1))
        return np.minimum(own, np.where(share > 0, most, np.inf) * np.where(share > 0, share, 1))

    sweeps = 2 * len(r)
    for sweep in range(2 * sweeps):
        raised = _summed(np.maximum(whole, np.ceil(needed(whole)).astype(np.int64)))
        if (raised == whole).all():
            break
        whole = raised
        own = lowered(whole) if sweep >= sweeps else own
    return whole, lowered(whole)


def unary(
    make: Callable[[tuple[Part, ...]], Mechanism],
    policy: Policy,
    encoding: Encoding,
    groups: tuple[int, ...],
    u: Floats,
    w: Floats,
) -> Mechanism:
    """Make a mechanism of the one part of the paper's models, from u = ln(a/b) and
    w = ln((1-b)/(1-a)) per group.

    Smaller is more private, so both shrink until the check agrees.
    """
    base = encoding.denominator(1)
    one = np.ones((1, len(u) + policy.kind.lists))

    def rounded(step: float) -> Mechanism:
        a, b = _integers(u * (1 - step), w * (1 - step), base)
        parts = make_parts(policy, encoding, groups, one, a[None] / D, b[None])
        mechanism = make(parts)
        refuse_silence(policy, parts)
        return mechanism

    return shrink_until_checked(rounded, _STEPS)


def refuse_silence(policy: Policy, parts: tuple[Part, ...]) -> None:
    """Refuse parts in which a level says nothing, because its counts could not be estimated."""
    by_group = np.abs([part.by_group.difference for part in parts]).max(axis=0)
    by_level = by_group[list(parts[0].groups)]
    if by_level.min() < 2.0**-31:
        level = policy.levels[int(by_level.argmin())]
        raise DesignError(
            f'level "{level.name}" with epsilon {level.budget.text} learns nothing at '
            "probabilities over 2^32; "
            "use a budget of at least 1e-6"
        )


def _integers(u: Floats, w: Floats, base: int) -> tuple[Ints, Ints]:
    """A over 2^32 and B over `base` with a/b <= e^u and (1-b)/(1-a) <= e^w, rounded either way."""
    with np.errstate(over="ignore"):  # a budget of hundreds protects nothing
        high, low = np.exp(u), np.exp(-w)
    learns = np.minimum(u, w) > 1e-9
    u, w = np.where(learns, u, 1.0), np.where(learns, w, 1.0)
    with np.errstate(over="ignore"):
        b = np.where(learns, -np.expm1(-w) / (np.expm1(u) - np.expm1(-w)), 0.5)

    def fitted(B: Ints) -> tuple[Ints, Floats]:
        """The largest A for this B, and the information."""
        share = B / base
        a = np.minimum(share * high, 1 - (1 - share) * low)
        A = np.clip(np.floor(a * D), 1, D - 1).astype(np.int64)
        least = -(-B.astype(object) * D // base).astype(np.int64)  # the smallest A with a >= b
        A = np.maximum(A, least)
        return A, (A / D - share) ** 2 / (share * (1 - share))

    down = np.clip(np.floor(b * base), 1, base - 1).astype(np.int64)
    up = np.clip(np.ceil(b * base), 1, base - 1).astype(np.int64)
    (A0, I0), (A1, I1) = fitted(down), fitted(up)
    return np.where(I0 > I1, A0, A1), np.where(I0 > I1, down, up)


def shrink_until_checked(
    make: Callable[[float], Mechanism], shrinks: Sequence[float] = SHRINKS
) -> Mechanism:
    """The first mechanism of make(shrink) that passes the exact check, as the budgets shrink more
    and more. A mechanism is checked when it is made, so it is checked once.
    """
    for shrink in shrinks:
        try:
            return make(shrink)
        except GuaranteeError:
            continue
    raise DesignError(
        "the budgets are too small to be told apart from 0 with probabilities over 2^32"
    )
