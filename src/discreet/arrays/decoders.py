"""The decoder of every way to report lists."""

from __future__ import annotations

from discreet.arrays.classes import ClassDecoder
from discreet.arrays.theory import Decoder
from discreet.mechanism import Mechanism

DECODERS: dict[str, type[Decoder]] = {"picked": ClassDecoder}


def make_decoder(mechanism: Mechanism) -> Decoder:
    """The best unbiased estimator at the mechanism's shares."""
    return DECODERS.get(mechanism.encoding.lists, Decoder).for_mechanism(mechanism)
