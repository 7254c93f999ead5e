"""The paper's data: two generators, three public files. What is not the paper's whole file is called partial, everywhere."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError
from discreet.files import Advance, _opened
from discreet.paper.settings import NAMES, Settings
from discreet.perturb import distinct

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Source:
    """A data set of the paper's table: its name, records, users and items there, and where it comes from."""

    name: str
    records: int
    users: int
    items: int
    stems: tuple[str, ...] = ()  # names of the file without .dat, the best first
    where: str = ""
    needed_by: tuple[str, ...] = ()


SOURCES = {
    "power-law": Source("Power-law", 100_000, 100_000, 100),
    "uniform": Source("Uniform", 100_000, 100_000, 1_000),
    "retail": Source(
        "Retail", 908_576, 88_162, 16_470, ("retail",),
        "retail.dat of the Frequent Itemset Mining Dataset Repository (FIMI, fimi.uantwerpen.be/data)", ("fig4", "fig5", "fig6"),
    ),
    "kosarak": Source(
        "Kosarak", 8_019_015, 990_002, 41_270, ("kosarak", "kosarak_first100k"),
        "kosarak.dat of the Frequent Itemset Mining Dataset Repository (FIMI, fimi.uantwerpen.be/data)", ("fig4", "fig5", "fig9"),
    ),
    "clothing": Source(
        "Clothing", 192_544, 105_508, 5_850, ("clothing_rated", "clothing"),
        'the RentTheRunway part of the "Clothing Fit Dataset for Size Recommendation" (Kaggle, rmisra): one line per user, the '
        "item_id of the records with a rating, as clothing_rated.dat", ("fig7", "fig8"),
    ),
}  # fmt: skip
# Files that are used beside the paper's, where they are there: never instead of one.
EXTRAS = {
    "kosarak-short": ("kosarak_short_505k", "kosarak"),  # only where the whole Kosarak is not there
    "clothing-all": ("clothing_all", "clothing"),
}
KINDS = {  # what is in the files that are not the paper's
    "kosarak_first100k": "the first 100,000 users",
    "kosarak_short_505k": "users with at most 5 items",
    "clothing_all": "unrated records too",
}
ENDINGS = (".dat", ".dat.gz", ".dat.xz")


@dataclass(frozen=True, eq=False)
class Dataset:
    """People and their items: sets as a ragged array, and how often each item is the first of someone's."""

    key: str
    title: str
    source: str  # the file, or how it was made
    sha256: str
    records: int
    items: Ints
    offsets: Ints
    first: Ints  # single input: people per item
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
        """How many items everyone has."""
        return np.diff(self.offsets)

    @cached_property
    def counts(self) -> Ints:
        """People per item, set input."""
        return np.bincount(self.items, minlength=self.m)

    def repeated(self, times: int) -> Dataset:
        """The same people, each so many times: what a larger survey of the same kind would hold."""
        offsets = np.concatenate(([0], np.cumsum(np.tile(self.sizes, times))))
        title = f"{self.title}, everyone counted {times} times"
        return Dataset(
            f"{self.key}-x{times}", title, self.source, self.sha256, self.records * times, np.tile(self.items, times), offsets,
            self.first * times, f"{self.partial} Every person is counted {times} times.".strip(),
        )  # fmt: skip


# ---- generators -----------------------------------------------------------------------------------------


def power_law(n: int, m: int, rng: np.random.Generator) -> Ints:
    """Items 0 to m - 1: (1 - U)^(-1/3) - 1, scaled to [1, m] by its maximum, floored (the authors' own recipe)."""
    values = (1 - rng.random(n)) ** (-1 / 3) - 1
    return np.floor(values / values.max() * (m - 1)).astype(np.int64)


def synthetic(key: str, settings: Settings) -> Dataset:
    """Power-law or Uniform data of a seed."""
    source = SOURCES[key]
    n, m, rng = source.users, source.items, settings.rng("data", key)
    items = power_law(n, m, rng) if key == "power-law" else rng.integers(0, m, n)
    digest = hashlib.sha256(items.astype("<i8").tobytes()).hexdigest()
    made = f"generated, seed {settings.seed}"
    return Dataset(
        key, source.name, made, digest, n, items, np.arange(n + 1), np.bincount(items, minlength=m)
    )


# ---- files ----------------------------------------------------------------------------------------------


def find(folder: Path, stems: tuple[str, ...]) -> Path | None:
    """The first of these data files that is in the folder."""
    return next(
        (path for stem in stems for end in ENDINGS if (path := folder / f"{stem}{end}").is_file()),
        None,
    )


