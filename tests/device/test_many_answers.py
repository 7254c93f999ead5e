"""Surveys of several questions on a person's device: what is drawn once, what leaves and in which
order, what is remembered, and what an interruption leaves behind.
"""

import json
import math
import os
import subprocess
import threading
import time
from collections import Counter
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from checks import assert_binomial, must_fail
from click.testing import CliRunner
from collecting import DEADLINE, DISCREET, listening, several
from pretending import entries, single

import discreet as d
from discreet.arrays.survey_tally import SurveyTally
from discreet.cli import main
from discreet.collector import app
from discreet.collector.metrics import Metrics
from discreet.collector.store import Upload, open_store
from discreet.device import ledger
from discreet.device.client import Client, PromiseError, Receipt
from discreet.device.ledger import LedgerError, OverlapError, TotalError
from discreet.errors import ClientError, DataError

pytestmark = pytest.mark.usefixtures("home")
ANSWERS = {
    "region": "north", "shift": "night", "age": "old", "ill": "flu", "wide": "low 3",
}  # fmt: skip
LINES = "".join(f"{name}: {answer}\n" for name, answer in ANSWERS.items())


@pytest.fixture(scope="module")
def two():
    """Of four questions everyone answers two."""
    return several("two", 2)


@pytest.fixture(scope="module")
def every():
    """Of four questions everyone answers all."""
    return several("every", 4)


def drawn_in(home):
    return [entry["question"] for entry in entries(home)]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("ill: measles", "is not an item of this question"),
        ("measles: yes", "line 6 of standard input names no question; it asks "),
        ("measles", 'line 6 of standard input is not "name: answer"'),
    ],
)
def test_errors_of_scripts_do_not_repeat_an_answer(fake, home, every, line, sentence):
    """They are often kept in a log; a line that is mistyped may hold the answer anywhere."""
    url = f"{fake(every).url}/c/every"
    lines = LINES.replace("ill: flu\n", "", 1) if line.startswith("ill") else LINES
    told = CliRunner().invoke(main, ["answer", url, "--yes"], input=f"{lines}{line}\n")
    assert told.exit_code == 2 and sentence in told.stderr
    assert "measles" not in told.output


# ---- the draw ------------------------------------------------------------------------------------


def test_a_draw_is_remembered_whoever_asks_again(fake, home, two):
    client = Client(fake(two).url)
    first = client.draw(client.collection("two"))
    assert len(first) == 2 and drawn_in(home) == [question.name for question in first]
    assert {entry["state"] for entry in entries(home)} == {"drawn"}
    for _ in range(20):  # another process
        again = Client(client.url)
        assert again.draw(again.collection("two")) == first
    prepared = client.prepare(client.collection("two"), ANSWERS)
    assert [frame.question for frame in prepared.frames] == [question.name for question in first]


def test_without_a_ledger_every_pair_is_drawn(fake, home, two):
    """The twin, and uniformly: 600 devices; catches a shift of 0.16 in the chance of a pair."""
    client = Client(fake(two).url)
    asked, found = client.collection("two"), Counter()
    for _ in range(600):
        found[tuple(question.name for question in client.draw(asked))] += 1
        home.unlink()
    pairs = list(combinations(two.questions, 2))
    assert set(found) == set(pairs)
    counts = np.array([found[pair] for pair in pairs])
    assert_binomial(counts, 600, np.full(6, 1 / 6))
    must_fail(assert_binomial, counts[:1], 600, np.array([1 / 2]))


def test_an_answer_that_is_refused_does_not_lead_to_another_draw(fake, home, two):
    """Who answers only some of the questions would otherwise draw until these are asked."""
    client = Client(fake(two).url)
    asked, seen = client.collection("two"), set()
    for _ in range(40):
        with pytest.raises(DataError, match="was drawn and has no answer"):
            client.prepare(asked, {"region": "north", "shift": "day"})
        seen.add(tuple(drawn_in(home)))
    assert len(seen) == 1


