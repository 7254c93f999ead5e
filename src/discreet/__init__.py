"""discreet: private counts that protect each answer as much as it needs.

The public names, loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Policy": "policy",
    "design": "designs",
    "Mechanism": "mechanism",
    "Guarantee": "guarantee",
    "compose": "guarantee",
    "Tally": "tally",
    "Estimate": "estimate",
    "simulate": "simulation",
    "DiscreetError": "errors",
}
__all__ = list(_HOMES)

if TYPE_CHECKING:
    from discreet.designs import design as design
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.mechanism import Mechanism as Mechanism
    from discreet.policy import Policy as Policy


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(import_module(f"discreet.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
