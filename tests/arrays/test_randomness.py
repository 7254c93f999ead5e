"""Random bits are secure, exact where integers are drawn, and never shared.

Chances of a false alarm: `assert_unshared` below 2^-100, comparisons of frequencies (`z_for`)
1e-7 each.
"""

import inspect
import os
import threading
import warnings
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from checks import assert_bernoulli, assert_uncorrelated, must_fail, z_for

import discreet as d
from discreet import encodings
from discreet.arrays import (
    base,
    bits,
    each,
    fixed,
    hits,
    kernels,
    perturb,
    picks,
    randomness,
    ticket,
)
from discreet.arrays.randomness import BitSource, Keystream
from discreet.mechanism import Mechanism

SIZE = 4096


def assert_unshared(streams):
    """No 16 bytes occur twice in any of the streams: by chance that is below 2^-100."""
    blocks = [stream[k : k + 16] for stream in streams for k in range(0, len(stream) - 15, 16)]
    assert len(set(blocks)) == len(blocks)


def taken(stream, size=SIZE):
    buffer = np.empty(size, np.uint8)
    stream.fill(buffer)
    return buffer.tobytes()


def in_children(work, count=2):
    """What work() returns (bytes) in forked children."""
    found = []
    for _ in range(count):
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # a fork beside threads: the child touches none of them
            child = os.fork()
        if child == 0:
            try:
                os.close(read)
                with os.fdopen(write, "wb") as pipe:
                    pipe.write(work())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            found.append(pipe.read())
        os.waitpid(child, 0)
    return found


def test_two_streams_differ_and_a_stream_goes_on():
    streams = [Keystream() for _ in range(4)]
    assert_unshared([taken(s) for s in streams] + [taken(s) for s in streams])


def test_forks_never_share():
    stream = Keystream()
    before = taken(stream)
    found = in_children(lambda: taken(stream), 3)
    assert [len(x) for x in found] == [SIZE] * 3
    assert_unshared([before, *found, taken(stream)])


def test_a_copied_stream_is_seen(monkeypatch):
    """The twin: without the look at the process id, children continue the parent's stream."""
    stream, parent = Keystream(), os.getpid()
    taken(stream)
    monkeypatch.setattr(randomness.os, "getpid", lambda: parent)
    found = in_children(lambda: taken(stream), 2)
    must_fail(assert_unshared, found)
    must_fail(assert_unshared, [found[0], taken(stream)])


MODELS = [("subset", None), ("opt0", None), ("opt0", "ticket"), ("grr", None)]


@pytest.mark.parametrize(("model", "encoding"), MODELS)
def test_forked_processes_send_different_reports(toy, model, encoding):
    """Two of 4 agree in all of 2,000 reports with a chance below 2^-1000."""
    mechanism = d.design(toy, model, encoding=encoding)
    answers = np.zeros(2000, np.int64)
    mechanism.perturb_many(answers[:10])
    found = in_children(lambda: mechanism.perturb_many(answers, threads=1).tobytes(), 3)
    assert len({*found, mechanism.perturb_many(answers).tobytes()}) == 4
    assert len(found[0]) == 2000 * mechanism.report_size


@pytest.mark.parametrize(("model", "encoding"), MODELS)
def test_threads_and_blocks_never_share(toy, monkeypatch, model, encoding):
    """Every block of reports has a stream of its own, used by one thread, and no random bits are
    used twice.
    """
    used, streams = [], []

    class Recorded(Keystream):
        def __init__(self):
            super().__init__()
            streams.append(self)

        def fill(self, buffer):
            super().fill(buffer)
            used.append((id(self), threading.get_ident(), buffer.tobytes()))

    monkeypatch.setattr(perturb, "Keystream", Recorded)
    mechanism = d.design(toy, model, encoding=encoding)
    n = 5 * 65536 + 1
    assert len(mechanism.perturb_many(np.zeros(n, np.int64), threads=4)) == n
    assert len(streams) == 6
    assert len({(stream, thread) for stream, thread, _ in used}) == 6
    assert_unshared([data[:SIZE] for _, _, data in used])


def test_a_reused_key_is_seen(monkeypatch):
    """The twin: the same key and counter for every stream."""
    monkeypatch.setattr(randomness.os, "urandom", lambda size: bytes(size))
    must_fail(assert_unshared, [taken(Keystream()), taken(Keystream())])


@pytest.mark.parametrize(
    "size", [0, 1, 15, 16, 17, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, (1 << 19) + 5]
)
def test_every_byte_of_a_buffer_is_filled(size):
    """A byte that is never written would still be 0 after eight fills; by chance one is with 2^-64
    each.
    """
    stream, seen = Keystream(), np.zeros(size, np.uint8)
    for _ in range(8):
        buffer = np.zeros(size, np.uint8)
        stream.fill(buffer)
        seen |= buffer
    assert seen.all()
    assert len(stream.uint32(size % 100)) == size % 100


