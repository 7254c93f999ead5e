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
    "Survey": "survey",
    "Guarantee": "promises.guarantee",
    "compose": "promises.compose",
    "Tally": "arrays.tally",
    "Estimate": "estimates.estimate",
    "simulate": "estimates.simulation",
    "choose_padding": "estimates.padding",
    "Client": "device.client",
    "DiscreetError": "errors",
}
__all__ = list(_HOMES)

if TYPE_CHECKING:
    from discreet.arrays.tally import Tally as Tally
    from discreet.designs import design as design
    from discreet.device.client import Client as Client
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.estimates.estimate import Estimate as Estimate
    from discreet.estimates.padding import choose_padding as choose_padding
    from discreet.estimates.simulation import simulate as simulate
    from discreet.mechanism import Mechanism as Mechanism
    from discreet.policy import Policy as Policy
    from discreet.promises.compose import compose as compose
    from discreet.promises.guarantee import Guarantee as Guarantee
    from discreet.survey import Survey as Survey


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"discreet.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        from discreet.errors import missing_extra

        raise missing_extra(error) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
