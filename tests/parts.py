"""Parts made by hand."""

from dataclasses import replace

from discreet.check.exact import Chances
from discreet.check.parts import Part


def make_part(chance, own, other, none, denominators, groups):
    return Part(Chances(chance, own, other, none), denominators, groups)


def changed(part, **ints):
    """The same part with other integers."""
    return replace(part, ints=part.ints._replace(**ints))
