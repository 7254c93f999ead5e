"""Names for what people pass in, so that signatures say what they take."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.policy.budgets import Budget

Item = str | int  # a label, or the index of an item
Answer = Item | Iterable[Item]  # one item, or a set of them
BudgetLike = Budget | str | int | float | Decimal | Fraction  # what `Budget.parse` reads
JsonObject = dict[str, Any]  # an object of a JSON or TOML document, not validated yet
