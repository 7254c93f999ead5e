"""The paper's data: two generators and three public files. A file that is not the whole one of the
paper is called partial everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.arrays.answers import distinct
from discreet.data.files import Advance
from discreet.errors import DataError
from discreet.paper import fimi
from discreet.paper.fimi import Ints
from discreet.paper.settings import Setup
from discreet.policy.lazy import cached_property


@dataclass(frozen=True)
class Published:
    """A data set of the paper's Table III: its name, records, users and items there, and where it
    is found.
    """

    name: str
    records: int
    users: int
    items: int
    stems: tuple[str, ...] = ()  # names of the file without .dat, the best first
    where: str = ""


_FIMI = "the Frequent Itemset Mining Dataset Repository (FIMI, fimi.uantwerpen.be/data)"
_KAGGLE = (
    'the RentTheRunway part of the "Clothing Fit Dataset for Size Recommendation" (Kaggle, '
    "rmisra): "
    "one line per user, the item_id of the records with a rating, as clothing_rated.dat"
)
PUBLISHED = {
    "power-law": Published("Power-law", 100_000, 100_000, 100),
    "uniform": Published("Uniform", 100_000, 100_000, 1_000),
    "retail": Published("Retail", 908_576, 88_162, 16_470, ("retail",), f"retail.dat of {_FIMI}"),
    "kosarak": Published(
        "Kosarak", 8_019_015, 990_002, 41_270, ("kosarak", "kosarak_first100k"),
        f"kosarak.dat of {_FIMI}",
    ),
    "clothing": Published(
        "Clothing", 192_544, 105_508, 5_850, ("clothing_rated", "clothing"), _KAGGLE
    ),
}  # fmt: skip
SYNTHETIC = ("power-law", "uniform")
# files shown beside the paper's, never instead of one: name of the file, what it is part of
EXTRAS = {
    "kosarak-short": ("kosarak_short_505k", "kosarak"),  # only where the whole Kosarak is not there
    "clothing-all": ("clothing_all", "clothing"),
}
TENFOLD = "kosarak-x10"
CONTENTS = {  # what is in the files that are not the paper's
    "kosarak_first100k": "the first 100,000 users",
    "kosarak_short_505k": "users with at most 5 items",
    "clothing_all": "unrated records too",
}
ENDINGS = (".dat", ".dat.gz", ".dat.xz")


DataFacts = Mapping[str, str | float]  # what a run records about a data set


@dataclass(frozen=True, eq=False)
class Dataset:
    """People and their items: sets as a ragged array, and how often each item is the first of
    someone's.
    """

    key: str
    title: str
    source: str  # the file, or how it was made
    sha256: str
    records: int
    items: Ints
    offsets: Ints
    first: Ints  # single answers: people per item
    partial: str = ""  # how its people or items differ from the paper's, for captions

    @property
    def n(self) -> int:
        """People."""
        return len(self.offsets) - 1

    @property
    def m(self) -> int:
        """Items; those that are nobody's first item belong to the domain too."""
        return len(self.first)

    @cached_property
    def sizes(self) -> Ints:
        """The number of items of each person."""
        return np.diff(self.offsets)

    @cached_property
    def counts(self) -> Ints:
        """People per item, sets."""
        return np.bincount(self.items, minlength=self.m)

    @property
    def facts(self) -> DataFacts:
        """What a run records about its data."""
        mean = round(float(self.sizes.mean()), 3)
        return {
            "title": self.title, "source": self.source, "sha256": self.sha256, "users": self.n,
            "items": self.m, "records": self.records, "mean items per user": mean,
            "partial": self.partial,
        }  # fmt: skip

    def tops(self, ks: Sequence[int], shown: int) -> tuple[int, ...]:
        """The k that the domain allows, the one that is shown (see `top`) always among them."""
        return tuple(sorted({*(k for k in ks if k <= self.m), self.top(shown)}))

    def top(self, k: int) -> int:
        """k, or all items if there are fewer."""
        return min(k, self.m)

    def repeated(self, times: int) -> Dataset:
        """The same people, each `times` times, as a larger survey of the same kind would have."""
        offsets = np.concatenate(([0], np.cumsum(np.tile(self.sizes, times))))
        return Dataset(
            f"{self.key}-x{times}", f"{self.title}, everyone counted {times} times", self.source,
            self.sha256, self.records * times, np.tile(self.items, times), offsets,
            self.first * times, f"{self.partial} Every person is counted {times} times.".strip(),
        )  # fmt: skip