def missing(key: str, folder: Path | None) -> DataError:
    """The sentence about a data file that is not there."""
    source = SOURCES[key]
    rest = [name for name in NAMES if name not in source.needed_by]
    names = " or ".join(f"{stem}.dat" for stem in source.stems)
    place = (
        f"{folder} holds no {names} (.gz, .xz)"
        if folder
        else f"{source.name} needs a folder with {names}; name it with --data"
    )
    return DataError(
        f"{place}: the public file is {source.where}; {', '.join(rest)} run without it"
    )


def locate(keys: tuple[str, ...], folder: Path | None) -> dict[str, Path]:
    """The files of these data sets; raises for the first that is missing."""
    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder} is not a folder; --data names the folder of the data files")
    found = {}
    for key in keys:
        path = find(folder, SOURCES[key].stems) if folder else None
        if path is None:
            raise missing(key, folder)
        found[key] = path
    return found


def load(key: str, path: Path, advance: Advance = lambda _: None) -> Dataset:
    """A FIMI file as one of the paper's data sets (or one of the extras)."""
    source = SOURCES[EXTRAS[key][1] if key in EXTRAS else key]
    ids, lengths = _read(path, advance)
    labels, items = np.unique(ids, return_inverse=True)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    first = np.bincount(items[offsets[:-1]], minlength=len(labels))
    sets, set_offsets = distinct(items.astype(np.int64), offsets)
    n, m = len(lengths), len(labels)
    title, partial = _named(source, path, n, m)
    return Dataset(
        key, title, path.name, _sha256(path), len(ids), sets, set_offsets, first, partial
    )


def _named(source: Source, path: Path, n: int, m: int) -> tuple[str, str]:
    """The title, and for the captions how the file differs from the paper's."""
    if (n, m) == (source.users, source.items):
        return source.name, ""
    kind = KINDS.get(path.name.split(".")[0], path.name)
    word = "partial" if n < source.users or m < source.items else "another file"
    differs = f"{n:,} users and {m:,} items; the paper's has {source.users:,} and {source.items:,}"
    return f"{source.name} ({word}: {kind})", f"{source.name} is {word} here ({kind}): {differs}."


def _read(path: Path, advance: Advance) -> tuple[Ints, Ints]:
    """All item ids and the number of them on every line; duplicates on a line are kept."""
    with _opened(
        str(path), path.suffix if path.suffix in (".gz", ".xz") else "", advance
    ) as stream:
        text = stream.read().rstrip() + b"\n"
    if text == b"\n":
        raise DataError(f"{path} is empty; it should hold one line of item ids per person")
    letters = np.frombuffer(text, np.uint8)
    digit = (letters >= ord("0")) & (letters <= ord("9"))
    starts = np.flatnonzero(digit & ~np.concatenate(([False], digit[:-1])))
    ends = np.flatnonzero(letters == ord("\n"))
    lengths = np.diff(np.searchsorted(starts, ends), prepend=0)
    blank = (
        (letters == ord(" "))
        | (letters == ord("\n"))
        | (letters == ord("\r"))
        | (letters == ord("\t"))
    )
    if not (digit | blank).all() or not lengths.all() or _longest(starts, digit) > _DIGITS:
        raise _malformed(path, text)
    return np.fromstring(text, np.int64, sep=" "), lengths


_DIGITS = 18  # of an id that a 64-bit integer certainly holds


def _longest(starts: Ints, digit: Any) -> int:
    """The largest number of digits of an id: each runs to the next place that is no digit."""
    stops = np.flatnonzero(~digit)
    return int((stops[np.searchsorted(stops, starts)] - starts).max())


def _malformed(path: Path, text: bytes) -> DataError:
    """The sentence about the first line that is not one."""
    for number, line in enumerate(text.rstrip().split(b"\n"), 1):
        if not line.strip():
            return DataError(
                f"{path}, line {number} is empty; every line holds the items of one person"
            )
        for token in line.split():
            if not token.isdigit() or len(token) > _DIGITS:
                bad = token.decode("ascii", "backslashreplace")[:40]
                return DataError(
                    f'{path}, line {number}: "{bad}" is not an item id; items are whole numbers'
                )
    return DataError(f"{path} holds a sign that separates nothing; items are separated by blanks")


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def facts(data: Dataset) -> dict[str, Any]:
    """What a run says of its data."""
    return {
        "title": data.title, "source": data.source, "sha256": data.sha256, "users": data.n, "items": data.m,
        "records": data.records, "mean items per user": round(float(data.sizes.mean()), 3), "partial": data.partial,
    }  # fmt: skip
