"""The public parameters that both sides share. A Mechanism cannot exist unless exact.py agrees with it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import exact
from discreet.errors import DesignError, FingerprintError, GuaranteeError, MechanismError, PolicyError
from discreet.exact import D, P
from discreet.policy import Policy, check_padding

if TYPE_CHECKING:
    from discreet.guarantee import Guarantee
    from discreet.tally import Tally

Floats = NDArray[Any]  # of float64

FORMAT = "discreet-mechanism/1"
ENCODINGS = ("bits", "compact")
UNARY_MODELS = ("mixed", "opt0", "opt1", "opt2", "rappor", "oue")
DIRECT_MODELS = ("direct", "grr")
PRIORS = ("uniform", "worst", "given")
MAX_PARTS = 256
MAX_ITEMS = P - 1


@dataclass(frozen=True)
class Part:
    """The probabilities that a share of the participants uses: integers, one per level.

    a = A / 2^32 is the chance of a 1 for the item held, b = B / base for every other item.
    """

    numerator: int  # the share of participants, over 2^32
    A: tuple[int, ...]
    B: tuple[int, ...]
    base: int = D

    @property
    def share(self) -> float:
        """The share of participants who use this part."""
        return self.numerator / D

    @cached_property
    def a(self) -> Floats:
        """The chance of a 1 for the item held, per level."""
        return np.array(self.A) / D

    @cached_property
    def b(self) -> Floats:
        """The chance of a 1 for an item not held, per level."""
        return np.array(self.B) / self.base

    @cached_property
    def u(self) -> Floats:
        """ln(a / b) per level: what a 1 in the item's bit can tell."""
        return np.log(self.a / self.b)

    @cached_property
    def w(self) -> Floats:
        """ln((1 - b) / (1 - a)) per level: what a 0 can tell."""
        return np.log((1 - self.b) / (1 - self.a))

    @cached_property
    def difference(self) -> Floats:
        """a - b without cancellation: the subtraction is done on integers."""
        a, b = np.array(self.A, dtype=np.uint64), np.array(self.B, dtype=np.uint64)
        return (a * np.uint64(self.base) - b * np.uint64(D)) / (D * float(self.base))


@dataclass(frozen=True)
class Matrix:
    """A mapping matrix that respects groups of levels: integers over 2^32 (DESIGN "direct encoding").

    An input of group c is sent as itself with probability diagonal[c] / 2^32, and as a given other item of
    group d with probability off[c][d] / 2^32.
    """

    groups: tuple[int, ...]  # the group of every level
    diagonal: tuple[int, ...]
    off: tuple[tuple[int, ...], ...]

    @cached_property
    def D(self) -> Floats:
        """Probability of sending the item itself, per group."""
        return np.array(self.diagonal) / D

    @cached_property
    def O(self) -> Floats:  # noqa: E743
        """Probability of sending a given other item, by group of the input and of the item."""
        return np.array(self.off) / D


@dataclass(frozen=True)
class Certificate:
    """How good a design is: what was minimised, the value reached and a proven lower bound of any value.

    `lower_bound` is None where none is known; `note` says in words what was done.
    """

    objective: str
    value: float
    lower_bound: float | None
    note: str = ""

    @property
    def gap(self) -> float | None:
        """Relative distance between the value and the lower bound."""
        return None if self.lower_bound is None else max(0.0, 1 - self.lower_bound / self.value)


