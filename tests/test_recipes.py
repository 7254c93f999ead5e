"""The recipes of CONTRIBUTING.md, followed: what they name is all there is to write."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import discreet as d
from discreet import designs, encodings
from discreet.designs import unary
from discreet.encodings.bits import Bits, BitsCoder
from discreet.errors import DesignError, GuaranteeError, MechanismError
from discreet.estimates.simulation import compare
from discreet.mechanism import Mechanism
from discreet.paper import run
from discreet.paper.tables import PaperTable
from discreet.paper.target import Target
from discreet.paper.verdicts import HOLDS, Claims, Verdict
from discreet.show import facts

POLICY = d.Policy.from_levels([("high", 1, ["a", "b"]), ("low", 2, ["c", "d", "e"])])


# ---- a model -------------------------------------------------------------------------------------


def scaled(factor):
    """A made-up model: opt0 for so many times every budget."""

    def model(task):
        levels = [("high", 1 * factor, ["a", "b"]), ("low", 2 * factor, ["c", "d", "e"])]
        found = unary.opt0(designs.Task(d.Policy.from_levels(levels), "uniform", None, None))
        return replace(found, policy=task.policy, model="scaled", certificate=None)

    return model


def test_a_model_is_a_function_and_its_name(monkeypatch, tmp_path):
    monkeypatch.setitem(designs._MODELS, "scaled", scaled(0.5))
    monkeypatch.setattr(designs, "MODELS", tuple(designs._MODELS))
    mechanism = d.design(POLICY, "scaled")
    mechanism.save(tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json") == mechanism and mechanism.model == "scaled"
    plan = facts.plan(POLICY, 1000, "uniform", None, None, mechanism)
    assert "scaled" in {row["model"] for row in plan["rows"]}
    scores = compare(np.array([5, 1, 1, 2, 9]), designs.alternatives(POLICY), repeats=1, seed=1)
    assert "scaled" in {score.model for score in scores}
    monkeypatch.setitem(designs._MODELS, "scaled", scaled(2))
    with pytest.raises(GuaranteeError):  # nothing stands between a wrong model and the check
        d.design(POLICY, "scaled")


# ---- an encoding ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Backwards(Bits):
    """Bits whose bytes stand in the other order: a made-up encoding."""

    kind = "backwards"
    told = "bits from the end"

    def coder(self, mechanism):
        return BackwardsCoder(mechanism)


class BackwardsCoder(BitsCoder):
    def pack(self, part, bits):
        return super().pack(part, bits)[::-1]

    def read_part(self, report):
        return super().read_part(report[::-1])

    def bits(self, report):
        return super().bits(report[::-1])

    def named(self, report):
        return super().named(report[::-1])


def test_an_encoding_is_one_class_with_its_coder(monkeypatch, tmp_path):
    policy = d.Policy.from_levels([("high", 1, list("ab")), ("low", 3, list("cdefghijklmn"))])
    designed = d.design(policy, "opt0")
    with pytest.raises(DesignError, match="must be one of discreet's own"):
        replace(designed, encoding=Backwards())
    with monkeypatch.context() as listed:
        listed.setitem(encodings.KINDS, "backwards", Backwards)
        mechanism = replace(designed, encoding=Backwards())
    with pytest.raises(MechanismError):
        Mechanism.from_document(mechanism.to_document())
    monkeypatch.setitem(encodings.KINDS, "backwards", Backwards)
    mechanism.save(tmp_path / "m.json")
    mechanism = Mechanism.load(tmp_path / "m.json")
    reports = mechanism.perturb_many(["n"] * 4000)
    estimate = mechanism.tally(reports).estimate()
    assert estimate.top(1)[0]["item"] == "n"
    assert abs(estimate.counts[13] - 4000) < 6 * estimate.stderr[13]  # a false alarm of 2e-9
    assert mechanism.tally([b"\xff\xff"]).refused == {"tail": 1}
    as_bits = replace(mechanism, encoding=Bits())
    assert as_bits.tally(np.ascontiguousarray(reports[:, ::-1])).estimate().counts == pytest.approx(
        estimate.counts
    )


# ---- a figure ------------------------------------------------------------------------------------


def test_a_figure_is_one_module_with_a_target(monkeypatch, tmp_path):
    claims = Claims("table9")

    @claims.add("items", "nowhere", "There are five items.")
    def _five(found):
        (row,) = found.tables["table9"]
        return Verdict(HOLDS, f"{row['items']} items", 0.0)

    def tables(setup, data):
        return [PaperTable("table9", "Items", "A made-up table.", [{"items": POLICY.m}])]

    monkeypatch.setitem(run.TARGETS, "table9", Target(claims, tables=tables))
    made = run.reproduce(["table9"], None, str(tmp_path / "out"), quick=True)
    assert [(claim["verdict"], claim["number"]) for claim in made.claims] == [(HOLDS, "5 items")]
    assert any("table9" in name for name in made.files)
