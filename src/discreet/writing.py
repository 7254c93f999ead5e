"""A policy as the TOML file that `Policy.load` reads."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import PolicyError
from discreet.files import write_text

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
    usual = {"question": "", "padding": None, "protect": "set", "strict": False}
    keys = ("name", "question", "input", "notion", "padding", "protect", "strict")
    lines = [
        f"{key} = {_value(getattr(policy, key))}"
        for key in keys
        if key not in usual or getattr(policy, key) != usual[key]
    ]
    if items_file:
        lines.append(f"items_file = {_value(items_file)}")
    if about := policy.about.to_canonical():
        lines += ["", "[about]"]
        lines += [f"{key} = {_said(key, value)}" for key, value in about.items()]
    for k, level in enumerate(policy.levels):
        lines += ["", "[[level]]", f"name = {_value(level.name)}"]
        lines.append(f"epsilon = {_value(level.budget.text)}")
        if level.weight != 1:
            lines.append(f"weight = {level.weight!r}")
        if not items_file:
            held = [i for i, of in zip(policy.items, policy.level_of, strict=True) if of == k]
            lines += ["items = [", *(f"  {_value(item)}," for item in held), "]"]
    for pair in policy.pairs:
        told = f"epsilon = {_value(pair.budget.text)}" if pair.budget else "protected = false"
        lines += ["", "[[pair]]", f"levels = [{_value(pair.first)}, {_value(pair.second)}]", told]
    return "\n".join(lines) + "\n"


def _said(key: str, value: Any) -> str:
    """A time of TOML has no quotes."""
    return str(value) if key in ("opens", "closes") else _value(value)


def _value(value: Any) -> str:
    """Texts of TOML are escaped as those of JSON; true, false and numbers are the same."""
    return json.dumps(value, ensure_ascii=False)