def test_a_refused_overlap_does_not_lead_to_another_draw(fake, home, two):
    server = fake(two, single("before", *two.questions["ill"].policy.items, "young", "low 0"))
    client = Client(server.url)
    client.answer("before", "flu")
    asked, seen = client.collection("two"), set()
    for _ in range(40):
        with pytest.raises(OverlapError):
            client.prepare(asked, ANSWERS)
        seen.add(tuple(drawn_in(home)))
    assert len(seen) == 1


def test_answers_to_questions_that_were_not_drawn_are_not_looked_at(fake, home, two):
    client = Client(fake(two).url)
    asked = client.collection("two")
    drawn = {question.name for question in client.draw(asked)}
    needed = drawn | {"age", "ill"} if "age × ill" in drawn else drawn
    given = {name: x if name in {*needed, "region", "shift"} else 5 for name, x in ANSWERS.items()}
    assert len(client.prepare(asked, given).frames) == 2


# ---- the answers ---------------------------------------------------------------------------------


def test_a_crossed_question_is_answered_by_both_answers(fake, home, every, monkeypatch):
    given = []
    perturb = d.Mechanism.perturb
    monkeypatch.setattr(
        d.Mechanism, "perturb", lambda self, answer: given.append(answer) or perturb(self, answer)
    )
    client = Client(fake(every).url)
    client.prepare(client.collection("every"), {**ANSWERS, "age": 0})  # by its place
    assert given == [0, "flu", "low 3", "young × flu"]


@pytest.mark.parametrize("missing", list(ANSWERS))
def test_every_question_needs_an_answer(fake, home, every, missing):
    server = fake(every)
    client = Client(server.url)
    given = {name: answer for name, answer in ANSWERS.items() if name != missing}
    with pytest.raises(DataError, match=missing):
        client.prepare(client.collection("every"), given)
    assert server.posts == [] and not home.exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("flu", 'this survey asks "region", "shift", "age", "ill", "wide"; give the answers by'),
        ({**ANSWERS, "height": "1"}, '"height" is not a question of this survey'),
        ({**ANSWERS, "age × ill": "old × flu"}, '"age × ill" is not a question of this survey'),
        ({**ANSWERS, "region": "east"}, 'the public question "region" needs one of "north"'),
        ({**ANSWERS, "region": 0}, 'the public question "region" needs one of "north"'),
        ({**ANSWERS, "ill": "plague"}, "^(?!.*plague)"),
    ],
)
def test_an_answer_that_is_none_is_refused_without_repeating_it(fake, home, every, given, sentence):
    server = fake(every)
    client = Client(server.url)
    with pytest.raises(DataError, match=sentence):
        client.prepare(client.collection("every"), given)
    assert server.posts == [] and not home.exists()


# ---- what leaves ---------------------------------------------------------------------------------


def test_every_frame_is_a_report_on_its_question_with_an_id_of_its_own(fake, home, every):
    server = fake(every)
    receipt = Client(server.url).answer("every", ANSWERS)
    assert receipt == Receipt(4, 0) and len({frame.id for frame in receipt.frames}) == 4
    assert sorted(server.posts) == sorted(frame.id + frame.content for frame in receipt.frames)
    for k, frame in enumerate(receipt.frames):
        assert frame.content == bytes([k, 0, 1]) + frame.report  # north, night
        assert every.listed[k].mechanism.coder.refusal(frame.report) is None
    assert [(e["question"], e["id"], e["report"], e["state"]) for e in entries(home)] == [
        (frame.question, frame.id.hex(), frame.content.hex(), "counted") for frame in receipt.frames
    ]


def test_frames_leave_in_a_random_order(fake, home, every):
    """Each as often at each place: 300 devices; catches a shift of 0.25."""
    server = fake(every)
    client = Client(server.url)
    asked = client.collection("every")
    for _ in range(300):
        client.send(client.prepare(asked, ANSWERS))
        home.unlink()
    order = np.array([body[16] for body in server.posts]).reshape(300, 4)
    assert (np.sort(order, axis=1) == range(4)).all()
    seen = np.array([[np.sum(order[:, at] == k) for at in range(4)] for k in range(4)])
    pairs = np.sum(np.diff(order, axis=1) == 1, axis=0)  # one right after the one before it
    found = np.append(seen, pairs)
    assert_binomial(found, 300, np.full(len(found), 1 / 4))
    told = np.sort(order, axis=1)  # the twin: as they are asked
    first = np.array([np.sum(told[:, 0] == k) for k in range(4)])
    must_fail(assert_binomial, first, 300, np.full(4, 1 / 4))


