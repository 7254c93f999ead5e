"""Columns of one cut of picks in floats become integers (check/exact_picks.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.arrays.types import Floats
from discreet.check.exact_picks import Vector, classes, possible, ways, weight
from discreet.check.exact_sets import TOTAL

_EQUAL = 1e-8  # densities that differ by less join a bunch
_RARE = 1e-9  # vectors with a smaller chance join a bunch, too
_UNUSED = 1e-7  # weight below which a column is left out


@dataclass(frozen=True, eq=False)
class FloatCut:
    """The columns of a cut: their sizes, their densities f[column][cell], and their weights."""

    m: Vector
    s: int
    sizes: Sequence[Vector]
    f: Sequence[dict[tuple[Vector, Vector], float]]
    mu: Floats

    def rows(self, mix: float) -> list[tuple[Vector, list[list[list[int]]]]]:
        """The sizes and the rows of every part, mixed a little with a report that says nothing."""
        used = [o for o, weight in enumerate(self.mu) if weight > _UNUSED]
        total = float(self.mu[used].sum())
        made: list[list[list[list[int]]]] = [[] for _ in used]
        for j in classes(len(self.m), self.s):
            bunches = []
            for o in used:
                share = float(self.mu[o]) / total
                at = possible(self.m, self.sizes[o], j)
                f = [share * ((1 - mix) * self.f[o][j, n] * total + mix) for n in at]
                bunches.append(_bunches(self.m, self.sizes[o], j, at, f, share))
            for row, found in zip(made, _masses(bunches), strict=True):
                row.append(found)
        return [(self.sizes[o], row) for o, row in zip(used, made, strict=True)]


@dataclass
class _Bunch:
    """Vectors of (nearly) one density, by their places."""

    places: list[int]
    chance: float
    density: float


def _bunches(
    m: Vector, k: Vector, j: Vector, vectors: list[Vector], f: list[float], share: float
) -> list[_Bunch]:
    """Vectors of nearly the same density, or of next to no chance, form one bunch with those of the
    nearest one: so no mass is too small to be rounded.
    """
    chances = [weight(m, k, j, n) / ways(m, j) for n in vectors]
    bunches: list[_Bunch] = []
    for place in sorted(range(len(vectors)), key=lambda place: -chances[place]):
        chance, density = chances[place], f[place]
        near = min(bunches, key=lambda x: abs(math.log(x.density / density)), default=None)
        if near and (abs(near.density / density - 1) < _EQUAL or chance * share < _RARE):
            near.places.append(place)
            near.chance += chance
        else:
            bunches.append(_Bunch([place], chance, density))
    return bunches


def _masses(parts: list[list[_Bunch]]) -> list[list[list[int]]]:
    """The masses of a row, and the places; the largest takes what is left to 2^52."""
    whole = sum(bunch.chance * bunch.density for row in parts for bunch in row)
    made = [
        [
            [max(1, round(bunch.chance * bunch.density / whole * TOTAL)), *sorted(bunch.places)]
            for bunch in row
        ]
        for row in parts
    ]
    every = [bunch for row in made for bunch in row]
    if every:
        max(every)[0] += TOTAL - sum(mass for mass, *_ in every)
    return made
