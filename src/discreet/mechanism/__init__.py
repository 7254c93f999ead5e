"""The public integers of one question, which both sides share."""

from discreet.mechanism.body import FORMAT
from discreet.mechanism.mechanism import Mechanism
from discreet.mechanism.shape import denominators

__all__ = ["FORMAT", "Mechanism", "denominators"]
