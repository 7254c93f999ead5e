"""One person's answer becomes a report. Secure randomness only; there is no seed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from discreet.device.randomness import SystemRandomness
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    from discreet.policy.types import Answer


def perturb(mechanism: Mechanism, answer: Answer) -> bytes:
    """One person's report: of an item (label or index), or of a set of items."""
    return mechanism.coder.write(SystemRandomness(), places(mechanism, answer))


def places(mechanism: Mechanism, answer: Answer) -> list[int]:
    """The items of an answer by their places, each once."""
    policy = mechanism.policy
    if not policy.kind.lists:
        if isinstance(answer, set | frozenset | list | tuple):
            raise DataError(
                f"this mechanism takes a single item, got {type(answer).__name__}; the policy's "
                "kind is single"
            )
        return [_place(policy, answer)]
    if isinstance(answer, str | bytes | Mapping) or not hasattr(answer, "__iter__"):
        raise DataError(
            f'this mechanism takes a set of items, got {type(answer).__name__}; write {{"…"}}'
        )
    items = _listed(answer)
    if items is None:
        raise DataError("this mechanism takes a set of items, got something else")
    return sorted({_place(policy, item) for item in items})


def _listed(answer: Iterable[object]) -> list[object] | None:
    """The items of a set; None if it cannot be read, whatever it raises."""
    try:
        return list(answer)
    except Exception:
        return None


def _place(policy: Policy, item: object) -> int:
    """The place of an item. An error never repeats the answer: it may be somebody's, and errors end
    up in logs. So nothing is raised inside `except`, where it would carry the first error along.
    """
    try:
        return policy.place(item)
    except Exception:
        ambiguous = policy.integer_like_label
    if ambiguous is not None and not isinstance(item, str):
        raise DataError(
            f"a whole number may be a label or an index, because {quoted(ambiguous)} is a label; "
            "write labels as text, and policy.items[k] for the item at index k"
        )
    raise DataError(
        "the answer is not an item of this question; policy.items lists them, and "
        "policy.place(item) says what is wrong with one"
    )
