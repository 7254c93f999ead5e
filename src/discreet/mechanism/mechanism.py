"""The public parameters that both sides share. A Mechanism cannot exist unless `check/` agrees
with it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, overload

from discreet.check import exact
from discreet.check.certificate import Certificate
from discreet.check.document import Fingerprinted, read_document
from discreet.check.parts import AnyPart
from discreet.encodings import Coder, Encoding
from discreet.errors import GuaranteeError, MechanismError
from discreet.mechanism.body import read_body, write_body
from discreet.mechanism.shape import check_shape, check_shares, denominators, group_sizes
from discreet.policy import Policy
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.arrays.tables import Arrays
    from discreet.arrays.tally import Tally
    from discreet.arrays.types import Answers, Bytes, Floats, Ints, Prior, Reports
    from discreet.policy.types import Answer, JsonObject
    from discreet.promises.guarantee import Guarantee

    Items = Iterable[str | int] | None  # labels or indices; None: all


# More than 15 public names: nine are fields; the verbs are one line each, so that people find all
# they can do with a mechanism in one place.
@dataclass(frozen=True)
class Mechanism(Fingerprinted):
    """Perturbs answers and states its guarantee; made by `discreet.design` or `Mechanism.load`.

    >>> from discreet import Policy, design
    >>> policy = Policy.from_levels([("serious", "ln(4)", ["HIV"]),
    ...                              ("common", "ln(6)", ["flu", "cold", "cough"])])
    >>> mechanism = design(policy)

    Formal guarantees, proved in exact arithmetic on construction:

    - for all inputs of levels i and j and every report y, Pr(y | i) <= e^{r_ij} Pr(y | j)  (ID-LDP,
      Def. 2);
    - for sets, having or not having an item changes the probability of any report by at most a
      factor e^{max_j r_ij}, which is e^{eps_i} under `min`; and, unless the policy protects items
      alone, Pr(y | x) <= min(e^{eps_x}, e^{eps_x'}) Pr(y | x') for any two sets under `min`, eps_x
      the paper's budget of a set.
    """

    title: ClassVar[str] = "mechanism"

    policy: Policy
    model: str
    encoding: Encoding
    groups: tuple[int, ...]  # of every level
    parts: tuple[AnyPart, ...]
    # of participants per group (then of empty samples) that the estimates are best for
    shares: tuple[int, ...]
    padding: int | None = None
    prior: str = "uniform"
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        for name in ("groups", "parts", "shares"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_shape(self)
        violation = self.check()
        if violation:
            names = tuple(self.policy.levels[self.groups.index(g)].name for g in violation.groups)
            raise GuaranteeError(violation.sentence, names, violation.part)
        check_shares(self)

    def check(self) -> exact.Violation | None:
        """The exact check of the guarantee, once more: None, since a mechanism that fails it cannot
        be made.

        >>> mechanism.check() is None
        True
        """
        return self.encoding.check(self.policy, self.groups, self.parts)

    def differences(self, policy: Policy) -> list[str]:
        """One sentence per difference from a policy; empty if the promise is the same.

        >>> mechanism.differences(policy)
        []
        """
        return policy.differences(replace(self.policy, padding=self.padding))

    def certified(self, certificate: Certificate) -> Mechanism:
        """The same mechanism with a certificate; its numbers were checked already.

        >>> mechanism.certified(Certificate(4.0, 3.0)).certificate.gap
        0.33333333333333326
        """
        other = copy.copy(self)
        # rounded as the file will say it, so that what was designed equals what is loaded
        rounded = Certificate.from_canonical(certificate.to_canonical())
        object.__setattr__(other, "certificate", replace(rounded, proof=certificate.proof))
        return other

    # ---- what is in it ---------------------------------------------------------------------------

    @property
    def m(self) -> int:
        """The number of items.

        >>> mechanism.m
        4
        """
        return self.policy.m

    @cached_property
    def group_sizes(self) -> tuple[int, ...]:
        """The number of items of every group of levels.

        >>> mechanism.group_sizes
        (1, 3)
        """
        return group_sizes(self.groups, self.policy)

    @cached_property
    def denominators(self) -> tuple[int, ...]:
        """What `other` of every group is a numerator over.

        >>> mechanism.denominators
        (1, 3)
        """
        return denominators(self.encoding, self.groups, self.policy)

    @property
    def report_size(self) -> int:
        """Bytes of every report.

        >>> mechanism.report_size
        2
        """
        return self.encoding.report_size(self.m, len(self.parts), self.padding)

    @property
    def scale(self) -> int:
        """What a count of reported items is multiplied by: the padding, where one item of a set is
        sampled.

        >>> mechanism.scale
        1
        """
        return self.padding if self.padding and self.encoding.lists == "sampled" else 1

    @cached_property
    def coder(self) -> Coder:
        """Writes, refuses and reads one report.

        >>> mechanism.coder.refusal(b"too short")
        'length'
        """
        return self.encoding.coder(self)

    # ---- conveniences: one line each, imported late ----------------------------------------------

    @property
    def a(self) -> Floats:
        """The paper's a per level: the chance of a 1 for the item held. Only mechanisms of one part
        of independent bits have one.

        >>> [round(float(a), 3) for a in design(policy, "opt1").a]
        [0.638, 0.694]
        """
        return self.arrays.only("own")

    @property
    def b(self) -> Floats:
        """The paper's b per level: the chance of a 1 for any other item.

        >>> [round(float(b), 3) for b in design(policy, "opt1").b]
        [0.362, 0.306]
        """
        return self.arrays.only("other")

    @cached_property
    def arrays(self) -> Arrays:
        """The same numbers as arrays, for many people at once.

        >>> mechanism.arrays.group_of.tolist()
        [0, 1, 1, 1]
        """
        from discreet.arrays.tables import Arrays

        return Arrays(self)

    def expected_mse(self, prior: Prior = "uniform") -> float:
        """Expected total MSE / n for shares of participants (`uniform`, `worst`, or given).

        >>> round(mechanism.expected_mse(), 3)
        2.713
        """
        from discreet.arrays import theory

        return theory.total_mse(self, prior)

    @property
    def worst_case_mse(self) -> float:
        """The largest total MSE / n over all data sets (for sets the variance, without
        undercounting); opt0's objective for one part of independent bits.

        >>> mechanism.worst_case_mse >= mechanism.expected_mse()
        True
        """
        return self.expected_mse("worst")

    def guarantee(self) -> Guarantee:
        """The promise that the exact check proves.

        >>> mechanism.guarantee().holds
        True
        """
        from discreet.promises.guarantee import Guarantee

        return Guarantee.from_mechanism(self)

    def perturb(self, answer: Answer) -> bytes:
        """One person's report of an item (label or index) or a set of items, with secure
        randomness.

        >>> len(mechanism.perturb("flu"))
        2
        """
        from discreet.device.perturb import perturb

        return perturb(self, answer)

    def perturb_many(
        self, answers: Answers, threads: int | None = None, indices: bool = False
    ) -> Bytes:
        """Many people's reports as an n x report_size array, with secure randomness. Whole numbers
        are indices; where labels look like whole numbers, only if `indices` says so.

        >>> mechanism.perturb_many(["flu", "cold", "flu"]).shape
        (3, 2)
        """
        from discreet.arrays import perturb

        return perturb.perturb_many(self, answers, threads, indices)

    def tally(
        self,
        reports: Reports = (),
        counts: Ints | Sequence[int] | None = None,
        threads: int | None = None,
    ) -> Tally:
        """The tally of reports (an array, or a list of bytes; tickets also as whole numbers); with
        `counts` each report stands for that many.

        >>> mechanism.tally(mechanism.perturb_many(["flu"] * 10)).n
        10
        """
        from discreet.arrays.tally import Tally

        return Tally.count(self, reports, counts, threads)

    @overload
    def scores(
        self, reports: Reports, items: Items = ..., *, arrow: Literal[False] = ...
    ) -> Floats: ...
    @overload
    def scores(
        self, reports: Reports, items: Items = ..., *, arrow: Literal[True]
    ) -> pa.RecordBatch: ...
    def scores(
        self, reports: Reports, items: Items = None, *, arrow: bool = False
    ) -> Floats | pa.RecordBatch:
        """What every report adds to the estimates of these items (all of them by default), as an
        array of reports x items: the sum over the reports is the estimate. NaN for what is not a
        report of this mechanism.

        With `arrow`, a column per item, which has its name; null instead of NaN. For files, see
        `discreet.data.scores.read_scores`, which gives a batch after the other.

        >>> reports = mechanism.perturb_many(["flu"] * 10)
        >>> scores = mechanism.scores(reports, ["flu"])
        >>> bool(abs(scores.sum() - mechanism.tally(reports).estimate()["flu"]["count"]) < 1e-9)
        True
        >>> mechanism.scores(reports, ["flu"], arrow=True).schema.names
        ['flu']
        """
        from discreet.arrays import scores

        return scores.scores(self, reports, items, arrow)

    def _repr_html_(self) -> str:
        from discreet.show import notebook

        return notebook.mechanism(self)

    # ---- file ------------------------------------------------------------------------------------

    def to_canonical(self) -> JsonObject:
        """Everything in the file but the fingerprint: strings and integers only.

        >>> mechanism.to_canonical()["format"]
        'discreet-mechanism/3'
        """
        return write_body(self)

    @classmethod
    def load(cls, path: str | Path) -> Mechanism:
        """Read a mechanism file, compare the fingerprint, and check the guarantee exactly.

        >>> Mechanism.load("README.md")
        Traceback (most recent call last):
        discreet.errors.MechanismError: README.md: this is not a mechanism file, which is JSON
        """
        document = read_document(path)
        if "questions" in document:
            raise MechanismError(
                f"{path} is a survey; Survey.load reads it, and its questions have the mechanisms"
            )
        return cls.from_document(document)

    @classmethod
    def from_canonical(cls, body: JsonObject) -> Mechanism:
        """From the content without its fingerprint, which is not compared: for `discreet check`.

        >>> Mechanism.from_canonical(mechanism.to_canonical()) == mechanism
        True
        """
        return read_body(body, cls)
