"""A policy as the TOML file that `Policy.load` reads."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import PolicyError
from discreet.policy.files import write_text

if TYPE_CHECKING:
    from discreet.policy import Policy


def save(policy: Policy, path: str | Path) -> None:
    """Write the policy; where levels take turns in the list of items, that list goes into a CSV
    file beside it, so that the order stays.
    """
    path = Path(path)
    if path.suffix.lower() != ".toml":
        raise PolicyError(f"{path}: a policy is written as .toml")
    beside = None
    if list(policy.level_of) != sorted(policy.level_of):
        beside = path.with_name(f"{path.stem}.items.csv")
        write_text(beside, _members(policy))
    write_text(path, _text(policy, beside.name if beside else None))


def _members(policy: Policy) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("item", "level"))
    names = [level.name for level in policy.levels]
    rows.writerows((i, names[k]) for i, k in zip(policy.items, policy.level_of, strict=True))
    return out.getvalue()


def _text(policy: Policy, items_file: str | None) -> str:
    usual = {"question": "", "padding": None, "strict": False, "notion": policy.notion}
    keys = ("question", "kind", "notion", "padding", "strict")
    lines = [
        f"{key} = {_value(getattr(policy, key))}"
        for key in keys
        if key not in usual or getattr(policy, key) != usual[key]
    ]
    lines += _notion(policy)
    if items_file:
        lines.append(f"items_file = {_value(items_file)}")
    if policy.last:
        lines.append(f"last = {_value(list(policy.last))}")
    if policy.totals:
        lines += ["", "[totals]"]
        lines += [f"{_value(name)} = {_value(list(items))}" for name, items in policy.totals]
    for k, level in enumerate(policy.levels if not policy.rule.ordered else ()):
        lines += ["", "[[level]]", f"name = {_value(level.name)}"]
        is_open = level.budget.is_open
        lines.append("open = true" if is_open else f"epsilon = {_value(level.budget.text)}")
        if level.weight != 1:
            lines.append(f"weight = {level.weight!r}")
        if not items_file:
            held = [i for i, of in zip(policy.items, policy.level_of, strict=True) if of == k]
            lines += ["items = [", *(f"  {_value(item)}," for item in held), "]"]
    for pair in policy.pairs:
        budget = f"epsilon = {_value(pair.budget.text)}" if pair.budget else "protected = false"
        lines += ["", "[[pair]]", f"levels = [{_value(pair.first)}, {_value(pair.second)}]", budget]
        if pair.one_way:
            lines.append("one_way = true")
    return "\n".join(lines) + "\n"


def _notion(policy: Policy) -> list[str]:
    """The notion as a file says it."""
    if not policy.rule.complete:
        return ["blocks = true"]
    if not policy.rule.ordered:
        return [f"notion = {_value(policy.notion)}"]
    step = policy.levels[0].budget
    lines = [f"scale = {_value(step.text)}"]
    if policy.cap is not None:
        most = step.value**policy.cap if step.is_log else step.value * policy.cap
        lines.append(f"cap = {_value(replace(step, value=most).text)}")
    lines += [f"estimate = {_value(policy.estimate)}"] if policy.estimate != "both" else []
    return [*lines, "items = [", *(f"  {_value(item)}," for item in policy.items), "]"]


def _value(value: object) -> str:
    """Texts of TOML are escaped as those of JSON; true, false and numbers are the same."""
    return json.dumps(value, ensure_ascii=False)
