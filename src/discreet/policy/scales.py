"""A scale: an ordered question with one budget per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.errors import PolicyError
from discreet.policy.budgets import Budget, Level
from discreet.policy.labels import quoted
from discreet.policy.policy import Policy
from discreet.policy.validation import MOST_POINTS

if TYPE_CHECKING:
    from discreet.policy.types import JsonObject

SCALE_KEYS = ("cap", "estimate", "items")  # of a policy file, beside `scale`
_WITHOUT = ("level", "pair", "notion", "blocks", "items_file", "sizes", "users", "padding")


def read_scale(table: JsonObject, settings: JsonObject) -> Policy:
    """From the keys of a policy file that has a `scale`."""
    surplus = next((key for key in _WITHOUT if key in table), None)
    if surplus:
        raise PolicyError(f"{surplus} does not go with scale; its items are points in their order")
    if "estimate" in table:
        settings["estimate"] = table["estimate"]
    return build_scale(table.get("items"), table["scale"], table.get("cap"), settings)


def build_scale(items: object, step: object, cap: object, settings: JsonObject) -> Policy:
    """A scale from its points, the budget per step, and the largest budget."""
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise PolicyError(f"items = {quoted(items)} of a scale must be a list of labels in order")
    surplus = next((key for key in ("notion", "blocks", "open", "sizes") if key in settings), None)
    if surplus:
        raise PolicyError(f"{surplus} does not go with a scale; leave it out")
    points = tuple(items)
    if not points:
        raise PolicyError(f"a scale has 2 to {MOST_POINTS} items, in their order, got none")
    budget = Budget.parse(step, "the scale")
    levels = tuple(Level(item, budget) for item in points)
    steps = None if cap is None else _whole_steps(Budget.parse(cap, "the cap"), budget)
    steps = None if steps is not None and steps >= len(points) - 1 else steps
    more = {"notion": "scale", "cap": steps, **settings}
    return Policy(points, tuple(range(len(points))), levels, **more)


def _whole_steps(cap: Budget, step: Budget) -> int:
    """How many steps the cap is, exactly."""
    steps, rest = 0, cap.value
    if (cap.is_log, cap.root) == (step.is_log, step.root):
        if step.is_log:
            while rest >= step.value and steps < 1000:
                rest, steps = rest / step.value, steps + 1
            left = rest != 1
        else:
            steps, left = int(rest // step.value), rest % step.value != 0
        if steps and not left:
            return steps
    raise PolicyError(
        f"cap = {cap.text} must be a whole number of steps of {step.text}, such as "
        f"{_example_cap(step)}"
    )


def _example_cap(step: Budget) -> str:
    three = step.value**3 if step.is_log else step.value * 3
    return replace(step, value=three).text
