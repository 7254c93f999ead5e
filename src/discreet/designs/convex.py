"""Minima of convex functions of one and of two variables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

_GOLDEN = (5**0.5 - 1) / 2

Point = tuple[float, float]


def minimise(f: Callable[[float], float], low: float, high: float, steps: int = 80) -> float:
    """The minimum of a convex function of one variable, by golden section (80 steps reach the last
    digits).
    """
    x1, x2 = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    f1, f2 = f(x1), f(x2)
    for _ in range(steps):
        if f1 <= f2:
            high, x2, f2 = x2, x1, f1
            x1 = high - _GOLDEN * (high - low)
            f1 = f(x1)
        else:
            low, x1, f1 = x1, x2, f2
            x2 = low + _GOLDEN * (high - low)
            f2 = f(x2)
    return (low + high) / 2


def find_root(slope: Callable[[float], float], low: float, high: float, steps: int = 80) -> float:
    """Where an increasing function changes its sign, by bisection: the minimum of a convex function
    to the last digit, from its slope.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        if slope(middle) > 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def minimise_in_polygon(
    f: Callable[[float, float], tuple[float, float, float]], polygon: list[Point], steps: int = 130
) -> Point:
    """The minimum of a convex function of two variables, which gives its value and both slopes: cut
    the polygon through its centre of gravity, which leaves at most 0.63 of it each time.
    """
    best, at = float("inf"), polygon[0]
    for _ in range(steps):
        centre = _centroid(polygon)
        if centre is None:
            break
        x, y = centre
        value, dx, dy = f(x, y)
        if value < best:
            best, at = value, centre
        polygon = _cut(polygon, dx, dy, dx * x + dy * y)
        if len(polygon) < 3:
            break
    return at


def _centroid(polygon: list[Point]) -> Point | None:
    x0, y0 = polygon[0]
    area = cx = cy = 0.0
    for (x1, y1), (x2, y2) in pairwise(polygon[1:]):
        cross = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        area += cross
        cx += cross * (x1 + x2 - 2 * x0)
        cy += cross * (y1 + y2 - 2 * y0)
    if abs(area) < 1e-30 * (abs(x0) + abs(y0)) ** 2:
        return None
    return x0 + cx / (3 * area), y0 + cy / (3 * area)


def _cut(polygon: list[Point], dx: float, dy: float, level: float) -> list[Point]:
    """Keep the side of the polygon where dx x + dy y <= level."""
    kept = []
    for k, point in enumerate(polygon):
        before = polygon[k - 1]
        s0, s1 = dx * before[0] + dy * before[1] - level, dx * point[0] + dy * point[1] - level
        if (s0 <= 0) != (s1 <= 0):
            r = s0 / (s0 - s1)
            kept.append(
                (before[0] + r * (point[0] - before[0]), before[1] + r * (point[1] - before[1]))
            )
        if s1 <= 0:
            kept.append(point)
    return kept