def test_what_is_sent_is_a_function_of_the_reports_alone(fake, home, every, monkeypatch):
    """With the reports, ids and order fixed, other answers change no byte; the public ones do."""
    fixed = {q.mechanism.fingerprint: q.mechanism.perturb(0) for q in every.listed}
    monkeypatch.setattr(ledger.os, "urandom", lambda n: b"i" * n)
    monkeypatch.setattr(d.Mechanism, "perturb", lambda self, _: fixed[self.fingerprint])
    monkeypatch.setattr("discreet.device.client.SystemRandomness.below", lambda self, bound: 0)
    seen = []
    for given in (
        ANSWERS,
        {**ANSWERS, "age": "young", "ill": "HIV", "wide": "high 0"},
        {**ANSWERS, "region": "south"},
    ):
        server = fake(every)
        Client(server.url).answer("every", given)
        requests = [(m, p, {**h, "Host": ""}, body) for m, p, h, body in server.seen]
        seen.append((requests, home.read_text().replace(server.url, "")))
        home.unlink()
    assert seen[0] == seen[1] != seen[2]


@pytest.fixture
def real(tmp_path, every, two):
    """A real collector of both surveys, with its store."""
    store = open_store(str(tmp_path / "store"))
    for made in (every, two):
        store.create(made, "reports")
    collector = app.Collector(store, Metrics(tmp_path), "a-token-of-the-organiser")
    with listening(collector.application()) as url:
        yield SimpleNamespace(url=url, store=str(tmp_path / "store"))


def test_many_people_are_counted_by_question_and_group(real, home, two):
    kept = []
    for k in range(30):
        region, shift = ("north", "south", "west")[k % 3], ("day", "night")[k % 2]
        receipt = Client(real.url).answer("two", {**ANSWERS, "region": region, "shift": shift})
        assert receipt == Receipt(2, 0)
        kept += [frame.content for frame in receipt.frames]
        home.unlink()
    store = open_store(real.store)
    assert sorted(store.reports("two")) == sorted(kept)
    assert store.tally("two") == SurveyTally.count(two, kept)
    assert store.tally("two").n == 60 and store.find_damage("two") == []
    store.close()


def test_the_same_survey_gets_the_same_frames_whatever_is_answered(real, home):
    first = Client(real.url).answer("every", ANSWERS)
    again = Client(real.url).answer(
        "every", {**ANSWERS, "age": "young", "ill": "HIV", "region": "west", "shift": "day"}
    )
    assert again == Receipt(0, 4) and again.frames == first.frames


def test_everything_that_may_be_asked_is_shown_on_request(real, every):
    """Every question with its answers, public ones, and what a cross is about."""
    told = CliRunner().invoke(main, ["answer", f"{real.url}/c/every", "--question"])
    assert told.exit_code == 0, told.output
    for public in every.public:
        assert f"{public.name}: {public.text} This answer is sent as it is." in told.output
    for question in every.listed:
        items = question.policy.items if question.of is None else ()
        for k, item in enumerate(items, 1):
            assert f"{k:>5}  {item}\n" in told.output
    assert 'age × ill: the answers to "age" and "ill" in one report' in told.output
    assert "old × flu\n" not in told.output


def test_a_script_gives_one_answer_to_a_public_question(real, home):
    """A second line is no correction of the first, whichever is meant."""
    for more in ("region: south\n", "region: north\n"):
        url = f"{real.url}/c/every"
        told = CliRunner().invoke(main, ["answer", url, "--yes"], input=LINES + more)
        assert told.exit_code == 2 and '"region" takes one answer, got 2 lines' in told.output
        assert not home.exists() or entries(home) == []


# ---- interrupted ---------------------------------------------------------------------------------