def test_bits_are_balanced_and_uncorrelated():
    n = 400_000
    bits = np.unpackbits(Keystream().uint32(n).view(np.uint8)).reshape(n, 32)
    assert_bernoulli(bits.sum(axis=0), n, 0.5, z_for(32))
    assert_uncorrelated(bits, np.full(32, 0.5))
    assert_uncorrelated(np.column_stack((bits[:-1, 0], bits[1:, 0])), [0.5, 0.5])
    tilted = bits.copy()  # the twins: one bit set once in fifty times more, one copied now and then
    tilted[::50, 31] = 1
    must_fail(assert_bernoulli, tilted.sum(axis=0), n, 0.5, z_for(32))
    tilted = bits.copy()
    tilted[::40, 0] = tilted[::40, 31]
    must_fail(assert_uncorrelated, tilted, np.full(32, 0.5))


# ---- uniform integers ----------------------------------------------------------------------------

BOUNDS = [1, 2, 3, 5, 7, 10, 1000, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32]


class Fed(Keystream):
    """A stream that gives chosen 32-bit integers."""

    def __init__(self, values):
        super().__init__()
        self.values = list(values)

    def uint32(self, count):
        head, self.values = self.values[:count], self.values[count:]
        assert len(head) == count
        return np.array(head, dtype=np.uint32)


@pytest.mark.parametrize("bound", BOUNDS)
def test_below_is_exact(bound):
    """Draws below the largest multiple of the bound are kept as they are, each residue equally
    often; others are redrawn.
    """
    limit = 2**32 // bound * bound
    kept = sorted(
        {x for x in (0, 1, bound - 1, bound, bound + 1, limit - bound, limit - 1) if 0 <= x < limit}
    )
    got = Fed(kept).below(np.full(len(kept), bound, np.uint64))
    assert got.tolist() == [x % bound for x in kept]
    refused = sorted({x for x in (limit, limit + 1, 2**32 - 1) if limit <= x < 2**32})
    for bad in refused:
        stream = Fed([bad, bad, kept[-1]])
        assert stream.below(np.array([bound], np.uint64)).tolist() == [kept[-1] % bound]
        assert stream.values == []
    if bound & (bound - 1) == 0:
        assert not refused  # powers of two waste nothing


def test_below_redraws_only_what_was_refused():
    top = 2**32 - 1
    stream = Fed([4, top, 9, top] + [top, 11] + [13])
    assert stream.below(np.array([3, 3, 7, 7], np.uint64)).tolist() == [1, 1, 2, 4]


@pytest.mark.parametrize("bound", [2, 3, 7, 3 * 2**30])
def test_below_in_frequency(bound):
    n = 200_000
    draws = Keystream().below(np.full(n, bound, np.uint64))
    assert draws.max() < bound
    cells = min(
        bound, 3
    )  # for 3 * 2^30 the thirds: a plain modulo would give the first of them twice
    counts = np.bincount(
        (draws * np.uint64(cells) // np.uint64(bound)).astype(int), minlength=cells
    )
    if bound != 7:
        assert_bernoulli(counts, n, 1 / cells, z_for(cells))
    else:
        assert_bernoulli(np.bincount(draws.astype(int), minlength=7), n, 1 / 7, z_for(7))


def test_a_plain_modulo_is_seen():
    n, bound = 200_000, 3 * 2**30
    draws = Keystream().uint32(n).astype(np.uint64) % np.uint64(bound)
    must_fail(
        assert_bernoulli,
        np.bincount((draws // np.uint64(2**30)).astype(int), minlength=3),
        n,
        1 / 3,
        z_for(3),
    )


WRITERS = (
    base.BlockCoder, bits.BitsBlocks, fixed.FixedBlocks, ticket.TicketBlocks, hits.HitsBlocks,
    each.EachBlocks, picks.PicksBlocks,
)  # fmt: skip


def test_there_is_no_seed_on_the_way_to_a_report():
    names = [x.name for x in iter_modules(kernels.__path__, "discreet.arrays.kernels.")]
    path = [perturb, randomness, *map(import_module, names)]
    functions = [
        f
        for module in path
        for f in (getattr(x, "py_func", x) for x in vars(module).values())
        if inspect.isfunction(f) and f.__module__ == module.__name__
    ]
    assert {"draw_below", "draw_words", "draw_tickets"} <= {f.__name__ for f in functions}
    functions += [f for kind in (BitSource, Keystream) for f in vars(kind).values() if callable(f)]
    for writer in WRITERS:
        functions += [f for name, f in vars(writer).items() if name in WRITING]
    functions += [Mechanism.perturb, Mechanism.perturb_many]
    assert len(functions) > 20
    for function in functions:
        names = {name.lower() for name in inspect.signature(function).parameters}
        assert not names & SEEDS, function
    source = inspect.getsource(perturb) + inspect.getsource(randomness)
    source += "".join(inspect.getsource(f) for f in functions)
    assert "np.random" not in source and "import random" not in source
    assert len(encodings.KINDS) == len(WRITERS) - 1  # no writer was forgotten
    drawn = inspect.signature(
        base.BlockCoder.draw
    ).parameters  # the twin: simulation has a generator
    assert set(drawn) & SEEDS == {"rng"}


WRITING = {"write", "write_sets", "_write", "_draw_part", "_own", "_numbers"}
SEEDS = {"seed", "rng", "random_state", "generator", "key", "nonce"}
