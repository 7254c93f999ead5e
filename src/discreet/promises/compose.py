"""Several mechanisms used one after the other on the same items."""

from __future__ import annotations

from collections.abc import Iterable

from discreet.errors import DesignError
from discreet.promises.guarantee import Guarantee


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Sequential composition (paper, Theorem "composition"): the pair budgets of mechanisms over
    the same items add up.

    >>> from discreet import Policy, design
    >>> guarantee = design(Policy.from_budgets({"a": 1, "b": 2})).guarantee()
    >>> round(compose([guarantee, guarantee]).ldp_epsilon / guarantee.ldp_epsilon, 9)
    2.0
    """
    terms = list(guarantees) if isinstance(guarantees, Iterable) else [guarantees]
    if not terms:
        raise DesignError("there is nothing to compose; give at least one guarantee")
    for term in terms:
        if not isinstance(term, Guarantee):
            raise DesignError(
                f"compose takes guarantees, got {type(term).__name__}; mechanism.guarantee() is one"
            )
    first = terms[0].policy
    for other in terms[1:]:
        if other.policy.kind.lists != first.kind.lists:
            raise DesignError("guarantees of single answers and of lists cannot be composed")
        if set(other.policy.items) != set(first.items):
            unknown = next(iter(set(other.policy.items) ^ set(first.items)))
            raise DesignError(f'guarantees compose over the same items; "{unknown}" is not in both')
    mechanisms = tuple(m for g in terms for m in g.mechanisms)
    keys = zip(
        *([m.policy.level_of[m.policy.index[item]] for item in first.items] for m in mechanisms),
        strict=True,
    )
    classes: dict[tuple[int, ...], int] = {}
    class_of = tuple(classes.setdefault(key, len(classes)) for key in keys)
    names = tuple(
        " + ".join(m.policy.levels[k].name for m, k in zip(mechanisms, key, strict=True))
        for key in classes
    )
    return Guarantee(mechanisms, names, tuple(zip(*classes, strict=True)), class_of)
