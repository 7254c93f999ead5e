"""From a solver's floats to integers that pass the exact check: pulled in until they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.encodings import Encoding
from discreet.errors import DesignError, GuaranteeError
from discreet.exact import D
from discreet.mechanism import bases
from discreet.parts import Floats, Part
from discreet.policy import Policy

SHRINKS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)  # of the budgets a design is made for
_STEPS = [0.0] + [2.0**-k for k in range(44, 3, -2)]  # of u and w of a model with one part


def parts_of(
    policy: Policy,
    encoding: Encoding,
    groups: tuple[int, ...],
    chance: Floats,
    own: Floats,
    other: Floats,
) -> tuple[Part, ...]:
    """Parts from chances (parts x groups, a last column for an empty sample), of the own item, and
    `other` as it stands.
    """
    over = bases(encoding, groups, policy)
    count = len(over)
    whole = np.maximum(np.rint(chance / chance.sum(axis=0) * D), 1).astype(np.int64)
    columns = np.arange(whole.shape[1])
    whole[whole.argmax(axis=0), columns] += D - whole.sum(axis=0)
    speaks = other > 0
    named = np.where(speaks, np.clip(np.rint(own * D), 1, D - 1), 0).astype(np.int64)
    none = [int(row[count]) if len(row) > count else None for row in whole]
    return tuple(
        Part(tuple(c[:count].tolist()), tuple(a.tolist()), tuple(b.tolist()), n, over, groups)
        for c, a, b, n in zip(whole, named, other.astype(np.int64), none, strict=True)
    )


def holds(
    policy: Policy, encoding: Encoding, groups: tuple[int, ...], parts: tuple[Part, ...]
) -> bool:
    """Whether the exact check agrees."""
    return encoding.check(policy, groups, parts) is None


def unary(
    policy: Policy, encoding: Encoding, groups: tuple[int, ...], u: Floats, w: Floats
) -> tuple[Part, ...]:
    """The one part of the paper's models from u = ln(a/b) and w = ln((1-b)/(1-a)) per group:
    smaller is more private, so both shrink until the check agrees.
    """
    base = encoding.base(1)
    one = np.ones((1, len(u) + policy.takes_sets))
    for step in _STEPS:
        a, b = _integers(u * (1 - step), w * (1 - step), base)
        found = parts_of(policy, encoding, groups, one, a[None] / D, b[None])
        if holds(policy, encoding, groups, found):
            break
    else:
        raise DesignError(
            "the budgets are too small to be told apart from 0 with probabilities over 2^32"
        )
    refuse_silence(policy, found)
    return found


def refuse_silence(policy: Policy, parts: tuple[Part, ...]) -> None:
    """A level must say something in some part, or nothing could be estimated."""
    told = np.max([np.abs(part.difference) for part in parts], axis=0)[list(parts[0].groups)]
    if told.min() < 2.0**-31:
        level = policy.levels[int(told.argmin())]
        raise DesignError(
            f'level "{level.name}" with epsilon {level.budget.text} learns nothing at '
            "probabilities over 2^32; "
            "use a budget of at least 1e-6"
        )


def _integers(u: Floats, w: Floats, base: int) -> tuple[Any, Any]:
    """A over 2^32 and B over `base`: a/b at most e^u and (1-b)/(1-a) at most e^w, whatever B is
    rounded to.
    """
    with np.errstate(over="ignore"):  # a budget of hundreds protects nothing
        high, low = np.exp(u), np.exp(-w)
    learns = np.minimum(u, w) > 1e-9
    u, w = np.where(learns, u, 1.0), np.where(learns, w, 1.0)
    with np.errstate(over="ignore"):
        b = np.where(learns, -np.expm1(-w) / (np.expm1(u) - np.expm1(-w)), 0.5)

    def fitted(B: Any) -> tuple[Any, Any]:
        """The largest a for this B, and what is learnt."""
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


def shrinking(make: Callable[[float], Any]) -> Any:
    """The first result of make(shrink) that the exact check agrees with, over growing shrinks of
    the budgets.
    """
    for shrink in SHRINKS:
        try:
            return make(shrink)
        except GuaranteeError:
            continue
    raise DesignError(
        "the budgets are too small to be told apart from 0 with probabilities over 2^32"
    )
