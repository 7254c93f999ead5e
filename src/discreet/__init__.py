"""discreet: private counts that protect each answer as much as it needs.

The public names, loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

_HOMES = {
    "Policy": "policy",
    "design": "designs",
    "Mechanism": "mechanism",
    "Guarantee": "guarantee",
    "compose": "guarantee",
    "Tally": "tally",
    "Estimate": "estimate",
    "simulate": "simulation",
    "choose_padding": "padding",
    "Client": "client",
    "DiscreetError": "errors",
}
__all__ = list(_HOMES)

if TYPE_CHECKING:
    from discreet.client import Client as Client
    from discreet.designs import design as design
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.estimate import Estimate as Estimate
    from discreet.guarantee import Guarantee as Guarantee
    from discreet.guarantee import compose as compose
    from discreet.mechanism import Mechanism as Mechanism
    from discreet.padding import choose_padding as choose_padding
    from discreet.policy import Policy as Policy
    from discreet.simulation import simulate as simulate
    from discreet.tally import Tally as Tally


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(import_module(f"discreet.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
