"""What the commands say about mechanisms and plans, as types."""

from __future__ import annotations

from typing import TypedDict


class LevelFacts(TypedDict):
    """A level of a mechanism, beside plain LDP."""

    level: str
    items: int
    epsilon: str
    factor: float | None  # None: no limit
    variance: float
    plain_variance: dict[str, float]
    against_best_plain: float


class CertificateFacts(TypedDict):
    """How close a design comes to the best possible."""

    value: float
    lower_bound: float | None
    gap: float | None
    note: str
    sentence: str


class GoalFacts(TypedDict):
    """What a goal comes to: the error of every level beside plain LDP."""

    goal: str
    chosen: bool
    total_mse: float
    against_best_plain: dict[str, float]


class FakeFacts(TypedDict):
    """How many people one fake report can stand for."""

    levels: list[dict[str, str | float | None]]
    together: float | None
    sentence: str


class MechanismFacts(TypedDict):
    """A mechanism, as `describe` gives it."""

    name: str
    items: int
    level_count: int
    notion: str
    kind: str
    padding: int | None
    strict: bool
    model: str
    prior: str
    encoding: str
    encoding_told: str
    report_bytes: int
    probabilities: dict[str, list[dict[str, list[float] | str]]]
    levels: list[LevelFacts]
    total_mse: dict[str, dict[str, float]]
    mse_range: list[float]
    best_plain: str
    ldp_epsilon: float | None  # None: no limit
    set_factor: float | None
    ldp_bound: float | None
    holds: bool
    caution: str
    promises: list[str]
    certificate: CertificateFacts | None
    goals: list[GoalFacts]
    fake: FakeFacts
    published: str
    warnings: list[str]
    fingerprint: str


class PlanRow(TypedDict, total=False):
    """What to expect of one model at one level."""

    model: str
    level: str
    items: int
    stderr_count: float
    stderr_share: float
    smallest_share: float  # that stands out from zero with a chance of 80 %; above 1: none does
    users_for_target: int  # only if there is a target


class PlanFacts(TypedDict):
    """A forecast, as `plan` gives it."""

    name: str
    users: int
    about: str  # whom shares are about: the population or the respondents
    prior: str
    padding: int | None
    target_error: float | None
    rows: list[PlanRow]
    total_mse: dict[str, float]
    best: str
    certificate: CertificateFacts | None
    goals: list[GoalFacts]
    fake: FakeFacts
    best_plain: str
    gain: float
    why: str
    warnings: list[str]
    visible: list[str]
    published: str
    padding_curve: dict[int, float] | None  # if the padding was chosen: the error of each length
    objective: str | None
