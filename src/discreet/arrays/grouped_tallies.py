"""A tally per group of people: adding them up, their names, and a folder with a file for each."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TypeVar

from discreet.arrays.tally import Tally
from discreet.errors import DataError

Group = TypeVar("Group", bound=Hashable)  # the value of a column, or a tuple of values


def add_by_group(tallies: dict[Group, Tally], more: Mapping[Group, Tally]) -> None:
    """Add the tallies of `more` to those of the same group."""
    for group, tally in more.items():
        tallies[group] = tallies[group] + tally if group in tallies else tally


def group_name(group: object) -> str:
    """The name of a group for people: the value of its column, or its values if there are several.

    >>> group_name("north"), group_name(("north", 30)), group_name(None)
    ('north', 'north, 30', '(no value)')
    """
    values = group if isinstance(group, tuple) else (group,)
    return ", ".join("(no value)" if value is None else str(value) for value in values)


def file_name(group: object) -> str:
    """The name of a group's file, without its ending.

    >>> file_name(("north", 30))
    'north__30'
    """
    single = isinstance(group, tuple) and len(group) == 1
    return re.sub(r"[^\w.-]", "_", group_name(group[0] if single else group))  # type: ignore[index]


def save_groups(tallies: Mapping[Group, Tally], folder: str | Path) -> None:
    """Write a file per group."""
    names = {group: file_name(group) for group in tallies}
    seen: dict[str, Group] = {}
    for group, name in names.items():
        if name in seen:
            raise DataError(
                f'the groups "{group_name(seen[name])}" and "{group_name(group)}" would have the '
                "same file name; rename one"
            )
        seen[name] = group
    Path(folder).mkdir(parents=True, exist_ok=True)
    left = sorted(path.stem for path in Path(folder).glob("*.json") if path.stem not in seen)
    if left:
        raise DataError(
            f"{folder} holds the tally of another group, {left[0]}.json: adding up the folder "
            "would count people twice; empty it or name another folder"
        )
    for group, tally in tallies.items():
        tally.save(Path(folder) / f"{names[group]}.json")
