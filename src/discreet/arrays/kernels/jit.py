"""How the kernels are compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar, cast

import numba
from numba.core import event

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile a function when it is first called.

    The machine code is kept for other processes: beside the package, in NUMBA_CACHE_DIR, or in the
    user's home. A service that can write to none of these compiles in every process.
    """
    try:
        made = numba.njit(cache=True, nogil=True, boundscheck=False)(kernel)
    except RuntimeError:  # "no locator available": there is no folder to write to
        made = numba.njit(nogil=True, boundscheck=False)(kernel)
    return cast(Kernel, made)


class Announcer(event.Listener):
    """Says once, on a terminal, that loops are being compiled: the wait is not a hang."""

    silent = False

    def on_start(self, event: event.Event) -> None:
        """Called before a loop is compiled; not when its machine code is loaded."""
        if not self.silent and sys.stderr.isatty():
            print("compiling once, some seconds …", file=sys.stderr, flush=True)
        self.silent = True

    def on_end(self, event: event.Event) -> None:
        """Called after a loop is compiled."""


event.register("numba:compile", Announcer())  # type: ignore[no-untyped-call]
