"""Experiments and pictures on all cores, in separate processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from discreet.data.files import Advance
from discreet.errors import DataError
from discreet.paper import drawing, experiments
from discreet.paper.datasets import Data
from discreet.paper.drawing import Figure
from discreet.paper.experiments import Experiment, Numbers, Row
from discreet.paper.settings import Setup

_T = TypeVar("_T")
_shared: dict[str, Any] = {}  # what a worker process gets at its start


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Processes that share the work; a single worker is this process. Results keep the order of the
    tasks.
    """

    def __init__(self, jobs: int, data: Data, setup: Setup) -> None:
        self.jobs, self.data, self.setup = jobs, data, setup
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        if self.jobs > 1:
            given = (self.data, self.setup)
            self.pool = ProcessPoolExecutor(self.jobs, get_context("spawn"), _begin, given)
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)

    def run(self, tasks: Sequence[Experiment], advance: Advance = lambda _: None) -> list[Row]:
        """The rows of all experiments; they do not depend on how many workers there are."""
        if not self.pool:
            rows = []
            for one in tasks:
                rows += experiments.run(one, self.data[one.data], self.setup)
                advance(1)
            return rows
        order = sorted(range(len(tasks)), key=lambda k: (not tasks[k].shrunk, -tasks[k].repeats))
        results: list[list[Row]] = [[] for _ in tasks]
        with _one_thread_each():
            waiting = {self.pool.submit(_one, tasks[k]): k for k in order}  # the longest first
            for done in as_completed(waiting):
                results[waiting[done]] = _result(done)
                advance(1)
        return [row for rows in results for row in rows]

    def draw(self, wanted: Sequence[tuple[Figure, Numbers]], folder: Path) -> None:
        """Draw figures."""
        if not self.pool:
            for figure, numbers in wanted:
                drawing.draw(figure, numbers, folder)
            return
        for done in [self.pool.submit(drawing.draw, *one, folder) for one in wanted]:
            _result(done)


def _result(done: Future[_T]) -> _T:
    try:
        return done.result()
    except BrokenProcessPool:
        raise DataError(
            "a worker process was ended from outside, perhaps for lack of memory; run fewer "
            "figures at once"
        ) from None


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Make new worker processes do linear algebra on one thread, as there is one per core."""
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _begin(data: Data, setup: Setup) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and stops us
    _shared.update(data=data, setup=setup)


def _one(experiment: Experiment) -> list[Row]:
    data, setup = _shared["data"][experiment.data], _shared["setup"]
    return experiments.run(experiment, data, setup, threads=1)
