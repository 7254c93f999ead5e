"""The vectors that Python and JavaScript share: computed without discreet, and discreet agrees."""

import importlib
import json
import math
import sys
import threading
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from constants import (
    CONSTANTS,
    at_the_limits,
    everything,
    promised,
    silent,
    surveying,
    surveys_at_the_limits,
    whole_survey,
)

from discreet import encodings
from discreet.check import certificate, exact, exact_sets
from discreet.check.document import canonical_json, fingerprint, read_bytes, refuse_strange
from discreet.collector.openapi import DOCUMENT
from discreet.device import network
from discreet.device.client import Client
from discreet.device.ledger import Ledger
from discreet.device.wire import ID_SIZE
from discreet.encodings import ticket
from discreet.errors import (
    ClientError,
    DataError,
    FingerprintError,
    GuaranteeError,
    MechanismError,
    PolicyError,
)
from discreet.mechanism import FORMAT, Mechanism, shape
from discreet.policy import Policy, budgets, labels, notions, validation
from discreet.policy.kinds import Kind
from discreet.survey import Survey
from discreet.survey import about as about_
from discreet.survey import public as public_
from discreet.survey import survey as survey_

HERE = Path(__file__).parent / "vectors"
FOLDER = HERE / "v2"
SOURCES = ("bad", "badpicks", "building", "good", "make", "picks", "reference", "surveys")
REFUSED = {
    "guarantee": GuaranteeError,
    "fingerprint": FingerprintError,
    "mechanism": MechanismError,
}
REASONS = {"length", "part", "tail", "size", "silent", "ticket", "residue", "order"}


