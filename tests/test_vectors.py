"""The vectors that Python and JavaScript share: what they say was computed without discreet, and discreet agrees."""

import importlib.util
import json
from pathlib import Path

import pytest

from discreet import report
from discreet.audit import audit
from discreet.errors import DataError, FingerprintError, GuaranteeError, MechanismError, ReportError
from discreet.mechanism import Mechanism, canonical_json, fingerprint
from discreet.tally import Tally

FOLDER = Path(__file__).parent / "vectors" / "v1"
REFUSED = {"guarantee": GuaranteeError, "fingerprint": FingerprintError, "unreadable": MechanismError}


def cases(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


MECHANISMS = cases("mechanisms")
GOOD = {case["name"]: case["document"] for case in MECHANISMS if case["expect"] == "ok"}


@pytest.fixture(scope="module")
def mechanisms():
    return {name: Mechanism.from_document(document) for name, document in GOOD.items()}


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("make_vectors", FOLDER.parent / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def params(expect):
    return [pytest.param(case["document"], id=case["name"]) for case in MECHANISMS if case["expect"] == expect]


# ---- the files ------------------------------------------------------------------------------------------


def test_the_committed_files_are_what_make_writes(make):
    texts = make.rendered()
    assert sorted(texts) == sorted(path.name for path in FOLDER.iterdir())
    for name, text in texts.items():
        assert (FOLDER / name).read_bytes() == text.encode(), f"{name} differs: run python tests/vectors/make.py"


def test_the_reference_uses_nothing_of_discreet():
    source = (FOLDER.parent / "make.py").read_text(encoding="utf-8")
    imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert imports and not any("discreet" in line or "numpy" in line for line in imports)


def test_names_are_unique_and_every_kind_is_there():
    names = [case["name"] for case in MECHANISMS]
    assert len(set(names)) == len(names)
    assert {case["expect"] for case in MECHANISMS} == {"ok", *REFUSED}
    assert {case.get("refused", "") for case in cases("reports")} == {"", *report.REASONS}
    assert {len(document["policy"]["items"]) for document in GOOD.values()} >= {3, 5, 9, 70}
    assert {document["encoding"] for document in GOOD.values()} == {"bits", "compact", "item"}


# ---- canonical JSON ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("canonical"))
def test_canonical_json(case):
    assert canonical_json(case["document"]) == case["canonical"].encode()
    assert fingerprint(case["document"]) == case["sha256"]
    assert json.loads(case["canonical"]) == case["document"]


# ---- mechanisms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", params("ok"))
def test_good_mechanisms_are_read_and_written_back(document, tmp_path):
    mechanism = Mechanism.from_document(document)
    assert mechanism.fingerprint == document["fingerprint"]
    path = tmp_path / "mechanism.json"
    mechanism.save(path)
    assert json.loads(path.read_text(encoding="utf-8")) == document
    assert audit(str(path)).problems == []


@pytest.mark.parametrize("expect", REFUSED)
def test_there_are_many_of_every_refusal(expect):
    assert len(params(expect)) >= 10


@pytest.mark.parametrize("document", params("guarantee"))
def test_broken_guarantees_are_refused_by_the_check_alone(document, tmp_path):
    with pytest.raises(GuaranteeError):
        Mechanism.from_document(document)
    path = tmp_path / "mechanism.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (problem,) = audit(str(path)).problems
    assert problem.startswith("the guarantee does not hold")


@pytest.mark.parametrize("document", params("fingerprint"))
def test_wrong_fingerprints_are_refused(document):
    with pytest.raises(FingerprintError):
        Mechanism.from_document(document)


@pytest.mark.parametrize("document", params("unreadable"))
def test_what_is_no_mechanism_is_refused(document):
    with pytest.raises(MechanismError) as caught:
        Mechanism.from_document(document)
    assert not isinstance(caught.value, FingerprintError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["share", "a", "b"])
def test_whole_numbers_written_as_decimals_are_refused(place):
    """2.0 is an integer to JavaScript, which cannot tell, so this is not a shared vector."""
    document = json.loads(json.dumps(GOOD["toy-opt0-bits"]))
    part = document["parts"][0]
    part[place] = float(part[place]) if place == "share" else [float(x) for x in part[place]]
    del document["fingerprint"]
    with pytest.raises(GuaranteeError):
        Mechanism.from_document({**document, "fingerprint": fingerprint(document)})


# ---- reports ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOOD)
def test_reports(name, mechanisms):
    mechanism = mechanisms[name]
    for case in cases("reports"):
        if case["mechanism"] != name:
            continue
        raw = bytes.fromhex(case["report"])
        tally = Tally.of(mechanism, [raw])
        if "refused" in case:
            with pytest.raises(ReportError) as caught:
                report.check(mechanism, raw)
            assert caught.value.reason == case["refused"], case
            assert tally == Tally(mechanism, tally.part_n * 0, tally.counts * 0, {case["refused"]: 1}), case
        else:
            report.check(mechanism, raw)
            expected = Tally.empty(mechanism)
            expected.part_n[case["part"]] = 1
            expected.counts[case["part"], case["ones"]] = 1
            assert tally == expected, case


# ---- tallies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{k}-{case['mechanism']}") for k, case in enumerate(cases("tallies"))])
def test_tallies_and_estimates(case, mechanisms):
    mechanism = mechanisms[case["mechanism"]]
    tally = mechanism.tally([bytes.fromhex(text) for text in case["reports"]])
    assert tally.part_n.tolist() == case["part_n"]
    assert tally.counts.tolist() == case["counts"]
    assert tally.refused == case["refused"]
    if case["estimate"] is None:
        with pytest.raises(DataError, match="no reports"):
            tally.estimate()
        return
    estimate = tally.estimate()
    expected = [float("nan") if x is None else x for x in case["estimate"]]
    assert estimate.counts.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9 * tally.n, nan_ok=True)
    unknown = [x is None for x in case["estimate"]]
    assert [x == float("inf") for x in estimate.stderr.tolist()] == unknown
