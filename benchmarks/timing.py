"""Best of several, and a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best(work: Callable[[], Any], seconds: float = 1.0, least: int = 3) -> float:
    """The shortest of several runs, in seconds."""
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < least or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def table(title: str, heads: list[str], rows: list[list[Any]]) -> str:
    lines = [f"\n### {title}\n", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def si(x: float) -> str:
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if x >= scale:
            return f"{x / scale:.2f} {unit}"
    return f"{x:.3g}"


def seconds(x: float) -> str:
    return f"{x:.3f} s" if x >= 0.1 else f"{x * 1e3:.2f} ms"