def test_a_person_who_stops_between_questions_goes_on_with_the_same_ones(fake, home, two):
    """At the keyboard: the questions are drawn, one is answered, and the terminal closes."""
    server = fake(two)
    client = Client(server.url)
    drawn = client.draw(client.collection("two"))
    before = home.read_bytes()
    one = "wide" if "wide" in drawn_in(home) else "ill"  # of two or three that are needed
    given = {"region": "west", "shift": "day", one: ANSWERS[one]}
    with pytest.raises(DataError, match="was drawn and has no answer"):
        client.prepare(client.collection("two"), given)
    assert home.read_bytes() == before and server.posts == []
    later = Client(server.url).answer("two", ANSWERS)
    assert [frame.question for frame in later.frames] == [question.name for question in drawn]
    assert len(server.posts) == 2


def test_some_frames_that_arrived_are_sent_again_with_the_others(fake, home, clock, every):
    """The collector goes away after the second of four: nobody knows which it has."""
    server = fake(every)
    client = Client(server.url, patience=0.1)
    asked = client.collection("every")
    prepared = client.prepare(asked, ANSWERS)
    server.script.extend([(200, {}, b'{"accepted": 1, "duplicates": 0}')] * 2 + [None] * 99)
    with pytest.raises(ClientError):
        client.send(prepared)
    states = Counter(entry["state"] for entry in entries(home))
    assert states == {"counted": 2, "leaving": 2}
    server.script.clear()
    unsent = Client(server.url).unsent(asked)
    assert unsent.frames == prepared.frames and unsent.repeated
    assert client.send(unsent).frames == prepared.frames and client.unsent(asked) is None
    assert {entry["state"] for entry in entries(home)} == {"counted"}
    assert set(server.posts) == {frame.id + frame.content for frame in prepared.frames}