Data = Mapping[str, Dataset]


# ---- generators ----------------------------------------------------------------------------------


def power_law(n: int, m: int, rng: np.random.Generator) -> Ints:
    """Items 0 to m - 1: (1 - U)^(-1/3) - 1, scaled to [1, m] by its maximum, floored (the authors'
    own recipe).
    """
    values = (1 - rng.random(n)) ** (-1 / 3) - 1
    return np.floor(values / values.max() * (m - 1)).astype(np.int64)


def synthetic(key: str, setup: Setup) -> Dataset:
    """Power-law or Uniform data of a seed."""
    paper = PUBLISHED[key]
    n, m, rng = paper.users, paper.items, setup.rng("data", key)
    items = power_law(n, m, rng) if key == "power-law" else rng.integers(0, m, n)
    digest = hashlib.sha256(items.astype("<i8").tobytes()).hexdigest()
    made, first = f"generated, seed {setup.seed}", np.bincount(items, minlength=m)
    return Dataset(key, paper.name, made, digest, n, items, np.arange(n + 1), first)


# ---- files ---------------------------------------------------------------------------------------


def find(folder: Path, stems: tuple[str, ...]) -> Path | None:
    """The first of these data files that is in the folder."""
    paths = (folder / f"{stem}{end}" for stem in stems for end in ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def missing(key: str, folder: Path | None, rest: Iterable[str]) -> DataError:
    """The sentence about a data file that is not there; `rest`: what can be made without it."""
    paper = PUBLISHED[key]
    names = " or ".join(f"{stem}.dat" for stem in paper.stems)
    place = f"{paper.name} needs a folder with {names}; name it with --data"
    if folder:
        place = f"{folder} holds no {names} (.gz, .xz)"
    source = f"the public file is {paper.where}"
    return DataError(f"{place}: {source}; {', '.join(rest)} run without it")


def locate(
    needs: Iterable[str], uses: Iterable[str], folder: Path | None, setup: Setup,
    without: Callable[[str], Iterable[str]],
) -> dict[str, Path]:  # fmt: skip
    """The files of data sets that are needed (raises for the first that is missing), then of those
    that are used where they are there. `without`: what can be made without a data set.
    """
    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder} is not a folder; --data names the folder of the data files")
    paths = {}
    for key in needs:
        path = find(folder, PUBLISHED[key].stems) if folder else None
        if path is None:
            raise missing(key, folder, without(key))
        paths[key] = path
    for key in uses if folder else ():
        path = _optional(key, folder, setup) if folder else None
        if path and key not in paths:
            paths[key] = path
    return paths


def _optional(key: str, folder: Path, setup: Setup) -> Path | None:
    if key in PUBLISHED:
        return find(folder, PUBLISHED[key].stems)
    whole = key == "kosarak-short" and find(folder, ("kosarak",))
    return None if setup.quick or whole else find(folder, EXTRAS[key][:1])


def load(key: str, path: Path, advance: Advance = lambda _: None) -> Dataset:
    """A FIMI file as one of the paper's data sets (or one of the extras)."""
    paper = PUBLISHED[EXTRAS[key][1] if key in EXTRAS else key]
    lines = fimi.read(path, advance)
    labels, items = np.unique(lines.ids, return_inverse=True)
    offsets = np.concatenate(([0], np.cumsum(lines.lengths)))
    first = np.bincount(items[offsets[:-1]], minlength=len(labels))
    sets = distinct(items.astype(np.int64), offsets)
    title, partial = _compare_to_paper(paper, path, len(lines.lengths), len(labels))
    records = len(lines.ids)
    return Dataset(key, title, path.name, lines.sha256, records, *sets, first, partial)


def _compare_to_paper(paper: Published, path: Path, n: int, m: int) -> tuple[str, str]:
    """The title, and for the captions how the file differs from the paper's."""
    if (n, m) == (paper.users, paper.items):
        return paper.name, ""
    kind = CONTENTS.get(path.name.split(".")[0], path.name)
    word = "partial" if n < paper.users or m < paper.items else "another file"
    here, there = f"{n:,} users and {m:,} items", f"{paper.users:,} and {paper.items:,}"
    caption = f"{paper.name} is {word} here ({kind}): {here}; the paper's has {there}."
    return f"{paper.name} ({word}: {kind})", caption
