"""Whether the pieces of a mechanism fit together. The guarantee itself is checked in `check/`."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from discreet import encodings
from discreet.check import exact
from discreet.check.exact import D
from discreet.encodings import Encoding
from discreet.errors import DesignError
from discreet.policy import Policy
from discreet.policy.labels import quoted
from discreet.policy.validation import check_padding

if TYPE_CHECKING:
    from discreet.mechanism.mechanism import Mechanism

MODEL = "[a-z][a-z0-9]{0,19}"  # a name only: promises and counts do not depend on the model
PRIORS = ("uniform", "worst", "given")
MAX_PARTS = 256


def check_shape(mechanism: Mechanism) -> None:
    """Raise DesignError unless policy, encoding, padding and parts fit together."""
    policy, encoding, padding = mechanism.policy, mechanism.encoding, mechanism.padding
    if type(policy) is not Policy:
        raise DesignError(f"a mechanism needs a Policy, got {type(policy).__name__}")
    kind = encodings.KINDS.get(getattr(encoding, "kind", ""))
    if type(encoding) is not kind:
        raise DesignError(f"encoding = {quoted(encoding)} must be one of discreet's own")
    if any(type(number) is not int for number in asdict(encoding).values()):
        raise DesignError("the parameters of an encoding are whole numbers of Python's own kind")
    if policy.kind.pads != (padding is not None):
        raise DesignError(f'kind = "{policy.kind}" and padding = {padding} do not go together')
    if padding is not None:
        check_padding(padding)
    if not isinstance(mechanism.model, str) or not re.fullmatch(MODEL, mechanism.model):
        raise DesignError(
            f"model = {quoted(mechanism.model)} must be a word of a-z and 0-9, up to 20"
        )
    if mechanism.prior not in PRIORS:
        raise DesignError(f"prior = {quoted(mechanism.prior)} must be one of {', '.join(PRIORS)}")
    if not 1 <= len(mechanism.parts) <= MAX_PARTS:
        raise DesignError(f"a mechanism has 1 to {MAX_PARTS} parts, got {len(mechanism.parts)}")
    _check_parts(mechanism)
    unfit = encoding.unfit_size(policy.m, len(mechanism.parts)) or encoding.unfit_policy(mechanism)
    if unfit:
        raise DesignError(unfit)


def _check_parts(mechanism: Mechanism) -> None:
    """Raise unless every part is what its numbers give with this policy and encoding: the check
    must not take denominators, groups or a prime from whoever made the part.
    """
    encoding = mechanism.encoding
    for part in mechanism.parts:
        try:
            expected = encoding.part(part.document(), mechanism.denominators, mechanism.groups)
        except (AttributeError, KeyError, TypeError, ValueError):
            expected = None
        if type(part) is not type(expected) or part != expected:
            raise DesignError(
                f'a part is not one of this policy and the encoding "{encoding.kind}": '
                "its denominators, groups or numbers are of another mechanism"
            )


def check_shares(mechanism: Mechanism) -> None:
    """Raise DesignError unless the shares are whole numbers that sum to 2^32."""
    shares, count = mechanism.shares, len(mechanism.group_sizes)
    wanted = mechanism.encoding.shares(count, mechanism.policy, mechanism.padding)
    whole = len(shares) == wanted and all(type(x) is int and x >= 0 for x in shares)
    if not whole or sum(shares) != D:
        raise DesignError(
            f"shares must be {wanted} whole numbers that sum to 2^32, one per group of levels"
        )


def group_sizes(groups: tuple[int, ...], policy: Policy) -> tuple[int, ...]:
    """The number of items of every group."""
    count = exact.count_groups(policy, groups)
    if count is None:
        raise DesignError("the groups do not give every level a group, numbered as they appear")
    sizes = [0] * count
    for group, size in zip(groups, policy.level_sizes, strict=True):
        sizes[group] += size
    return tuple(sizes)


def denominators(encoding: Encoding, groups: tuple[int, ...], policy: Policy) -> tuple[int, ...]:
    """What `other` of every group is a numerator over."""
    return tuple(encoding.denominator(size) for size in group_sizes(groups, policy))
