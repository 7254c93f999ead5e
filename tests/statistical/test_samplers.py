"""The real samplers, secure randomness included: every bit, every pair of bits, every model and encoding; each with its twin."""

from functools import cache

import numpy as np
import pytest
from checks import assert_bernoulli, assert_mean, assert_variance, detectable, must_fail, z_for

import discreet as d
from discreet import perturb, randomness, report, theory
from discreet.exact import P

UNARY = ("mixed", "opt0", "opt1", "opt2", "rappor", "oue")
EPS = (1.0, 1.2, 2.0)


@cache
def mechanism_of(model, encoding=None, kind="single", m=11):
    """Levels whose items are not neighbours: 1, 2, 0, 0, 1, 2, ..."""
    budgets = {f"i{k}": EPS[(k * k + 1) % 3] if k % 4 else EPS[2] for k in range(m)}
    budgets["i0"] = EPS[0]
    policy = d.Policy.from_budgets(budgets, input=kind)
    return d.design(policy, model, encoding=encoding, padding=2 if kind == "set" else None)


def inputs(kind, m):
    """Answers to try, as sets: the first and the last item, pairs, none, more than the padding."""
    if kind == "single":
        return [{0}, {1}, {m // 2}, {m - 1}]
    return [set(), {0}, {m - 1}, {0, m - 1}, {1, 2, m // 2, m - 1}]


def reports_of(mechanism, answers, each):
    """Reports of `each` people per answer, as rows, in the order of the answers."""
    many = [x for answer in answers for x in [sorted(answer)] * each]
    if mechanism.padding is None:
        return mechanism.perturb_many(np.array([x for (x,) in many]))
    offsets = np.concatenate(([0], np.cumsum([len(x) for x in many])))
    return mechanism.perturb_many((np.array([i for x in many for i in x]), offsets))


def bits_of(mechanism, rows):
    """The part and the bits of every report, decoded apart from the tally."""
    part, body = report.split(mechanism, rows)
    if mechanism.encoding == "bits":
        return part, np.unpackbits(body, axis=1, bitorder="little")[:, : mechanism.m].astype(
            np.uint8
        )
    s, t, r = np.ascontiguousarray(body).view("<u4").astype(np.int64).T
    thresholds = np.array([p.B for p in mechanism.parts])[:, mechanism.level_of]
    columns = [
        (s + t * c % P + r * (c * c % P) % P) % P < thresholds[part, c - 1]
        for c in range(1, mechanism.m + 1)
    ]
    return part, np.stack(columns, axis=1).astype(np.uint8)


class Expected:
    """Per part, what the bits of someone with this answer are: sampled at each of its items with chance pi."""

    def __init__(self, mechanism, answer, k, shift=0.0):
        part, level_of = mechanism.parts[k], mechanism.level_of
        self.a, self.b = part.a[level_of] + shift, part.b[level_of] + shift
        self.pi = np.zeros(mechanism.m)
        self.pi[sorted(answer)] = 1 / max(len(answer), mechanism.padding or 1) if answer else 0
        self.mean = self.b + (self.a - self.b) * self.pi

    def pairs(self):
        """Mean and variance of (y_j - mean_j)(y_k - mean_k): given the sampled item the bits are independent."""
        up = (self.a - self.b) * self.pi
        covariance = -np.outer(up, up)
        lack, hold = (p * (1 - self.mean) ** 2 + (1 - p) * self.mean**2 for p in (self.b, self.a))
        gain = self.pi * (hold - lack)
        second = (
            np.outer(lack, lack) + np.outer(gain, lack) + np.outer(lack, gain)
        )  # two bits are never both the sampled one
        return covariance, second - covariance**2


def check_bits(mechanism, answers, part, bits, shift=0.0):
    """Every bit of every answer and part has its frequency, the held ones and the others."""
    each, z = len(bits) // len(answers), z_for(len(answers) * len(mechanism.parts) * mechanism.m)
    for row, answer in enumerate(answers):
        for k in range(len(mechanism.parts)):
            mine = bits[row * each : (row + 1) * each][part[row * each : (row + 1) * each] == k]
            if len(mine) > 1000:  # a part of a small share: seen with m = 11
                assert_bernoulli(
                    mine.sum(axis=0), len(mine), Expected(mechanism, answer, k, shift).mean, z
                )


def check_pairs(mechanism, answers, part, bits):
    """Every two bits have the covariance of independent bits given the sampled item: none for a single item."""
    m, each = mechanism.m, len(bits) // len(answers)
    off, variance = np.zeros((m, m)), np.zeros((m, m))
    for row, answer in enumerate(answers):
        for k in range(len(mechanism.parts)):
            mine = bits[row * each : (row + 1) * each][part[row * each : (row + 1) * each] == k]
            expected = Expected(mechanism, answer, k)
            covariance, spread = expected.pairs()
            residual = mine - expected.mean
            off += residual.T @ residual - len(mine) * covariance
            variance += len(mine) * spread
    score = np.abs(off / np.sqrt(variance))[np.triu_indices(m, 1)]
    assert score.max() <= z_for(len(score)), (
        f"a pair of bits is off by {score.max():.2f} standard errors"
    )


SETTINGS = [
    (model, encoding, kind)
    for model in UNARY
    for encoding in ("bits", "compact")
    for kind in ("single", "set")
]


@pytest.mark.parametrize("m", [11, 70])
@pytest.mark.parametrize(("model", "encoding", "kind"), SETTINGS)
def test_every_bit_and_every_pair_of_bits(model, encoding, kind, m):
    mechanism = mechanism_of(model, encoding, kind, m)
    answers = inputs(kind, m)
    each = 20_000 if m == 11 else 6000
    part, bits = bits_of(mechanism, reports_of(mechanism, answers, each))
    n = len(bits)
    shares = np.array([p.share for p in mechanism.parts])
    assert_bernoulli(np.bincount(part, minlength=len(shares)), n, shares, z_for(len(shares)))
    check_bits(mechanism, answers, part, bits)
    check_pairs(mechanism, answers, part, bits)
    # the twins: probabilities shifted by what the draws can see, bits in another place, a bit that depends on another
    most = max(np.bincount(part[k * each : (k + 1) * each]).max() for k in range(len(answers)))
    d_ = float(detectable(most, 0.5, z_for(len(answers) * len(shares) * m)))
    must_fail(check_bits, mechanism, answers, part, bits, d_)
    must_fail(check_bits, mechanism, answers, part, bits, -d_)
    must_fail(check_bits, mechanism, answers, part, np.roll(bits, 1, axis=1))
    linked = bits.copy()
    linked[::4, -1] = linked[::4, 0]
    must_fail(check_pairs, mechanism, answers, part, linked)
    if (
        kind == "single"
    ):  # the last bit sent as it is: for years this was the bug of a well-known library
        plain = bits.copy()
        plain[:, -1] = np.repeat([m - 1 in x for x in answers], each)
        must_fail(check_bits, mechanism, answers, part, plain)


def test_wrong_shares_of_parts_are_seen():
    mechanism = mechanism_of("mixed", "bits")
    assert len(mechanism.parts) > 1
    n = 40_000
    part, _ = bits_of(mechanism, reports_of(mechanism, [{0}], n))
    share = mechanism.parts[0].share
    shift = float(detectable(n, share))
    for sign in (-1, 1):
        must_fail(assert_bernoulli, (part == 0).sum(), n, share + sign * shift)


@pytest.mark.parametrize("m", [2, 11, 70])
@pytest.mark.parametrize("model", ["direct", "grr"])
def test_every_item_sent(model, m):
    mechanism = mechanism_of(model, m=m)
    matrix, groups = mechanism.matrix, np.array(mechanism.matrix.groups)[mechanism.level_of]
    answers, n = sorted({0, 1, m // 2, m - 1}), 60_000
    for x in answers:
        sent = np.bincount(mechanism.perturb_many(np.full(n, x)).view("<u4")[:, 0], minlength=m)
        expected = matrix.O[groups[x], groups]
        expected[x] = matrix.D[groups[x]]
        z = z_for(m * len(answers))
        assert_bernoulli(sent, n, expected, z)
        moved = (
            expected.copy()
        )  # the twin: a little more for the item itself, a little less for the last other
        shift = float(detectable(n, expected[x], z))
        moved[x] += shift
        must_fail(assert_bernoulli, sent, n, moved, z)
        must_fail(assert_bernoulli, np.roll(sent, 1), n, expected, z)


@pytest.mark.parametrize("ell", [1, 2, 5])
def test_sampled_items(ell):
    n, x = 60_000, np.array([2, 3, 5, 7])
    for size in (0, 1, 2, 4):
        items, offsets = np.tile(x[:size], n), np.arange(n + 1) * size
        held = perturb.sample(perturb.Keystream(), items, offsets, ell)
        got = np.bincount(held + 1, minlength=9)
        chance = np.zeros(9)
        chance[x[:size] + 1] = 1 / max(size, ell)
        chance[0] = max(0.0, 1 - size / max(size, ell))
        assert_bernoulli(got, n, chance, z_for(9))
        if size:  # the twin: the first item a little too rarely, a dummy instead
            other, shift = chance.copy(), max(0.02, float(detectable(n, chance[3], z_for(9))))
            other[3] -= shift
            other[0] += shift
            must_fail(assert_bernoulli, got, n, other, z_for(9))


# ---- nobody's randomness is used twice --------------------------------------------------------------------


def check_halves(mechanism, rows):
    """The first and the second half of the people, who gave the same answer, agree no more often than by chance."""
    half = len(rows) // 2
    if mechanism.direct:
        first, second = (rows[s].view("<u4")[:, 0] for s in (slice(0, half), slice(half, None)))
        c = mechanism.matrix.groups[mechanism.level_of[0]]
        p = np.append(
            mechanism.matrix.O[c, np.array(mechanism.matrix.groups)[mechanism.level_of]][1:],
            mechanism.matrix.D[c],
        )
        assert_bernoulli((first == second).sum(), half, (p**2).sum(), z_for(1))
        return
    part, bits = bits_of(mechanism, rows)
    same = part[:half] == part[half:]
    p = np.stack([Expected(mechanism, {0}, k).mean for k in range(len(mechanism.parts))])[
        part[:half][same]
    ]
    agree = (bits[:half] == bits[half:])[same]
    q = p**2 + (1 - p) ** 2
    score = (agree - q).sum(axis=0) / np.sqrt((q * (1 - q)).sum(axis=0))
    assert np.abs(score).max() <= z_for(mechanism.m), (
        f"people agree by {np.abs(score).max():.1f} standard errors too often"
    )


@pytest.mark.parametrize(
    ("model", "encoding"),
    [("direct", None), ("opt0", "bits"), ("opt0", "compact"), ("mixed", "bits")],
)
def test_people_in_different_blocks_are_independent(model, encoding, monkeypatch):
    mechanism, n = mechanism_of(model, encoding), 4 * 65536
    answers = np.zeros(n, np.int64)
    check_halves(mechanism, mechanism.perturb_many(answers, threads=2))
    monkeypatch.setattr(
        randomness.os, "urandom", lambda size: bytes(size)
    )  # the twin: every block draws from the same key
    must_fail(check_halves, mechanism, mechanism.perturb_many(answers, threads=2))


# ---- encodings and the exact simulation agree ---------------------------------------------------------------


def estimates(mechanism, people, repeats):
    """Estimates of `repeats` surveys of the same people, through real reports."""
    n = len(people)
    if mechanism.padding is None:
        rows = mechanism.perturb_many(np.tile([x for (x,) in people], repeats))
    else:
        lengths = np.tile([len(x) for x in people], repeats)
        items = np.tile([i for x in people for i in sorted(x)], repeats)
        rows = mechanism.perturb_many((items, np.concatenate(([0], np.cumsum(lengths)))))
    return np.stack(
        [
            mechanism.tally(rows[k * n : (k + 1) * n], threads=1).estimate().counts
            for k in range(repeats)
        ]
    )


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        *((model, kind) for model in UNARY for kind in ("single", "set")),
        ("direct", "single"),
        ("grr", "single"),
    ],
)
def test_reports_and_simulation_have_the_mean_and_variance_of_theory(model, kind):
    m, n, repeats = 11, 600, 300
    people = [{k % 4} for k in range(n // 2)] + [{m - 1}] * (n // 2)
    if kind == "set":
        people = [set(), {0, 1, m - 1}, {0}, {1, 3}, {m - 1}, {0, m - 1}] * (n // 6)
    truth = np.array([sum(k in x for x in people) for k in range(m)])
    seen = {}
    for encoding in ("bits", "compact") if model in UNARY else (None,):
        mechanism = mechanism_of(model, encoding, kind)
        if kind == "set":
            error = theory.set_error(mechanism, [sorted(x) for x in people])
            mean, variance = truth + error.bias, error.variance
            simulated = d.simulate(people, mechanism, repeats=repeats, seed=5).counts
        else:
            mean, variance = truth, n * theory.item_variance(mechanism, truth / n)
            simulated = d.simulate(truth, mechanism, repeats=repeats, seed=5).counts
        seen[encoding] = estimates(mechanism, people, repeats)
        for values in (seen[encoding], simulated):
            assert_mean(values, mean, variance, z_for(m))
            assert_variance(values, variance, z_for(m))
            total = ((values - mean) ** 2).sum(axis=1)
            assert_mean(
                total, variance.sum(), total.var(ddof=1), 7
            )  # skewed, and its spread is measured: 7, not 5
        must_fail(
            assert_mean,
            seen[encoding] + (z_for(m) + 5) * np.sqrt(variance / repeats),
            mean,
            variance,
            z_for(m),
        )
        must_fail(
            assert_variance, seen[encoding], variance / (1 + 16 * np.sqrt(2 / repeats)), z_for(m)
        )
    if len(seen) == 2:
        first, second = seen["bits"], seen["compact"]
        assert_mean(first - second, 0, first.var(axis=0) + second.var(axis=0), z_for(m) + 0.2)