@pytest.mark.parametrize("arrived", [1, 2, 4])
def test_a_process_that_is_killed_on_its_way_is_counted_once_per_question(
    fake, home, every, tmp_path, arrived
):
    """Killed when the collector has so many of its four reports and has not answered the last."""
    server = fake(every)
    reached, answer = threading.Event(), server.answer

    def silent(method, path):
        if method == "POST" and len(server.posts) == arrived:
            reached.set()
            time.sleep(DEADLINE)
        return answer(method, path)

    server.answer = silent
    url = f"{server.url}/c/every#{every.fingerprint}"
    killed = subprocess.Popen(
        [DISCREET, "answer", url, "--yes"],
        env={**os.environ, "DISCREET_LEDGER": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    killed.stdin.write(LINES.encode())
    killed.stdin.close()
    assert reached.wait(DEADLINE)
    killed.kill()
    killed.wait()
    states = Counter(entry["state"] for entry in entries(home))
    assert states["leaving"] == 4 - (arrived - 1) and states["counted"] == arrived - 1
    before = [(entry["id"], entry["report"]) for entry in entries(home)]
    server.answer = answer
    told = CliRunner().invoke(main, ["answer", url, "--yes", "--json"], input=LINES)
    assert told.exit_code == 0, told.output
    assert [(entry["id"], entry["report"]) for entry in entries(home)] == before
    assert {entry["state"] for entry in entries(home)} == {"counted"}
    facts = json.loads(told.stdout)
    told = [(row["id"], f"0{k}0001{row['report']}") for k, row in enumerate(facts["reports"])]
    assert told == before  # behind the question's number, "north" and "night"
    assert facts["repeated"] is True and len(server.posts) == arrived + 4
    assert {body.hex() for body in server.posts} == {id_ + report for id_, report in before}
    store = open_store(str(tmp_path / "store"))
    store.create(every, "reports")
    for body in server.posts:
        store.add([Upload("every", [body[:16]], [body[16:]])])
    assert [store.tally("every").question(k).n for k in range(4)] == [1] * 4
    store.close()


# ---- what was told before ------------------------------------------------------------------------


def region_openly(name):
    """A survey that asks openly where people are, and something of its own."""
    made = d.design(d.Policy.from_budgets(dict.fromkeys((f"{name} x", f"{name} y"), 1)), "oue")
    public = [{"name": "region", "text": "Where?", "items": ["north", "south"]}]
    return d.Survey(name, [made], public=public)


def openly(name, place="north"):
    return {"question": f"{name} x", "region": place}


def test_what_was_told_openly_is_not_protected_any_more(fake, home):
    """Where somebody was, asked openly and then under protection: without any limit."""
    server = fake(region_openly("open"), single("closed", "North", "west"))
    client = Client(server.url)
    client.answer("open", openly("open"))
    with pytest.raises(OverlapError, match="without any limit") as caught:
        client.answer("closed", "west")
    assert caught.value.epsilon == float("inf") and caught.value.item == "North"
    assert client.answer("closed", "west", agree=True) == Receipt(1, 0)


def test_what_was_protected_and_is_asked_openly_needs_consent(fake, home):
    server = fake(region_openly("open"), single("closed", "North", "west"))
    client = Client(server.url)
    client.answer("closed", "west")
    with pytest.raises(OverlapError, match="without any limit") as caught:
        client.answer("open", openly("open"))
    assert caught.value.item == "north" and len(server.posts) == 1
    assert client.answer("open", openly("open"), agree=True) == Receipt(1, 0)


def test_the_same_questions_under_another_name_need_consent_whatever_is_drawn(fake, home):
    """Else whoever asks again under another name draws again, until every answer is told."""
    copies = [several(f"copy {k}", 1) for k in range(12)]
    client = Client(fake(several("first", 1), *copies).url)
    client.answer("first", ANSWERS)
    (first,) = entries(home)
    seen = set()
    for copy in copies:
        with pytest.raises(OverlapError) as caught:
            client.prepare(client.collection(copy.name), ANSWERS)
        mine = entries(home)[-1]
        shared = not set(first["items"]).isdisjoint(mine["items"])
        seen.add(shared)
        if not shared:
            whole = first["budgets"]["whole"] + mine["budgets"]["whole"]
            assert caught.value.item is None
            assert math.isclose(caught.value.epsilon, whole)
            assert "an earlier answer to other questions of this survey" in str(caught.value)
    assert seen == {True, False}  # one of both is missed once in a thousand
    assert client.answer(copies[0].name, ANSWERS, agree=True) == Receipt(1, 0)


def test_a_survey_of_other_questions_needs_no_consent(fake, home):
    """The twin."""
    client = Client(fake(several("first", 1), single("other", "x", "y")).url)
    client.answer("first", ANSWERS)
    assert client.answer("other", "x") == Receipt(1, 0)


def test_what_is_told_openly_twice_needs_none(fake, home):
    server = fake(region_openly("first"), region_openly("second"))
    client = Client(server.url)
    client.answer("first", openly("first"))
    assert client.answer("second", openly("second", "south")) == Receipt(1, 0)


def test_public_answers_are_in_the_ledger_by_their_items_alone(fake, home):
    """Which of them was told does not stand there but in the frame."""
    client = Client(fake(region_openly("open")).url)
    client.answer("open", openly("open", "south"))
    (entry,) = entries(home)
    assert entry["told"] == ["north", "south"] and entry["items"] == ["open x", "open y"]


def test_a_crossed_answer_counts_for_both_of_its_questions(fake, home):
    """Somebody who answered the cross alone has told of age and of illness."""
    every = several("every", 4)
    client = Client(fake(every, single("ages", "young", "z"), single("ills", "HIV", "z")).url)
    client.answer("every", ANSWERS)
    crossed = next(entry for entry in entries(home) if entry["question"] == "age × ill")
    rest = [entry for entry in entries(home) if entry is not crossed]
    assert crossed["items"] == [
        *every.questions["age"].policy.items,
        *every.questions["ill"].policy.items,
    ]
    home.write_text(json.dumps({"entries": [crossed]}))
    for name in ("ages", "ills"):
        with pytest.raises(OverlapError):
            client.answer(name, "z")
    home.write_text(json.dumps({"entries": [e for e in rest if e["question"] == "wide"]}))
    assert client.answer("ages", "z") == Receipt(1, 0)  # the twin


def test_what_is_summed_counts_every_report_that_tells_of_the_item(fake, home, every):
    """The question's own and the cross's, beside the earlier answer."""
    client = Client(fake(every, single("ages", "young", "z")).url)
    client.answer("ages", "young")
    (earlier,) = entries(home)
    with pytest.raises(OverlapError) as caught:
        client.answer("every", ANSWERS)
    asked = client.collection("every")
    client.draw(asked)
    told = 0.0
    for entry in (earlier, *entries(home)):
        if "young" in entry["items"] and (entry is earlier or entry["name"] == "every"):
            level = entry["budgets"]["levelOf"][entry["items"].index("young")]
            told += entry["budgets"]["levels"][level]
    own = every.questions["age"].guarantee().epsilons
    assert caught.value.item == "young" and told > max(own) + earlier["budgets"]["levels"][0]
    assert caught.value.epsilon == pytest.approx(told)


def test_questions_of_one_survey_are_no_earlier_answers(fake, home):
    """A cross and its two questions are about the same items, and one promise covers them all."""
    client = Client(fake(several("every", 4)).url)
    assert client.answer("every", ANSWERS) == Receipt(4, 0)


def test_a_cap_counts_every_question_that_is_answered(fake, home, every):
    server = fake(every, single("more", "x", "y"))
    client = Client(server.url)
    whole = sum(q.mechanism.guarantee().ldp_epsilon for q in every.listed)
    with pytest.raises(TotalError, match="this answer has the budget") as caught:
        client.answer("every", ANSWERS, agree=True, max_total=0.99 * whole)
    assert caught.value.epsilon == pytest.approx(whole) and server.posts == []
    client.answer("every", ANSWERS, max_total=1.0001 * whole)
    own = client.collection("more").mechanism.guarantee().ldp_epsilon
    with pytest.raises(TotalError, match="4 earlier answers") as caught:
        client.answer("more", "x", max_total=whole + 0.99 * own)
    assert caught.value.epsilon == pytest.approx(whole + own)
    assert client.answer("more", "x", max_total=whole + 1.01 * own) == Receipt(1, 0)


def test_a_cap_counts_the_drawn_questions_alone(fake, home, two):
    client = Client(fake(two).url)
    asked = client.collection("two")
    drawn = sum(q.mechanism.guarantee().ldp_epsilon for q in client.draw(asked))
    with pytest.raises(TotalError):
        client.prepare(asked, ANSWERS, max_total=0.99 * drawn)
    assert len(client.prepare(asked, ANSWERS, max_total=1.0001 * drawn).frames) == 2


def test_a_limit_is_of_every_item_and_of_all_that_is_sent(fake, every):
    client = Client(fake(every).url)
    whole = every.promise().epsilon
    most = max(max(q.mechanism.guarantee().budgets) for q in every.listed)
    assert most < whole
    assert client.collection("every", max_epsilon=1.0001 * whole).survey == every
    with pytest.raises(PromiseError, match="all answers to this survey together"):
        client.collection("every", max_epsilon=(most + whole) / 2)
    with pytest.raises(PromiseError, match="has budget"):
        client.collection("every", max_epsilon=0.99 * most)
    with pytest.raises(PromiseError, match='"HIV" has budget'):
        client.collection("every", max_epsilon={"HIV": 0.01})


@pytest.mark.parametrize("pinned", [several("every", 3), several("other", 4)])
def test_a_pinned_survey_must_be_the_collection_s(fake, every, pinned):
    client = Client(fake(every).url)
    assert client.collection("every", policy=every).survey == every
    with pytest.raises(PromiseError, match='"every" is not what you named: '):
        client.collection("every", policy=pinned)
    with pytest.raises(PromiseError, match="it has 4 questions, and you named the policy of one"):
        client.collection("every", policy=every.questions["age"].policy)


def test_an_entry_of_a_question_that_there_is_not_is_damage(fake, home, two):
    client = Client(fake(two).url)
    asked = client.collection("two")
    client.draw(asked)
    strange = [{**entry, "question": "x"} for entry in entries(home)]
    home.write_text(json.dumps({"entries": strange}))
    with pytest.raises(LedgerError, match="a question that this survey does not have"):
        client.prepare(asked, ANSWERS)
