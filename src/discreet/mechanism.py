"""The public parameters that both sides share. A Mechanism cannot exist unless exact.py agrees with
it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import encodings, exact, texts
from discreet.encodings import Coder, Encoding
from discreet.errors import (
    DesignError,
    FingerprintError,
    GuaranteeError,
    MechanismError,
    PolicyError,
)
from discreet.exact import D
from discreet.labels import cleaned, is_text, show
from discreet.parts import AnyPart, Floats, fixed
from discreet.policy import Policy, check_padding

if TYPE_CHECKING:
    from discreet.guarantee import Guarantee
    from discreet.tally import Tally
    from discreet.theory import Decoder

FORMAT = "discreet-mechanism/2"
MODEL = "[a-z][a-z0-9]{0,19}"  # a name: how the chances were found changes nothing for anyone
PRIORS = ("uniform", "worst", "given")
_STORY = ("model", "prior", "certificate")  # how it was found: no promise or count depends on it
MAX_PARTS = 256
_DEEPEST = 100  # lists within lists, as in discreet.js: the stack must not end first
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,29})(\.[0-9]{0,29}[1-9])?")
_DIGITS = 12  # of a decimal in the file


@dataclass(frozen=True)
class Certificate:
    """How good a design is: the total MSE / n it reaches at its prior, and a lower bound of any
    mechanism's.

    The bound holds for every mechanism with the same guarantee and every unbiased additive
    estimate; it is None where none was proved, and `note` says why.
    """

    value: float
    lower_bound: float | None
    note: str = ""

    @property
    def gap(self) -> float | None:
        """How far the value is above the lower bound, relative to it."""
        if self.lower_bound is None:
            return None
        if self.lower_bound <= 0:  # a bound that says nothing, unless there is no error at all
            return 0.0 if self.value < 1e-12 else None
        return max(0.0, self.value / self.lower_bound - 1)

    @property
    def sentence(self) -> str:
        """What it says, for people."""
        if self.gap is None:
            return "not certified" + (f" ({self.note})" if self.note else "")
        if self.gap < 5e-7:
            told = "the best possible"
        elif self.gap < 1e-5:
            told = "less than 0.001 % above the best possible"
        else:
            told = f"{_percent(self.gap)} above the best possible"
        return f"{told} for this guarantee and prior" + (f" ({self.note})" if self.note else "")

    def to_canonical(self) -> dict[str, str]:
        """Texts only: plain decimals of at most twelve digits."""
        bound = "" if self.lower_bound is None else _decimal(max(0.0, self.lower_bound))
        if bound and _number(bound) > _number(_decimal(self.value)):  # by the floats' own error
            bound = _decimal(self.value)
        return {"value": _decimal(self.value), "lower_bound": bound, "note": self.note}

    @classmethod
    def from_canonical(cls, raw: Any) -> Certificate:
        """The reverse; raises ValueError on any other spelling."""
        if set(raw) != {"value", "lower_bound", "note"} or not all(
            isinstance(x, str) for x in raw.values()
        ):
            raise ValueError("certificate")
        note = raw["note"]
        if len(note) > 400 or (note and not is_text(note)):
            raise ValueError("note of the certificate")
        value, bound = _number(raw["value"]), None
        if raw["lower_bound"]:
            bound = _number(raw["lower_bound"])
            if bound > value:
                raise ValueError("the certificate claims less error than its own lower bound")
        return cls(value, bound, note)


def _percent(gap: float) -> str:
    return f"{100 * gap:.2g} %" if gap < 0.1 else f"{100 * gap:.1f} %"


def _decimal(x: float) -> str:
    """A plain decimal without exponent, of at most twelve digits."""
    text = format(Decimal(f"{x:.{_DIGITS}g}"), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if _DECIMAL.fullmatch(text) else "0"


def _number(text: str) -> float:
    digits = text.replace(".", "").strip("0")
    if not _DECIMAL.fullmatch(text) or len(digits) > _DIGITS:
        raise ValueError("number of the certificate")
    return float(text)


@dataclass(frozen=True)
class Mechanism:
    """Perturbs answers and states its guarantee; made by `discreet.design` or `Mechanism.load`.

    Formal guarantees, proved in exact arithmetic on construction:

    - for all inputs of levels i and j and every report y, Pr(y | i) <= e^{r_ij} Pr(y | j)  (ID-LDP,
      Def. 2);
    - for set input, having or not having an item changes the probability of any report by at most a
      factor e^{max_j r_ij}, which is e^{eps_i} under `min`; and, unless the policy protects items
      alone, Pr(y | x) <= min(e^{eps_x}, e^{eps_x'}) Pr(y | x') for any two sets under `min`, eps_x
      the paper's budget of a set.
    """

    policy: Policy
    model: str
    encoding: Encoding
    groups: tuple[int, ...]  # of every level
    parts: tuple[Any, ...]  # of Part, or of HitsPart
    shares: tuple[
        int, ...
    ]  # of participants per group (then of empty samples) that the estimates are best for
    padding: int | None = None
    prior: str = "uniform"
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        for name in ("groups", "parts", "shares"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if type(self.policy) is not Policy:
            raise DesignError(f"a mechanism is of a Policy, got {type(self.policy).__name__}")
        kind = encodings.KINDS.get(getattr(self.encoding, "kind", ""))
        if type(self.encoding) is not kind:
            raise DesignError(f"encoding = {show(self.encoding)} must be one of discreet's own")
        if self.policy.pads != (self.padding is not None):
            of_sets = f' with protect = "{self.policy.protect}"' if self.policy.takes_sets else ""
            raise DesignError(
                f'input = "{self.policy.input}"{of_sets} and padding = {self.padding} do not go '
                "together"
            )
        if self.padding is not None:
            check_padding(self.padding)
        if not isinstance(self.model, str) or not re.fullmatch(MODEL, self.model):
            raise DesignError(f"model = {show(self.model)} must be a word of a-z and 0-9, up to 20")
        if self.prior not in PRIORS:
            raise DesignError(f"prior = {show(self.prior)} must be one of {', '.join(PRIORS)}")
        if not 1 <= len(self.parts) <= MAX_PARTS:
            raise DesignError(f"a mechanism has 1 to {MAX_PARTS} parts, got {len(self.parts)}")
        self._check_parts()
        problem = self.encoding.problem(self.m, len(self.parts)) or self.encoding.misfit(self)
        if problem:
            raise DesignError(problem)
        violation = self.check()
        if violation:
            names = tuple(self.policy.levels[self.groups.index(g)].name for g in violation.groups)
            raise GuaranteeError(violation.sentence, names, violation.part)
        self._check_shares()

    def _check_parts(self) -> None:
        """Raise unless every part is what its numbers give with this policy and encoding: the check
        must not take bases, groups or a prime from whoever made the part.
        """
        for part in self.parts:
            try:
                expected = self.encoding.part(part.document(), self.bases, self.groups)
            except (AttributeError, KeyError, TypeError, ValueError):
                expected = None
            if type(part) is not type(expected) or part != expected:
                raise DesignError(
                    f'a part is not one of this policy and the encoding "{self.encoding.kind}": '
                    "its bases, groups or numbers are of another mechanism"
                )

    def _check_shares(self) -> None:
        wanted = len(self.group_sizes) + self.policy.takes_sets
        whole = len(self.shares) == wanted and all(type(x) is int and x >= 0 for x in self.shares)
        if not whole or sum(self.shares) != D:
            raise DesignError(
                f"shares must be {wanted} whole numbers that sum to 2^32, one per group of levels"
            )

    def check(self) -> exact.Violation | None:
        """The exact check of the guarantee; what it finds cannot be constructed."""
        return self.encoding.check(self.policy, self.groups, self.parts)

    def differences(self, policy: Policy) -> list[str]:
        """Sentences that name everything in which this is not the mechanism of a policy; empty when
        the promise is the same.
        """
        return policy.differences(replace(self.policy, padding=self.padding))

    def certified(self, certificate: Certificate) -> Mechanism:
        """The same mechanism with a certificate; its numbers were checked already."""
        other = copy.copy(self)
        # as the file will say it: what was saved and loaded is equal to what was designed
        told = Certificate.from_canonical(certificate.to_canonical())
        object.__setattr__(other, "certificate", told)
        return other

    # ---- what is in it ---------------------------------------------------------------------------

    @property
    def m(self) -> int:
        """Number of items."""
        return self.policy.m

    @property
    def a(self) -> Floats:
        """The paper's a per level: the chance of a 1 for the item held."""
        return self._only().own

    @property
    def b(self) -> Floats:
        """The paper's b per level: the chance of a 1 for any other item."""
        return self._only().other

    def _only(self) -> AnyPart:
        if len(self.parts) > 1:
            raise DesignError(
                f"this mechanism has {len(self.parts)} parts, so no single a and b; "
                "use mechanism.parts[k].chance, .own and .other"
            )
        return self.parts[0]

    @cached_property
    def level_of(self) -> NDArray[np.int32]:
        """The level of every item."""
        return fixed(np.array(self.policy.level_of, dtype=np.int32))

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """The group of every item."""
        return fixed(np.array(self.groups, dtype=np.int64)[self.level_of])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of items of every level."""
        return fixed(np.array(self.policy.sizes, dtype=np.int64))

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of items of every group."""
        return fixed(np.bincount(self.groups, weights=self.sizes).astype(np.int64))

    @cached_property
    def bases(self) -> tuple[int, ...]:
        """What `other` of every group is a numerator over."""
        return bases(self.encoding, self.groups, self.policy)

    @property
    def report_size(self) -> int:
        """Bytes of every report."""
        return self.encoding.report_size(self.m, len(self.parts), self.padding)

    @property
    def scale(self) -> int:
        """What a count of reported items is multiplied by: the padding, where one item of a set is
        sampled.
        """
        return self.padding if self.padding and self.encoding.samples else 1

    def counted(self, k: Any) -> Any:
        """What each item of a set of k items is counted with: 1 up to the padding, then less."""
        return np.minimum(1, self.padding / np.maximum(k, 1)) if self.padding else np.ones_like(k)

    @cached_property
    def coder(self) -> Coder:
        """Writes, refuses, reads and counts reports."""
        return self.encoding.coder(self)

    @cached_property
    def decoder(self) -> Decoder:
        """The scores that turn a tally into counts, and their variance."""
        from discreet.theory import Decoder

        return Decoder.of(self)

    # ---- conveniences: one line each, imported late ----------------------------------------------

    def expected_mse(self, prior: Any = "uniform") -> float:
        """Expected total MSE / n for shares of participants (`uniform`, `worst`, or given)."""
        from discreet import theory

        return theory.total_mse(self, prior)

    @property
    def worst_case_mse(self) -> float:
        """The largest total MSE / n over all data sets (for sets the variance, without
        undercounting); opt0's objective for one part of independent bits.
        """
        return self.expected_mse("worst")

    def guarantee(self) -> Guarantee:
        """What is provably promised."""
        from discreet.guarantee import Guarantee

        return Guarantee.of(self)

    def perturb(self, answer: Any) -> bytes:
        """One person's report, with secure randomness: an item (label or index) or a
        set of items.
        """
        from discreet import perturb

        return perturb.one(self, answer)

    def perturb_many(
        self, answers: Any, threads: int | None = None, indices: bool = False
    ) -> NDArray[np.uint8]:
        """Many people's reports as an n x report_size array, with secure randomness. Whole numbers
        are indices; where labels look like whole numbers, only if `indices` says so.
        """
        from discreet import perturb

        return perturb.many(self, answers, threads, indices)

    def tally(self, reports: Any = (), counts: Any = None, threads: int | None = None) -> Tally:
        """The tally of reports (an array, or a list of bytes; tickets also as whole numbers); with
        `counts` every one stands for so many.
        """
        from discreet.tally import Tally

        return Tally.of(self, reports, counts, threads)

    def _repr_html_(self) -> str:
        from discreet import notebook

        return notebook.mechanism(self)

    # ---- file ------------------------------------------------------------------------------------

    def to_canonical(self) -> dict[str, Any]:
        """Everything in the file but the fingerprint: strings and integers only."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "policy": self.policy.to_canonical(),
            "model": self.model,
            "prior": self.prior,
            "encoding": self.encoding.document(),
            "padding": self.padding or 0,
            "groups": list(self.groups),
            "shares": list(self.shares),
            "parts": [part.document() for part in self.parts],
        }
        if self.certificate:
            document["certificate"] = self.certificate.to_canonical()
        return document

    def to_document(self) -> dict[str, Any]:
        """The content of the mechanism file."""
        return {**self.to_canonical(), "fingerprint": self.fingerprint}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal, of all that promise and counts depend on:
        a word about the design would be enough to give everybody a fingerprint of her own.
        """
        return fingerprint(self.to_canonical())

    def save(self, path: str | Path) -> None:
        """Write the mechanism with its fingerprint, aside first and then renamed."""
        from discreet.files import write_text

        write_text(path, json.dumps(self.to_document(), ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Mechanism:
        """Read, compare the fingerprint, and check the guarantee exactly."""
        return cls.from_document(read_document(path))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Mechanism:
        """From the content of a mechanism file."""
        body = {key: value for key, value in document.items() if key != "fingerprint"}
        refuse_strange(body)
        got = fingerprint(body)
        if document.get("fingerprint") != got:
            raise FingerprintError(cleaned(str(document.get("fingerprint"))), got)
        mechanism = cls.from_body(body)
        mechanism.check_written_as(body)
        return mechanism

    def check_written_as(self, body: Mapping[str, Any]) -> None:
        """Raise unless these are the very bytes discreet would write: no other key, no false for a
        0.
        """
        if canonical_json(self.to_canonical()) != canonical_json(body):
            raise MechanismError(
                "the mechanism has keys or values that discreet would not write; it is refused"
            )

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Mechanism:
        """From the content without its fingerprint, which is not compared: for `discreet check`."""
        if body.get("format") != FORMAT:
            raise MechanismError(f'format = {show(body.get("format"))} must be "{FORMAT}"')
        try:
            policy = Policy.from_canonical(body["policy"])
            padding = check_padding(body["padding"]) if body["padding"] else None
            encoding = encodings.from_document(body["encoding"])
            groups = tuple(body["groups"])
            over = bases(encoding, groups, policy)
            parts = tuple(encoding.part(row, over, groups) for row in body["parts"])
            certificate = (
                Certificate.from_canonical(body["certificate"]) if "certificate" in body else None
            )
            return cls(
                policy,
                body["model"],
                encoding,
                groups,
                parts,
                tuple(body["shares"]),
                padding,
                body["prior"],
                certificate,
            )
        except PolicyError as error:
            raise MechanismError(f"the mechanism's policy is wrong: {error}") from None
        except DesignError as error:
            raise MechanismError(f"the mechanism's pieces do not fit: {error}") from None
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            IndexError,
        ) as error:
            raise MechanismError(f"the mechanism is not complete: {error!r}") from None


def bases(encoding: Encoding, groups: tuple[int, ...], policy: Policy) -> tuple[int, ...]:
    """What `other` of every group is a numerator over."""
    count = exact.count_groups(policy, groups)
    if count is None:
        raise DesignError("the groups do not give every level a group, numbered as they appear")
    sizes = [0] * count
    for group, size in zip(groups, policy.sizes, strict=True):
        sizes[group] += size
    return tuple(encoding.base(size) for size in sizes)


# ---- canonical JSON ------------------------------------------------------------------------------


def canonical_json(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys, no blanks, UTF-8: RFC 8785 restricted to strings, integers, lists and
    objects.
    """
    try:
        text = json.dumps(
            document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        raise MechanismError(
            "the mechanism holds a text or a number that no mechanism has"
        ) from None


def fingerprint(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON without `model`, `prior` and `certificate`, in hexadecimal."""
    covered = {key: value for key, value in document.items() if key not in _STORY}
    return hashlib.sha256(canonical_json(covered)).hexdigest()


def read_bytes(raw: bytes) -> dict[str, Any]:
    """The content of a mechanism file, as every language reads it; its values are validated
    later.
    """
    try:
        document = texts.read_document(raw)
    except (ValueError, RecursionError) as error:
        why = f": {cleaned(str(error))}" if "twice" in str(error) else ""
        raise MechanismError(f"this is not a mechanism file, which is JSON{why}") from None
    if not isinstance(document, dict):
        raise MechanismError("this is not a mechanism file, which is a JSON object")
    return document


def refuse_strange(value: Any, depth: int = _DEEPEST) -> None:
    """Raise MechanismError unless there are only texts, whole numbers below 2^53, lists and objects
    in it, and not too many of them within each other.
    """
    if not depth and isinstance(value, dict | list):
        raise MechanismError(f"the mechanism is nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            refuse_strange(key, depth - 1)
            refuse_strange(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            if type(inner) is not int or abs(inner) >= 2**53:
                refuse_strange(inner, depth - 1)
    elif (type(value) is int and abs(value) >= 2**53) or not isinstance(value, str | int | None):
        raise MechanismError(f"the mechanism holds {show(value)}, which no mechanism does")


def read_document(path: str | Path) -> dict[str, Any]:
    """The raw content of a mechanism file, unchecked."""
    path = Path(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except FileNotFoundError:
        raise MechanismError(f"{path} does not exist") from None
    except OSError as error:
        raise MechanismError(f"{path} cannot be read: {error.strerror}") from None
    try:
        document = read_bytes(raw)
    except MechanismError as error:
        if b"[[level]]" in raw:
            raise MechanismError(
                f"{path} is a policy; make a mechanism of it with: discreet design {path} -o "
                "mechanism.json"
            ) from None
        raise MechanismError(f"{path}: {error}") from None
    if "policy" not in document:
        raise MechanismError(f'{path} is not a mechanism file; make one with "discreet design"')
    return document


def is_document(path: str | Path) -> bool:
    """Whether a file says that it is a mechanism, true or not."""
    try:
        document = json.loads(Path(path).read_bytes()) if str(path).endswith(".json") else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and str(document.get("format", "")).startswith(
        "discreet-mechanism"
    )
