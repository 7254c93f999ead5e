"""Reports of every encoding, from outside the module: some report, the random words that give it,
and frequencies of many, compared with exact chances.

Mechanisms are their documents here; nothing of discreet is used.
"""

import handmade
import numpy as np
import small
from exhaustive import D, code, groups_of, members
from scipy.stats import beta, binom
from small import chances_of

# A right sampler fails `check_frequencies` with this chance: at most 100 calls in all make 1e-6.
ALARM = 1e-8
MISSED = 1e-9  # of a twin; there are some hundreds


# ---- reports and the draws behind them -----------------------------------------------------------


WHOLE = ("hits", "each")  # encodings that report all of a set, not one item of it


def named_in(document, rows):
    """The part of every row and what it names, rows x m of 0 and 1."""
    whole = document["encoding"]["kind"] in WHOLE
    return (handmade if whole else small).named_in(document, rows)


def some_report(document, rng):
    """A report that anybody may send."""
    if document["encoding"]["kind"] in WHOLE:
        return handmade.some_report(document, rng)
    o = rng.randrange(len(document["parts"]))
    kind, other = document["encoding"]["kind"], document["parts"][o]["other"]
    if kind == "ticket":
        tickets = tickets_of(document)
        return (o * tickets + rng.randrange(tickets)).to_bytes(4, "little")
    named = []
    for group, k in zip(members(document), other, strict=True):
        fixed = kind == "fixed"
        named += rng.sample(group, k) if fixed else [i for i in group if rng.random() < k / D]
    bits = np.zeros(len(groups_of(document)), np.uint8)
    bits[named] = 1
    head = bytes([o]) if len(document["parts"]) > 1 else b""
    return head + np.packbits(bits, bitorder="little").tobytes()


def tickets_of(document):
    """How many tickets a part has."""
    return document["encoding"]["q"] ** (document["encoding"]["t"] + 1)


def words_for(document, items, report):
    """32-bit words with which who has these items sends that report.

    There are some for every answer and every report: that is what privacy means. Of a set the first
    place is sampled, which is its first item, or none; or all of it is reported.
    """
    if document["encoding"]["kind"] in WHOLE:
        return handmade.words_for(document, items, report)
    held = items[0] if items else None
    (o,), (named,) = named_in(document, np.frombuffer(report, np.uint8)[None])
    group = None if held is None else groups_of(document)[held]
    part, parts = document["parts"][o], document["parts"]
    words = [0] if document["padding"] else []
    if len(parts) > 1:
        words.append(sum(p["none"] if group is None else p["chance"][group] for p in parts[:o]))
    if group is not None and part["other"][group]:
        words.append(0 if named[held] else D - 1)
    write = {"fixed": _subsets, "bits": _bits, "ticket": _ticket}[document["encoding"]["kind"]]
    return words + write(document, part, held, named, int.from_bytes(report[-4:], "little"))


def _subsets(document, part, held, named, _):
    """Floyd's algorithm backwards: a place that is wanted is drawn when its turn comes, the earlier
    ones when it is the turn of a place that is not.
    """
    words = []
    for group, k in zip(members(document), part["other"], strict=True):
        others = [i for i in group if i != held] if k else []
        wanted = [place for place, i in enumerate(others) if named[i]]
        start = len(others) - len(wanted)
        early = iter([place for place in wanted if place < start])
        ends = range(start, len(others))
        words += [end if end in wanted else next(early) for end in ends]
    return words


def _bits(document, part, held, named, _):
    of = groups_of(document)
    drawn = [i for i, g in enumerate(of) if i != held and part["other"][g]]
    return [0 if named[i] else D - 1 for i in drawn]


def _ticket(document, part, held, named, number):
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    y = number % tickets_of(document)
    threshold = 0 if held is None else part["other"][groups_of(document)[held]]
    if not threshold:
        return [y]
    first, *others = (y // q**k % q for k in range(t, -1, -1))
    mark = (first + sum(a * b for a, b in zip(others, code(document, held), strict=True))) % q
    return [mark if named[held] else mark - threshold, *others]


# ---- frequencies ---------------------------------------------------------------------------------


def features(document, rows):
    """How often every part came, and in every part every item and every two items, in one list."""
    part, named = named_in(document, rows)
    return _count(document, part, named)


def _count(document, part, named):
    upper = np.triu_indices(named.shape[1])
    found = [np.bincount(part, minlength=len(document["parts"]))]
    for o in range(len(document["parts"])):
        mine = named[part == o].astype(float)
        found.append((mine.T @ mine)[upper])
    return np.concatenate(found)


def expected(document, answer):
    """The chances of the same; exact but for the rounding of doubles."""
    if document["encoding"]["kind"] in WHOLE:
        return handmade.expected(document, answer)
    parts, pairs = chances_of(document, answer)
    upper = np.triu_indices(pairs.shape[1])
    return np.clip(np.concatenate([parts, *(x[upper] for x in pairs)]), 0, 1)


def check_frequencies(found, n, chances):
    """Every count of n draws is one that its chance allows; all together but for ALARM.

    By the tails of the binomial law itself (no normal law: some counts are small) and Bonferroni.
    """
    tail = np.minimum(binom.cdf(found, n, chances), binom.sf(found - 1, n, chances))
    worst = int(np.argmin(tail))
    assert tail[worst] >= ALARM / 2 / len(found), (
        f"entry {worst}: {found[worst]:.0f} of {n} with chance {chances[worst]:.4g}"
    )


def too_small(n, p, comparisons):
    """The largest chance below p that n draws of p do not pass for, but for MISSED."""
    least = binom.ppf(MISSED, n, p)
    return float(beta.ppf(ALARM / 2 / comparisons, least, n - least + 1)) * (1 - 1e-9)


def too_large(n, p, comparisons):
    """The smallest chance above p that n draws of p do not pass for, but for MISSED."""
    return 1 - too_small(n, 1 - p, comparisons)


def linked(document, rows):
    """Counts of the same reports, but in every other one the last item is named as the first is."""
    part, named = named_in(document, rows)
    named = named.copy()
    named[::2, -1] = named[::2, 0]
    return _count(document, part, named)


def moved(document, rows):
    """Counts of the same reports with every item in its neighbour's place."""
    part, named = named_in(document, rows)
    return _count(document, part, np.roll(named, 1, axis=1))