def cases(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


MECHANISMS, FILES, REPORTS, TALLIES = map(cases, ("mechanisms", "files", "reports", "tallies"))
SURVEYS = cases("surveys")
GOOD = {case["name"]: case["document"] for case in MECHANISMS if case["expect"] == "ok"}
NAMES = list(dict.fromkeys(case["mechanism"] for case in REPORTS))


@pytest.fixture(scope="module")
def mechanisms():
    return {name: Mechanism.from_document(GOOD[name]) for name in NAMES}


@pytest.fixture(scope="module")
def make():
    """tests/vectors/make.py with its neighbours, which import each other by name."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(HERE))
    yield importlib.import_module("make")
    patch.undo()


@pytest.fixture(scope="module")
def reference(make):
    return sys.modules["reference"]


def params(rows, expect):
    return [pytest.param(case, id=case["name"]) for case in rows if case["expect"] == expect]


def content(case):
    """The bytes of a file."""
    return case["text"].encode() if "text" in case else bytes.fromhex(case["hex"])


# ---- the files -----------------------------------------------------------------------------------


@pytest.mark.xdist_group("vectors")  # it makes the good mechanisms
def test_the_committed_files_are_what_make_writes(make):
    texts = make.rendered()
    written = {path.name for path in FOLDER.iterdir()} - {"constants.json"}  # which is a source
    assert sorted(texts) == sorted(written)
    for name, text in texts.items():
        told = f"{name} differs: run python tests/vectors/make.py"
        assert (FOLDER / name).read_bytes() == text.encode(), told


def test_the_reference_uses_nothing_of_discreet():
    for name in SOURCES:
        source = (HERE / f"{name}.py").read_text(encoding="utf-8")
        imports = [x for x in source.splitlines() if x.lstrip().startswith(("import ", "from "))]
        assert imports and not any("discreet" in x or "numpy" in x for x in imports)
    assert sorted(path.stem for path in HERE.glob("*.py")) == sorted(SOURCES)


def test_names_are_unique_and_every_kind_is_there():
    for rows in (MECHANISMS, FILES, SURVEYS):
        names = [case["name"] for case in rows]
        assert len(set(names)) == len(names)
    assert {case["expect"] for case in MECHANISMS} == {"ok", *REFUSED}
    assert {case.get("refused", "") for case in REPORTS} == {"", *REASONS}
    assert {len(document["policy"]["items"]) for document in GOOD.values()} >= {1, 3, 5, 8, 9, 70}
    kinds = [document["encoding"]["kind"] for document in GOOD.values()]
    assert all(kinds.count(kind) >= 10 for kind in ("fixed", "bits", "ticket", "hits", "picks"))
    assert kinds.count("each") >= 4
    assert {len(document["parts"]) for document in GOOD.values()} >= {1, 2, 3, 256}


@pytest.mark.parametrize("expect", REFUSED)
def test_there_are_many_of_every_refusal(expect):
    assert len(params(MECHANISMS, expect)) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_noin_words_of_a_mechanism_can_be_changed_unseen(name, reference):
    """The fingerprint covers every number, and a new one does not help against the check."""
    document = GOOD[name]
    for o, part in enumerate(document["parts"][:3]):
        for key, values in part.items():
            changed = json.loads(json.dumps(document))
            if isinstance(values, int):
                changed["parts"][o][key] = values + 1
            elif key == "rows":
                last = [row for row in changed["parts"][o][key] if row][-1]
                last = last[-1] if isinstance(last[-1], list) else last
                last[-1] += 1
            else:
                changed["parts"][o][key][-1] = values[-1] + 1
            assert reference.verdict(changed) == "fingerprint"
            with pytest.raises(FingerprintError):
                Mechanism.from_document(changed)
            if key in ("none", "chance", "rows"):  # then they do not sum to one any more
                changed["fingerprint"] = fingerprint(reference.body_of(changed))
                assert reference.verdict(changed) == "guarantee"
                with pytest.raises(GuaranteeError):
                    Mechanism.from_document(changed)


# ---- canonical JSON ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("canonical"))
def test_canonical_json(case):
    assert canonical_json(case["document"]) == case["canonical"].encode()
    assert fingerprint(case["document"]) == case["sha256"]
    assert json.loads(case["canonical"]) == case["document"]


# ---- mechanisms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", params(MECHANISMS, "ok"))
def test_good_mechanisms_are_read_and_written_back(case, tmp_path):
    document = case["document"]
    mechanism = Mechanism.from_document(document)
    assert mechanism.fingerprint == document["fingerprint"]
    path = tmp_path / "survey.json"
    mechanism.save(path)
    assert json.loads(path.read_text(encoding="utf-8")) == document
    assert read_bytes(path.read_bytes()) == document
    assert Mechanism.load(path).fingerprint == document["fingerprint"]


@pytest.mark.parametrize("case", params(MECHANISMS, "guarantee"))
def test_broken_guarantees_are_refused_by_the_check_alone(case):
    with pytest.raises(GuaranteeError) as caught:
        Mechanism.from_document(case["document"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", params(MECHANISMS, "fingerprint"))
def test_wrong_fingerprints_are_refused(case):
    with pytest.raises(FingerprintError):
        Mechanism.from_document(case["document"])


@pytest.mark.parametrize("case", params(MECHANISMS, "mechanism"))
def test_what_is_no_mechanism_is_refused(case):
    with pytest.raises(MechanismError) as caught:
        Mechanism.from_document(case["document"])
    assert not isinstance(caught.value, FingerprintError)
    assert "\n" not in str(caught.value)


# ---- surveys -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", params(SURVEYS, "ok"))
def test_good_surveys_are_read_and_written_back(case, tmp_path):
    document = case["document"]
    survey = Survey.from_document(document)
    assert survey.fingerprint == document["fingerprint"]
    assert survey.promise().holds
    survey.save(tmp_path / "survey.json")
    assert json.loads((tmp_path / "survey.json").read_text(encoding="utf-8")) == document
    assert Survey.load(tmp_path / "survey.json") == survey


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in SURVEYS if case["expect"] != "ok"]
)
def test_surveys_that_are_refused(case):
    with pytest.raises(REFUSED[case["expect"]]) as caught:
        Survey.from_document(case["document"])
    assert isinstance(caught.value, FingerprintError) == (case["expect"] == "fingerprint")
    assert isinstance(caught.value, GuaranteeError) == (case["expect"] == "guarantee")
    assert "\n" not in str(caught.value)


def test_there_are_surveys_of_every_sort():
    assert {case["expect"] for case in SURVEYS} == {"ok", *REFUSED}
    good = [case["document"] for case in SURVEYS if case["expect"] == "ok"]
    for key in ("about", "public", "translations"):
        assert any(key in document for document in good)
    assert any("of" in row for document in good for row in document["questions"])
    texts = {
        level["epsilon"]
        for document in good
        for row in document["questions"]
        for level in row["mechanism"]["policy"]["levels"]
    }
    assert {"1/3", "ln(6)/3", "ln(4)/2"} <= texts


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", params(FILES, "ok"))
def test_every_spelling_of_a_file_is_read_alike(case):
    document = read_bytes(content(case))
    assert document == GOOD["toy-grr"]
    assert Mechanism.from_document(document).fingerprint == document["fingerprint"]


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in FILES if case["expect"] != "ok"]
)
def test_files_that_are_refused(case):
    with pytest.raises(MechanismError) as caught:
        Mechanism.from_document(read_bytes(content(case)))
    assert isinstance(caught.value, FingerprintError) == (case["expect"] == "fingerprint")
    assert "\n" not in str(caught.value)


# ---- texts that people read ----------------------------------------------------------------------


def test_texts_are_labels_and_questions_or_not():
    for case in cases("texts"):
        text = case["text"]
        assert labels.is_label(text) == case["label"], ascii(text)
        assert labels.is_prose(text) == case["question"], ascii(text)
        level = [("a", 1, ["x", text])], [(text, 1, ["x"])]
        made = [lambda rows=rows: Policy.from_levels(rows) for rows in level]
        for make_ in made:
            accepts(make_, case["label"])
        named = survey_named(text)
        accepts(named, case["label"] and text == text.strip())
        accepts(
            lambda text=text: Policy.from_levels([("a", 1, ["x"])], question=text),
            case["question"],
        )


def survey_named(text):
    return lambda: Survey(text, [Mechanism.from_document(GOOD["toy-opt0"])])


def accepts(make_, fine):
    if fine:
        make_()
        return
    with pytest.raises(PolicyError) as caught:
        make_()
    assert str(caught.value).isprintable()


def test_labels_that_look_the_same_are_named_once():
    rows = cases("pairs")
    assert sum(case["same"] for case in rows) > 200 and not all(case["same"] for case in rows)
    for case in rows:
        first, second = case["first"], case["second"]
        shared = {*labels.looks(first)} & {*labels.looks(second)}
        assert bool(shared) == case["same"], (ascii(first), ascii(second))
        levels = [(first, 1, ["x"]), (second, 2, ["y"])]
        for rows_ in ([("a", 1, [first, second])], levels):
            if not case["same"]:
                Policy.from_levels(rows_)
                continue
            with pytest.raises(PolicyError, match="look the same") as caught:
                Policy.from_levels(rows_)
            for label in (first, second):  # both are named
                assert labels.quoted(label) in str(caught.value)


def test_the_look_alikes_are_a_table():
    told = {letter: twins for letter, *twins in labels.TWINS.split()}
    assert {k: [*twins] for k, twins in CONSTANTS["twins"].items()} == told
    assert len({twin for twins in told.values() for twin in twins}) == sum(map(len, told.values()))
    assert CONSTANTS["said_characters"] == labels._LONGEST_SAID


# ---- reports -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_reports(name, mechanisms):
    mechanism = mechanisms[name]
    for case in REPORTS:
        if case["mechanism"] != name:
            continue
        raw = bytes.fromhex(case["report"])
        assert mechanism.coder.refusal(raw) == case.get("refused"), case
        tally = mechanism.tally([raw])
        if "refused" in case:
            assert tally.refused == {case["refused"]: 1}, case
            assert not tally.part_n.any() and not tally.counts.any()
        else:
            assert mechanism.coder.named(raw) == case["named"], case
            assert tally.part_n.nonzero()[0].tolist() == [case["part"]]
            assert tally.counts[case["part"]].nonzero()[0].tolist() == case["named"]
            assert tally.part_n.sum() == 1 and tally.counts.sum() == len(case["named"])


# ---- tallies -------------------------------------------------------------------------------------


def tolerance(case):
    """Of an estimate: rounding in doubles, in units of the largest."""
    return 1e-9 * max(1, *(abs(x) for x in case["estimate"] if x is not None))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{k}-{case['mechanism']}") for k, case in enumerate(TALLIES)]
)
def test_tallies_and_estimates(case, mechanisms):
    mechanism = mechanisms[case["mechanism"]]
    tally = mechanism.tally([bytes.fromhex(text) for text in case["reports"]])
    assert tally.part_n.tolist() == case["part_n"]
    assert tally.counts.tolist() == case["counts"]
    assert tally.refused == case["refused"]
    if "estimate" not in case:
        return  # reports that do not tell the totals: the contract does not say what then
    if case["estimate"] is None:
        with pytest.raises(DataError, match="no reports"):
            tally.estimate()
    else:
        estimate, expected = (
            tally.estimate(),
            [math.nan if x is None else x for x in case["estimate"]],
        )
        assert estimate.counts.tolist() == pytest.approx(expected, abs=tolerance(case), nan_ok=True)
        unknown = [x is None for x in case["estimate"]]
        assert [x == math.inf for x in estimate.stderr.tolist()] == unknown


# so few items for the padding that a count has hardly anything to do with one report
ILL_CONDITIONED = {"three-picks-five", "eight-picks-64"}


def test_estimates_catch_a_planted_change(reference):
    """A count moved by one is seen in what is estimated, far beyond the tolerance."""
    for case in TALLIES:
        if not case.get("estimate"):
            continue
        document, counts = GOOD[case["mechanism"]], json.loads(json.dumps(case["counts"]))
        w, _, _ = reference.decoder(document)
        speaking = [
            (o, i)
            for o, part in enumerate(document["parts"])
            for i, g in enumerate(reference.groups_of(document))
            if part.get("other", part.get("active", part.get("blocks")))[g]
            and ("sizes" not in part or abs(w[o][g]) > 1e-3)
        ]
        if not speaking or case["mechanism"] in ILL_CONDITIONED:
            continue
        o, i = speaking[-1]
        counts[o][i] += 1
        moved = float(reference.estimate(document, case["part_n"], counts)[i])
        assert abs(moved - case["estimate"][i]) > 1000 * tolerance(case)


# ---- constants -----------------------------------------------------------------------------------


def test_names_and_denominators():
    assert FORMAT == CONSTANTS["format"]
    assert exact.D == ticket.LAST == CONSTANTS["denominator"] == 2**32
    assert CONSTANTS["names"] == {
        "prior": [*shape.PRIORS],
        "kind": [*Kind],
        "notion": [*notions.NOTIONS],
        "encoding": [*encodings.KINDS],
    }
    assert CONSTANTS["row_total"] == exact_sets.TOTAL == 2**52
    assert CONSTANTS["residue_bytes"] == {
        str(prime): encodings.Hits(prime).width for prime in (65521, 65537)
    }
    assert [*encodings.REASONS] == CONSTANTS["reasons"] and set(encodings.REASONS) == REASONS
    assert CONSTANTS["encoding_keys"] == {
        kind: ["kind", *(field.name for field in fields(found))]
        for kind, found in encodings.KINDS.items()
    }
    assert CONSTANTS["ticket_bytes"] == encodings.Ticket(5, 2).report_size(5, 1, None)
    told = CONSTANTS["exponential"]
    assert (told["fraction_bits"], told["ceiling"]) == (exact._BITS, exact._CEILING)


def test_keys():
    found = Mechanism.from_document(everything()).to_canonical()
    policy = found["policy"]
    assert CONSTANTS["keys"] == {
        "the mechanism": [*found],
        "the policy": [*policy],
        "a level": [*policy["levels"][0]],
        "a pair": [*policy["pairs"][0]],
        "a part": [*found["parts"][0]],
        "the certificate": [*found["certificate"]],
    }
    survey = Survey.from_document(whole_survey()).to_canonical()
    assert [*survey["about"]] == CONSTANTS["about"]["keys"]
    told = CONSTANTS["survey"]
    assert survey["format"] == told["format"]
    assert {key: {*keys} for key, keys in told["keys"].items()} == {
        "the survey": {*survey},
        "a question": {*survey["questions"][2]},
        "a public question": {*survey["public"][0]},
    }
    found = Mechanism.from_document(silent([("one", "1", "a")], padding=1)).to_canonical()
    own, keys = CONSTANTS["set_keys"], CONSTANTS["keys"]
    assert {*found["policy"]} == {*keys["the policy"], *own["the policy"]} - {"last", "totals"}
    assert [*found["parts"][0]] == [*keys["a part"], *own["a part"]]
    found = Mechanism.from_document(GOOD["five-scale-subset"]).to_canonical()["policy"]
    both = {*keys["the policy"], *CONSTANTS["scale_keys"]["the policy"]}
    assert {*found} == both - {"last", "totals"}
    hits = GOOD["five-hits"]["parts"][0]
    assert [*Mechanism.from_document(GOOD["five-hits"]).parts[0].document()] == [*hits]
    assert [*hits] == CONSTANTS["hits_part_keys"]
    picks = GOOD["five-picks"]["parts"][0]
    assert [*picks] == CONSTANTS["picks_part_keys"]


def test_limits_have_names():
    limits = CONSTANTS["limits"]
    assert CONSTANTS["model_pattern"] == shape.MODEL
    assert limits["parts"] == shape.MAX_PARTS
    assert limits["levels_with_pairs"] == validation.MAX_LEVELS_WITH_PAIRS
    assert limits["levels_as_blocks"] == validation.MAX_LEVELS_WITH_PAIRS
    assert limits["points_of_a_scale"] == validation.MOST_POINTS
    assert limits["budget_characters"] == budgets._LONGEST
    assert limits["budget_roots"] == budgets._ROOTS
    assert CONSTANTS["survey"]["limits"] == {
        "questions": survey_.MOST_QUESTIONS,
        "public": survey_.MOST_PUBLIC,
        "groups": survey_.MOST_GROUPS,
        "items": public_.MOST_ITEMS,
        "name_characters": survey_._NAME,
    }
    assert CONSTANTS["survey"]["reserved"] == [*public_.RESERVED]
    assert limits["certificate_digits"] == certificate._DIGITS
    told = CONSTANTS["about"]
    assert told["characters"] == {
        **dict.fromkeys(about_.LINES, about_.LINE),
        **dict.fromkeys(about_.TEXTS, about_.TEXT),
    }
    assert told["several_lines"] == [*about_.TEXTS]
    assert told["minimum"] == [about_.LEAST, about_.MOST]


@pytest.mark.parametrize(("name", "pair"), [*at_the_limits().items()])
def test_limits_are_the_last_that_is_accepted(name, pair, reference):
    inside, beyond = pair
    assert reference.verdict(beyond) == "mechanism"
    if name != "zeros of a budget":  # e^budget is too near to 1 for the reference's own precision
        assert reference.verdict(inside) == "ok"
    Mechanism.from_document(inside)
    with pytest.raises(MechanismError) as caught:
        Mechanism.from_document(beyond)
    assert not isinstance(caught.value, FingerprintError | GuaranteeError)


@pytest.mark.parametrize(("name", "pair"), [*surveys_at_the_limits().items()])
def test_limits_of_surveys_are_the_last_that_is_accepted(name, pair, make):
    verdict = sys.modules["surveys"].survey_verdict
    inside, beyond = pair
    assert (verdict(inside), verdict(beyond)) == ("ok", "mechanism")
    Survey.from_document(inside)
    with pytest.raises(MechanismError) as caught:
        Survey.from_document(beyond)
    assert not isinstance(caught.value, FingerprintError | GuaranteeError)


def test_the_largest_wholein_words():
    largest = CONSTANTS["largest_integer"]
    assert read_bytes(b'{"x": %d}' % largest) == {"x": largest}
    refuse_strange({"x": largest})
    with pytest.raises(MechanismError, match=str(largest + 1)):
        refuse_strange({"x": largest + 1})


@pytest.mark.parametrize(("document", "sentences"), promised())
def test_promises_in_words(document, sentences):
    assert Mechanism.from_document(document).guarantee().sentences() == sentences


class Collector(ThreadingHTTPServer):
    """Answers uploads with these statuses, one after another, and keeps what it was sent."""

    def __init__(self, statuses):
        super().__init__(("127.0.0.1", 0), Answering)
        self.statuses, self.requests = list(statuses), []


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, {"state": "open", "survey": surveying(everything())})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers, body))
        self.answer(self.server.statuses.pop(0), {"accepted": 1, "duplicates": 0})

    def answer(self, status, document):
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


def sent(statuses, ledger):
    """What a client sends, and whether that was refused for good."""
    with Collector(statuses) as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.01,))
        thread.start()
        try:
            client = Client(f"http://127.0.0.1:{collector.server_port}", Ledger(ledger))
            client.answer("survey", "a")
            return collector.requests, False
        except ClientError:
            return collector.requests, True
        finally:
            collector.shutdown()
            thread.join()


def test_uploads(tmp_path):
    told, document = CONSTANTS["upload"], surveying(everything())
    ((path, headers, body),), refused = sent([200], tmp_path / "ledger")
    assert not refused and path == told["path"].format(name="survey")
    for name, value in told["headers"].items():
        assert headers[name] == value.format(fingerprint=document["fingerprint"])
    assert len(body) == told["id_bytes"] + 1 == ID_SIZE + 1
    for k, status in enumerate(told["retried"]):
        (first, second), refused = sent([status, 200], tmp_path / f"retried-{k}")
        assert not refused and (first[0], first[2]) == (second[0], second[2])
    for k, status in enumerate(told["final"]):
        requests, refused = sent([status, 200], tmp_path / f"final-{k}")
        assert refused and len(requests) == 1
    assert Client("http://host").patience == told["patience_seconds"]
    assert network._LONGEST_PAUSE == told["longest_pause_seconds"]


def test_the_collectors_description_names_the_same_headers():
    post = DOCUMENT["paths"][CONSTANTS["upload"]["path"]]["post"]
    kind, mark = CONSTANTS["upload"]["headers"].items()
    assert [*post["requestBody"]["content"]] == [kind[1]] and kind[0] == "Content-Type"
    assert mark[0] in {p["name"] for p in post["parameters"] if p.get("in") == "header"}


def test_the_ledger(tmp_path):
    sent([200], tmp_path / "ledger")
    (entry,) = json.loads((tmp_path / "ledger").read_text(encoding="utf-8"))["entries"]
    assert [*entry] == CONSTANTS["ledger_keys"]
    assert [*entry["budgets"]] == CONSTANTS["ledger_budget_keys"]
    assert len(bytes.fromhex(entry["id"])) == CONSTANTS["upload"]["id_bytes"]