@dataclass(frozen=True)
class Mechanism:
    """Perturbs answers and states its guarantee; made by `discreet.design` or `Mechanism.load`.

    Formal guarantees, proved in exact arithmetic on construction:

    - for all inputs of levels i and j and every report y, Pr(y | i) <= e^{r_ij} Pr(y | j)  (ID-LDP, Def. 2);
    - with several parts, the same for every part, hence for the whole: the part is drawn independently of the answer;
    - for set input, having or not having an item changes the probability of any report by at most a factor
      e^{max_j r_ij}, which is e^{eps_i} under `min`.
    """

    policy: Policy
    model: str
    encoding: str  # "bits", "compact", or "item" for a direct mechanism
    parts_: tuple[Part, ...] = ()
    matrix: Matrix | None = None
    padding: int | None = None
    prior: str = "uniform"
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        if (self.policy.input == "set") != (self.padding is not None):
            raise DesignError(f'input = "{self.policy.input}" and padding = {self.padding} do not go together')
        if self.direct != (self.encoding == "item") or self.direct == bool(self.parts_):
            raise DesignError("a mechanism has either parts (bits, compact) or a matrix (item)")
        if self.direct and self.padding:
            raise DesignError("a direct mechanism cannot take set input; use mixed or opt0")
        if self.model not in (DIRECT_MODELS if self.direct else UNARY_MODELS):
            raise DesignError(f"model = {self.model!r} does not go with this encoding")
        if len(self.parts_) > MAX_PARTS:
            raise DesignError(f"a mechanism has at most {MAX_PARTS} parts, got {len(self.parts_)}")
        if self.prior not in PRIORS:
            raise DesignError(f"prior = {self.prior!r} must be one of {', '.join(PRIORS)}")
        violation = self.check()
        if violation:
            raise GuaranteeError(violation.sentence, tuple(self.policy.levels[k].name for k in violation.levels), violation.part)

    def check(self) -> exact.Violation | None:
        """The exact check of the guarantee; what it finds cannot be constructed."""
        if self.matrix is not None:
            return exact.check_direct(self.policy, self.matrix.groups, self.matrix.diagonal, self.matrix.off)
        q = P if self.encoding == "compact" else D
        if any(part.base != q for part in self.parts_):
            return exact.Violation(f"b of every part must be over {q}")
        return exact.check_unary(self.policy, [(part.numerator, part.A, part.B) for part in self.parts_], q)

    # ---- what is in it ------------------------------------------------------------------------------

    @property
    def direct(self) -> bool:
        """Whether a report is an item (direct, grr) rather than a vector of bits."""
        return self.matrix is not None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of a unary mechanism."""
        if self.direct:
            raise DesignError(f"a {self.model} mechanism has no parts; use mechanism.matrix")
        return self.parts_

    @property
    def a(self) -> Any:
        """a per level of a mechanism with one part; p of grr."""
        return self._only("a")

    @property
    def b(self) -> Any:
        """b per level of a mechanism with one part; q of grr."""
        return self._only("b")

    def _only(self, name: str) -> Any:
        if self.matrix is not None:
            if self.model != "grr":
                raise DesignError("a direct mechanism has no single a and b; use mechanism.matrix.D and .O")
            return float(self.matrix.D[0] if name == "a" else self.matrix.O[0, 0])
        if len(self.parts_) > 1:
            raise DesignError(f"this mechanism has {len(self.parts_)} parts; use mechanism.parts[k].{name}")
        return getattr(self.parts_[0], name)

    @property
    def m(self) -> int:
        """Number of items."""
        return self.policy.m

    @cached_property
    def level_of(self) -> NDArray[np.int32]:
        """The level of every item."""
        return np.array(self.policy.level_of, dtype=np.int32)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of items of every level."""
        return np.array(self.policy.sizes, dtype=np.int64)

    @property
    def report_size(self) -> int:
        """Bytes of every report."""
        if self.direct:
            return 4
        body = 12 if self.encoding == "compact" else -(-self.m // 8)
        return body + (len(self.parts_) > 1)

    # ---- conveniences: one line each, imported late ---------------------------------------------------

    def expected_mse(self, prior: Any = "uniform") -> float:
        """Expected total MSE / n for shares of participants (`uniform`, `worst`, or given)."""
        from discreet import theory

        return theory.total_mse(self, prior)

    @property
    def worst_case_mse(self) -> float:
        """The largest total MSE / n over all data sets; opt0's objective for one unary part."""
        return self.expected_mse("worst")

    def guarantee(self) -> Guarantee:
        """What is provably promised."""
        from discreet.guarantee import Guarantee

        return Guarantee.of(self)

    def perturb(self, answer: Any) -> bytes:
        """One person's report, with secure randomness: an item (label or index) or a set of items."""
        from discreet import perturb

        return perturb.one(self, answer)

    def perturb_many(self, answers: Any, threads: int | None = None) -> NDArray[np.uint8]:
        """Many people's reports as an n x report_size array, with secure randomness."""
        from discreet import perturb

        return perturb.many(self, answers, threads=threads)

    def tally(self, reports: Any = (), threads: int | None = None) -> Tally:
        """The tally of reports (an array, or a list of bytes)."""
        from discreet.tally import Tally

        return Tally.of(self, reports, threads=threads)

    # ---- file ---------------------------------------------------------------------------------------

    def to_canonical(self) -> dict[str, Any]:
        """Everything in the file but the fingerprint: strings and integers only."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "policy": self.policy.to_canonical(),
            "model": self.model,
            "prior": self.prior,
            "encoding": self.encoding,
            "padding": self.padding or 0,
        }
        if self.matrix:
            document["matrix"] = {
                "groups": list(self.matrix.groups),
                "diagonal": list(self.matrix.diagonal),
                "off": [list(row) for row in self.matrix.off],
            }
        else:
            document["parts"] = [{"share": p.numerator, "a": list(p.A), "b": list(p.B)} for p in self.parts_]
        if self.certificate:
            c = self.certificate
            bound = "" if c.lower_bound is None else repr(float(c.lower_bound))
            document["certificate"] = {
                "objective": c.objective, "value": repr(float(c.value)), "lower_bound": bound, "note": c.note,
            }  # fmt: skip
        return document

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return fingerprint(self.to_canonical())

    def save(self, path: str | Path) -> None:
        """Write the mechanism with its fingerprint, aside first and then renamed."""
        from discreet.files import write_text

        write_text(path, json.dumps({**self.to_canonical(), "fingerprint": self.fingerprint}, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Mechanism:
        """Read, compare the fingerprint, and check the guarantee exactly."""
        return cls.from_document(read_document(path))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Mechanism:
        """From the content of a mechanism file."""
        body = {key: value for key, value in document.items() if key != "fingerprint"}
        try:
            got = fingerprint(body)
        except (UnicodeEncodeError, TypeError, ValueError):
            raise MechanismError("the mechanism holds a text or a number that no mechanism has") from None
        if document.get("fingerprint") != got:
            raise FingerprintError(str(document.get("fingerprint")), got)
        mechanism = cls.from_body(body)
        mechanism.check_written_as(body)
        return mechanism

    def check_written_as(self, body: Mapping[str, Any]) -> None:
        """Raise unless these are the very bytes discreet would write: no other key, no 0.0 or false for a 0."""
        if canonical_json(self.to_canonical()) != canonical_json(body):
            raise MechanismError("the mechanism has keys or values that discreet would not write; it is refused")

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Mechanism:
        """From the content without its fingerprint, which is not compared: for `discreet check`."""
        if body.get("format") != FORMAT:
            raise MechanismError(f'format = "{body.get("format")}" must be "{FORMAT}"')
        encoding: Any = body.get("encoding")
        try:
            policy = Policy.from_canonical(body["policy"])
            padding = check_padding(body["padding"]) if body["padding"] else None
            matrix = Matrix(*_matrix(body["matrix"])) if encoding == "item" else None
            base = {"bits": D, "compact": P, "item": D}[encoding]
            parts = tuple(Part(row["share"], tuple(row["a"]), tuple(row["b"]), base) for row in body.get("parts", ()))
            return cls(policy, body["model"], encoding, parts, matrix, padding, body["prior"], _certificate(body))
        except PolicyError as error:
            raise MechanismError(f"the mechanism's policy is wrong: {error}") from None
        except DesignError as error:
            raise MechanismError(f"the mechanism's pieces do not fit: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise MechanismError(f"the mechanism is not complete: {error!r}") from None


def _matrix(raw: Mapping[str, Any]) -> Iterable[Any]:
    return tuple(raw["groups"]), tuple(raw["diagonal"]), tuple(tuple(row) for row in raw["off"])


def _certificate(body: Mapping[str, Any]) -> Certificate | None:
    if "certificate" not in body:
        return None
    c = body["certificate"]
    if not all(isinstance(c[key], str) for key in ("objective", "value", "lower_bound", "note")):
        raise ValueError("certificate")
    bound = float(c["lower_bound"]) if c["lower_bound"] else None
    return Certificate(c["objective"], float(c["value"]), bound, c["note"])


def canonical_json(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys, no blanks, UTF-8: RFC 8785 restricted to strings, integers, lists and objects."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def fingerprint(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(document)).hexdigest()


def read_document(path: str | Path) -> dict[str, Any]:
    """The raw content of a mechanism file, unchecked."""
    path = Path(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        document = json.loads(raw.decode("utf-8"))
    except FileNotFoundError:
        raise MechanismError(f"{path} does not exist") from None
    except OSError as error:
        raise MechanismError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise MechanismError(f"{path} is not a mechanism file: it is not JSON") from None
    if not isinstance(document, dict) or "policy" not in document:
        raise MechanismError(f'{path} is not a mechanism file; make one with "discreet design"')
    return document


def is_document(path: str | Path) -> bool:
    """Whether a file says that it is a mechanism, true or not."""
    try:
        document = json.loads(Path(path).read_bytes()) if str(path).endswith(".json") else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and str(document.get("format", "")).startswith("discreet-mechanism")
