"""The block coder of every encoding. To make an encoding fast, add a file and a line here."""

from __future__ import annotations

import sys

from discreet.arrays.base import BlockCoder
from discreet.arrays.bits import BitsBlocks
from discreet.arrays.each import EachBlocks
from discreet.arrays.fixed import FixedBlocks
from discreet.arrays.hits import HitsBlocks
from discreet.arrays.picks import PicksBlocks
from discreet.arrays.plain import PlainBlocks
from discreet.arrays.ticket import TicketBlocks
from discreet.mechanism import Mechanism

BLOCKS: dict[str, type[BlockCoder]] = {
    "fixed": FixedBlocks,
    "bits": BitsBlocks,
    "ticket": TicketBlocks,
    "hits": HitsBlocks,
    "picks": PicksBlocks,
    "each": EachBlocks,
}


SMALL = 1 << 17  # people x items of a job that ends before a compiled loop would be ready


def make_coder(mechanism: Mechanism) -> BlockCoder:
    """The block coder of a mechanism; one by one where its encoding has none of its own."""
    return BLOCKS.get(mechanism.encoding.kind, PlainBlocks)(mechanism)


def is_small(mechanism: Mechanism, n: int) -> bool:
    """Whether n reports are done sooner one by one.

    Compiling takes seconds, and loading compiled code about one.
    """
    return n * mechanism.m <= SMALL and "numba" not in sys.modules
