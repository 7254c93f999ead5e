"""A mechanism's integers as arrays, for many people at once; made when first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import coders
from discreet.arrays.base import BlockCoder
from discreet.arrays.plain import PlainBlocks
from discreet.arrays.types import Floats, Ints, read_only
from discreet.errors import DesignError
from discreet.mechanism import Mechanism
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.arrays.theory import Decoder


class Arrays:
    """The arrays of one mechanism, each made when first read."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    @cached_property
    def level_of(self) -> NDArray[np.int32]:
        """The level of every item."""
        return read_only(np.array(self.mechanism.policy.level_of, dtype=np.int32))

    @cached_property
    def group_of(self) -> Ints:
        """The group of every item."""
        return read_only(np.array(self.mechanism.groups, dtype=np.int64)[self.level_of])

    @cached_property
    def level_sizes(self) -> Ints:
        """The number of items of every level."""
        return read_only(np.array(self.mechanism.policy.level_sizes, dtype=np.int64))

    @cached_property
    def group_sizes(self) -> Ints:
        """The number of items of every group."""
        return read_only(np.array(self.mechanism.group_sizes, dtype=np.int64))

    @cached_property
    def chance(self) -> Floats:
        """The chance of every part, parts x groups; with sets, then of an empty sample."""
        rates = [part.by_group for part in self.mechanism.parts]
        empty = self.mechanism.policy.kind.lists
        return read_only(np.array([[*x.chance, *([x.none] if empty else [])] for x in rates]))

    @cached_property
    def own(self) -> Floats:
        """The chance that an item is named by its holder, parts x groups."""
        return read_only(np.array([part.by_group.own for part in self.mechanism.parts]))

    @cached_property
    def other(self) -> Floats:
        """The chance that an item is named by anybody else, parts x groups."""
        return read_only(np.array([part.by_group.other for part in self.mechanism.parts]))

    @cached_property
    def difference(self) -> Floats:
        """own - other, without cancellation."""
        return read_only(np.array([part.by_group.difference for part in self.mechanism.parts]))

    def only(self, which: Literal["own", "other"]) -> Floats:
        """The chances of the only part, per level."""
        parts = self.mechanism.parts
        if len(parts) > 1:
            raise DesignError(
                f"this mechanism has {len(parts)} parts, so no single a and b; "
                "use mechanism.parts[k].chance, .own and .other"
            )
        return read_only(np.array(getattr(parts[0], which)))

    def counted(self, sizes: Ints | int) -> Floats:
        """What each item of a set of this size counts: 1 up to the padding, less above it."""
        padding = self.mechanism.padding
        return (
            np.minimum(1.0, padding / np.maximum(sizes, 1)) if padding else np.ones(np.shape(sizes))
        )

    @cached_property
    def coder(self) -> BlockCoder:
        """The coder that writes, refuses and counts blocks of reports."""
        return coders.make_coder(self.mechanism)

    @cached_property
    def _plain(self) -> PlainBlocks:
        return PlainBlocks(self.mechanism)

    def coder_for(self, n: int) -> BlockCoder:
        """The coder for n reports; a few reports are coded one by one."""
        return self._plain if coders.is_small(self.mechanism, n) else self.coder

    @cached_property
    def decoder(self) -> Decoder:
        """The scores that turn a tally into counts, and their variance."""
        from discreet.arrays.decoders import make_decoder

        return make_decoder(self.mechanism)
