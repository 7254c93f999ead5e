"""Work on blocks of rows in threads. The compiled loops release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def run_blocks(
    work: Callable[[int, int], None], n: int, step: int, threads: int | None, fewest: int = 4
) -> None:
    """Call work(first, last) for every block of rows, in threads if there are at least `fewest`."""
    blocks = [(first, min(first + step, n)) for first in range(0, n, step)]
    count = threads or os.cpu_count() or 1
    if count == 1 or len(blocks) < fewest:
        for block in blocks:
            work(*block)
        return
    with ThreadPoolExecutor(count) as pool:
        for _ in pool.map(lambda block: work(*block), blocks):
            pass
