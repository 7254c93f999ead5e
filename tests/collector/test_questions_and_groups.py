"""Surveys of several questions, crossed and public ones, at the collector: what a body may hold,
what is counted, who sees which group, and that every copy has all of it.
"""

import csv
import io
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from checks import assert_binomial
from click.testing import CliRunner
from collecting import BEARER, REGION, crowd, ids, several, survey
from postgres import GROUP
from test_collector import Service, assert_problem

import discreet as d
from discreet.arrays.grouped_tallies import file_name
from discreet.arrays.survey_tally import SurveyTally, tally_size
from discreet.cli import main
from discreet.collector import documents, limits, rehearsal
from discreet.collector.copying import backup, copy
from discreet.collector.moving import move
from discreet.collector.store import Outcome, StoreDamaged, Upload, open_store
from discreet.data.counting import tally_files
from discreet.data.surveys import tally_survey
from discreet.errors import DataError
from discreet.survey import Question
from discreet.survey.crosses import margins

STORES = ["sqlite", pytest.param("postgresql", marks=GROUP)]
MADE = several()
NAMES = [question.name for question in MADE.listed]
FRONT = 3  # the question's number, and two public answers
PATH = "/v1/collections/several/estimate"
PUBLISHED = 1500  # of 2,100 reports on four questions by six groups, each in batches of 50


@pytest.fixture(params=STORES)
def place(request, tmp_path):
    """The URL of an empty store of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return request.getfixturevalue("database")


@pytest.fixture
def store(place):
    opened = open_store(place)
    yield opened
    opened.close()


@pytest.fixture
def serve(tmp_path):
    """Makes services that end with the test."""
    made = []

    def make(*surveys, **settings):
        made.append(Service(tmp_path, *surveys, **settings))
        return made[-1]

    yield make
    for service in made:
        service.close()


def joined(some, contents):
    return b"".join(id_ + content for id_, content in zip(some, contents, strict=True))


def reports_on(contents, place, by=(0, 1)):
    """The reports on a question by the answers to the public questions, one after the other."""
    found = {}
    for content in contents:
        if content[0] == place:
            group = tuple(content[1 + k] for k in by)
            found.setdefault(group, []).append(content[FRONT:])
    return found


def assert_counted(tally, contents):
    """Every question, whole and by group, is as a direct count of its reports has it."""
    assert tally.n == len(contents) and tally.refused == 0
    for k, question in enumerate(MADE.listed):
        mine = question.mechanism
        assert tally.question(k) == mine.tally(reports_on(contents, k, ()).get((), []))
        for by in ((0, 1), (0,), (1,), (1, 0)):
            direct = {key: mine.tally(rows) for key, rows in reports_on(contents, k, by).items()}
            assert tally.groups(k, by) == direct
        assert tally.groups(k) == tally.groups(k, (0, 1))


# ---- what a body may hold ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5, 600])
def test_frames_of_every_width_are_counted_from_one_body(serve, n):
    """Few are checked one by one, many by arrays."""
    service, contents, some = serve(MADE), crowd(MADE, n), ids(n)
    assert len({len(content) for content in crowd(MADE, 600)}) == 3  # widths
    assert service.post(MADE, joined(some, contents)).json() == {"accepted": n, "duplicates": 0}
    again = joined(some[::-1], contents[::-1])
    assert service.post(MADE, again).json() == {"accepted": 0, "duplicates": n}
    assert_counted(service.collector.store.tally("several"), contents)


def wrong_frames():
    """A frame that is none, the reason, and the sentence."""
    last = len(MADE.listed) - 1
    for place, question in enumerate(MADE.listed):
        whole = next(content for content in crowd(MADE, 600) if content[0] == place)
        told = question.name.replace(" ", "-")
        for number in (last + 1, 255):
            bad = bytes([number]) + whole[1:]
            yield told, bad, "question", f"about question {number}; the questions are 0 to {last}"
        for number in (3, 255):
            bad = whole[:1] + bytes([number]) + whole[2:]
            yield told, bad, "public", f'answer {number} to the public question "region", which has'
        bad = whole[:2] + bytes([2]) + whole[3:]
        yield told, bad, "public", 'answer 2 to the public question "shift", which has 2'
        if question.policy.m % 8:
            yield told, whole[:-1] + b"\xff", "tail", "is not a report"


@pytest.mark.parametrize("before", [0, 3, 40])
@pytest.mark.parametrize(
    ("bad", "title", "sentence"),
    [pytest.param(*rest, id=f"{rest[1]}-{name}") for name, *rest in wrong_frames()],
)
def test_a_wrong_frame_refuses_the_whole_body_and_is_named(serve, before, bad, title, sentence):
    service = serve(MADE)
    good = crowd(MADE, before + 2)
    contents = [*good[:before], bad, *good[before:]]
    answer = service.post(MADE, joined(ids(len(contents)), contents))
    status = 422 if title in ("tail", "public", "question") else 400
    found = assert_problem(answer, status, title, sentence)
    assert found["index"] == before and service.n("several") == 0
    assert service.refusals() == {title: 1}
    assert service.post(MADE, joined(ids(len(good)), good)).json()["accepted"] == len(good)


@pytest.mark.parametrize("before", [0, 1, 30])
def test_a_frame_that_is_cut_is_named_wherever_it_is_cut(serve, before):
    """In its id, before its number, and in the report, whose width depends on the number."""
    service, good = serve(MADE), joined(ids(before), crowd(MADE, before))
    for place, question in enumerate(MADE.listed):
        content = next(x for x in crowd(MADE, 600) if x[0] == place)
        size = 16 + FRONT + question.mechanism.report_size
        for k in (1, 15, 16, 17, 18, size - 1):
            answer = service.post(MADE, good + (ids(1)[0] + content)[:k])
            expected = 16 + FRONT + MADE.listed[place if k > 16 else 0].mechanism.report_size
            said = f"frame {before} has {k} of {expected} bytes"
            assert assert_problem(answer, 400, "frame", said)["index"] == before
    assert service.n("several") == 0


def test_an_empty_body_is_told_how_long_frames_are(serve):
    answer = serve(MADE).post(MADE, b"")
    assert_problem(answer, 400, "empty", "one or more frames of 20 to 22 bytes")


def test_a_body_has_a_largest_number_of_frames(serve, monkeypatch):
    monkeypatch.setattr(limits, "FRAMES", 50)
    service, contents = serve(MADE), crowd(MADE, 51)
    assert_problem(service.post(MADE, joined(ids(51), contents)), 413, "large", "50 reports")
    assert service.post(MADE, joined(ids(50), contents[:50])).json()["accepted"] == 50


def test_reports_for_another_draft_of_the_survey_are_refused(serve):
    """The same questions, but one answer to a public question more."""
    other = d.Survey("several", MADE.listed, public=[{**REGION, "items": ["north", "south"]}])
    service = serve(MADE)
    answer = service.post(other, joined(ids(2), crowd(other, 2)))
    assert_problem(answer, 409, "survey", "is that of another survey")


# ---- damaged bodies ------------------------------------------------------------------------------


def verdict(raw):
    """What must be answered, one frame after the other: reason, and index of the first bad one."""
    at, contents = 0, []
    while at < len(raw):
        number = raw[at + 16] if at + 16 < len(raw) else 0
        if number >= len(MADE.listed):
            return "question", len(contents)
        end = at + 16 + FRONT + MADE.listed[number].mechanism.report_size
        if end > len(raw):
            return "frame", len(contents)
        contents.append(raw[at + 16 : end])
        at = end
    for index, content in enumerate(contents):
        if content[1] >= 3 or content[2] >= 2:
            return "public", index
        if reason := MADE.listed[content[0]].mechanism.coder.refusal(content[FRONT:]):
            return reason, index
    return None, None


def damaged(rng, pool):
    """A body of some frames with one thing wrong, or with nothing."""
    some = [pool[k] for k in rng.integers(len(pool), size=int(rng.integers(1, 16)))]
    raw = bytearray(joined(ids(len(some)), some))
    way, at = int(rng.integers(6)), int(rng.integers(len(raw)))
    if way == 0:
        raw = raw[: at + 1]
    elif way == 1:
        raw += rng.bytes(int(rng.integers(1, 30)))
    elif way == 2:
        raw[at] ^= 1 << int(rng.integers(8))
    elif way == 3:
        raw[at] = int(rng.integers(256))
    elif way == 4:
        raw = raw[at:] + raw[:at]
    return bytes(raw)


def test_damaged_bodies_are_judged_as_frame_by_frame(serve):
    """Few frames are checked one by one and many by arrays: both as the plain reading has it."""
    service, rng, pool, seen = serve(MADE), np.random.default_rng(4), crowd(MADE, 400), Counter()
    counted = []
    for _ in range(1500):
        raw = damaged(rng, pool)
        answer = service.post(MADE, raw)
        told, (reason, index) = answer.json(), verdict(raw)
        assert (told.get("title"), told.get("index")) == (reason, index), raw.hex()
        assert (answer.status_code == 200) == (reason is None)
        seen[reason] += 1
        counted += contents_of(raw) if reason is None else []
    assert {reason for reason, n in seen.items() if n > 20} >= {None, "frame", "question", "public"}
    assert_counted(service.collector.store.tally("several"), counted)


def contents_of(raw):
    """What stands behind the ids of a body that is whole."""
    found, at = [], 0
    while at < len(raw):
        end = at + 16 + FRONT + MADE.listed[raw[at + 16]].mechanism.report_size
        found.append(raw[at + 16 : end])
        at = end
    return found


def test_a_rehearsal_of_several_questions_is_answered_by_everyone():
    """As many answers as the survey asks for, from every group."""
    for answers in (1, 2, 4):
        tried = rehearsal.rehearse(several("tried", answers))
        contents = rehearsal.made_up_contents(tried, 600)
        tally = SurveyTally.count(tried, contents)
        assert tally.n == 600 * answers and tally.refused == 0
        each = [tally.question(k).n for k in range(4)]
        if answers < 4:
            assert_binomial(each, 600, np.full(4, answers / 4))
        assert all(len(tally.groups(k)) == 6 for k in range(4))
        assert all(q.policy.question.startswith("Rehearsal: ") for q in tried.listed)


# ---- what is counted -----------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["counts", "reports"])
@pytest.mark.parametrize("waiting", ["none", "some", "all"])
def test_reports_are_counted_by_question_and_group(store, monkeypatch, keep, waiting):
    """In many transactions, whether they wait or are counted at once."""
    monkeypatch.setattr(limits, "PENDING_SIZE", {"none": 0, "some": 60, "all": 10**9}[waiting])
    if waiting != "all":
        monkeypatch.setattr(limits, "PENDING_MOST", 0)
    store.create(MADE, keep)
    contents, some = crowd(MADE, 500), ids(500)
    for k in range(0, 500, 7):
        batch = some[k : k + 7]
        sent = Upload("several", [*batch, batch[0]], [*contents[k : k + 7], contents[0]])
        assert store.add([sent]) == [Outcome(len(batch), 1)]
    assert_counted(store.tally("several"), contents)
    assert store.find_damage("several") == []
    assert store.report_counts(1)[0][1] == 500
    if keep == "reports":
        order = sorted(range(500), key=some.__getitem__)
        assert list(store.reports("several")) == [contents[k] for k in order]
    store.close_collection("several")
    assert_counted(store.tally("several"), contents)


def test_a_survey_whose_tallies_would_not_fit_is_refused(store, monkeypatch):
    """When it is made, and not when its groups fill up."""
    one = sum(tally_size(question.mechanism) for question in MADE.listed)
    monkeypatch.setattr(limits, "TALLY_SIZE", 6 * one - 1)
    with pytest.raises(DataError, match="tallies of 6 groups and 4 questions could take .* fewer"):
        store.create(MADE)
    assert store.collections() == []
    monkeypatch.setattr(limits, "TALLY_SIZE", 6 * one)
    assert store.create(MADE).name == "several"


def test_tallies_of_parts_add_up_and_survive_their_bytes():
    contents = crowd(MADE, 900)
    parts = [SurveyTally.count(MADE, contents[k::3]) for k in range(3)]
    whole = sum(parts[1:], parts[0])
    assert_counted(whole, contents)
    assert whole == SurveyTally.count(MADE, contents) != parts[0] + parts[1]
    again = SurveyTally.from_bytes(whole.to_bytes(), MADE)
    assert again == whole and again.adds_up()
    with pytest.raises(DataError, match="different surveys"):
        _ = whole + SurveyTally(several("other"))


def test_bytes_that_are_no_tally_are_refused():
    raw = SurveyTally.count(MADE, crowd(MADE, 40)).to_bytes()
    for bad in (raw[:-1], raw + b"\0", raw[1:], raw + raw, bytes([9]) + raw[1:], raw[:2]):
        with pytest.raises(DataError, match="the stored tally is damaged"):
            SurveyTally.from_bytes(bad, MADE)


def one_report_fewer(kept):
    return kept[1:]


def another_group(kept):
    content = kept[0]
    return [content[:1] + bytes([(content[1] + 1) % 3]) + content[2:], *kept[1:]]


def another_question(kept):
    """A report on the fourth question, which is as long, as if it were on the third."""
    at = next(k for k, content in enumerate(kept) if content[0] == 3)
    return [*kept[:at], bytes([2]) + kept[at][1:], *kept[at + 1 :]]


@pytest.mark.parametrize("change", [one_report_fewer, another_group, another_question])
def test_damage_in_one_group_of_one_question_is_found(tmp_path, change):
    """The number of reports is right but for the first change, and each of them is a report."""
    contents = crowd(MADE, 300)
    with_damage = SurveyTally.count(MADE, change(contents))
    opened = open_store(str(tmp_path / "store"))
    collection = opened.create(MADE, "reports")
    opened.add([Upload("several", ids(300), contents)])
    assert opened.find_damage("several") == []
    with opened.writing():
        opened.counts.count_pending(collection)
        opened.counts._write_tally(collection, with_damage)
    (*_, damage) = opened.find_damage("several")
    assert damage == "its stored reports, counted again, give another tally"
    opened.close()


@pytest.mark.parametrize(
    "bad",
    [
        lambda content: bytes([4]) + content[1:],
        lambda content: content[:1] + bytes([3]) + content[2:],
        lambda content: content[:2] + bytes([2]) + content[3:],
        lambda content: content[:-1],
    ],
    ids=["question", "region", "shift", "cut"],
)
def test_a_pending_report_that_is_none_is_damage(store, bad):
    """And nothing more is acknowledged into the collection by a process that comes new to it."""
    store.create(MADE)
    contents = crowd(MADE, 20)
    store.add([Upload("several", ids(20), [*contents[:-1], bad(contents[-1])])])
    for use in (store.tally, store.close_collection):
        with pytest.raises(StoreDamaged, match="pending reports"):
            use("several")
    assert "pending reports" in store.find_damage("several")[0]


# ---- copies --------------------------------------------------------------------------------------


def content_of(store):
    """All that a store says of its collections."""
    found = {}
    for c in store.collections():
        kept = list(store.reports(c.name)) if c.keep == "reports" else None
        with store.reading():
            known = [id_ for id_, _ in store.counts.tables.stored(c.key)]
        found[c.name] = (c.survey.to_document(), c.keep, store.tally(c.name), kept, known)
    return found


def filled(store):
    for made, keep in ((MADE, "reports"), (several("counted"), "counts")):
        store.create(made, keep)
        for k in range(3):
            store.add([Upload(made.name, ids(700), crowd(made, 700, seed=k))])
        assert PUBLISHED < store.published(made.name).n <= 2100
    return content_of(store)


@GROUP
@pytest.mark.parametrize("work", [copy, move])
@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
def test_everything_goes_from_one_kind_of_store_to_the_other(tmp_path, database, work, to):
    places = [str(tmp_path / "a.sqlite"), database]
    source, target = (open_store(x) for x in (places if to == "postgresql" else places[::-1]))
    before, shown = filled(source), source.published("several")
    assert work(source, target) == {"several": 2100, "counted": 2100}
    assert content_of(target) == before
    assert target.find_damage("several") == target.find_damage("counted") == []
    assert target.published("several") == shown
    source.close()
    target.close()


def test_a_backup_has_every_question_and_group(store, tmp_path):
    before = filled(store)
    assert backup(store, tmp_path / "b.sqlite") == {"several": 2100, "counted": 2100}
    saved = open_store(str(tmp_path / "b.sqlite"))
    assert content_of(saved) == before and saved.find_damage("several") == []
    more = crowd(MADE, 30, seed=9)
    assert saved.add([Upload("several", ids(30), more)]) == [Outcome(30, 0)]
    assert saved.tally("several") == before["several"][2] + SurveyTally.count(MADE, more)
    saved.close()


def test_an_export_has_a_tally_for_every_question_and_group(store, place, tmp_path):
    store.create(MADE, "reports")
    contents = crowd(MADE, 400)
    store.add([Upload("several", ids(400), contents)])
    out = tmp_path / "out"
    told = CliRunner().invoke(
        main,
        ["export", "several", "-o", str(out), "--store", place, "--survey", f"{out}.json"],
        catch_exceptions=False,
    )
    assert told.exit_code == 0 and "400 reports" in told.output, told.output
    assert d.Survey.load(f"{out}.json") == MADE
    for k, question in enumerate(MADE.listed):
        direct = {
            tuple(MADE.group(group)): question.mechanism.tally(rows)
            for group, rows in reports_on(contents, k).items()
        }
        written = list((out / file_name(question.name)).glob("*.json"))
        found = [d.Tally.load(path, question.mechanism) for path in written]
        assert len(found) == len(direct)
        assert all(any(tally == mine for tally in found) for mine in direct.values())


@pytest.mark.parametrize("openly", [[], [REGION]], ids=["whole", "by group"])
def test_questions_whose_files_would_have_one_name_are_told_apart(tmp_path, openly):
    """And nothing is written beside the folder, whatever a question is called."""
    first, second, third = (q.mechanism for q in MADE.listed[:3])
    made = d.Survey("s", {"a b": first, "a?b": second, "..": third}, public=openly)
    opened = open_store(str(tmp_path / "store"))
    opened.create(made, "reports")
    opened.add([Upload("s", ids(200), crowd(made, 200))])
    tally = opened.tally("s")
    opened.close()
    out, reports = tmp_path / "sub" / "out", tmp_path / "sub" / "reports"
    out.parent.mkdir()
    command = ["export", "s", "-o", out, "--reports", reports, "--store", tmp_path / "store"]
    told = CliRunner().invoke(main, [str(x) for x in command], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert {path.name for path in out.parent.iterdir()} == {"out", "reports"}
    for k, (name, question) in enumerate(zip(("a_b", "a_b-2", "_"), made.listed)):
        paths = (out / name).glob("*.json") if openly else [out / f"{name}.json"]
        found = [d.Tally.load(path, question.mechanism) for path in paths]
        assert sum(one.n for one in found) == tally.question(k).n > 0
    counted = tally_survey(str(reports), made, (), count_files)
    assert [counted[name][None] for name in made.questions] == [tally.question(k) for k in range(3)]


def count_files(files, mechanism, by):
    return tally_files(map(Path, files), mechanism, by or None)


# ---- estimates -----------------------------------------------------------------------------------


def ask(service, headers=BEARER, **query):
    answer = service.get(PATH, params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.fixture
def answered(serve):
    """A service with 3,000 reports, open to anyone; and their contents."""
    service, contents = serve(MADE, open_results=True), crowd(MADE, 3000)
    service.post(MADE, joined(ids(3000), contents))
    return service, contents


def test_an_estimate_is_of_one_question(answered):
    service, contents = answered
    for k, question in enumerate(MADE.listed):
        mine = question.mechanism.tally(reports_on(contents, k, ())[()])
        found = ask(service, question=question.name).json()
        assert (found["question"], found["n"]) == (question.name, mine.n)
        assert found["items"] == mine.estimate().table().rows()
        assert (found["by"], found["groups"]) == ([], [])
        assert [row["n"] for row in found["asked"]] == [
            len(reports_on(contents, j, ())[()]) for j in range(len(MADE.listed))
        ]
    first = ask(service).json()
    assert first["question"] == NAMES[0] and first == ask(service, question=NAMES[0]).json()


def test_margins_of_a_cross_are_sums_of_its_cells(answered):
    service, _ = answered
    found = ask(service, question="age × ill").json()
    counts = [row["count"] for row in found["items"]]
    age, ill = (MADE.questions[name].policy for name in ("age", "ill"))
    for axis, (policy, told) in enumerate(zip((age, ill), found["margins"], strict=True)):
        assert told["question"] == ("age", "ill")[axis]
        for cells, row in zip(margins(age, ill, axis), told["items"], strict=True):
            assert row["count"] == pytest.approx(sum(counts[cell] for cell in cells))
        assert len(told["items"]) == policy.m
    assert ask(service, question="age").json()["margins"] == []


def test_every_group_of_a_cross_has_margins_with_the_errors_of_its_people(answered):
    service, contents = answered
    query = {"question": "age × ill", "by": "region"}
    found = ask(service, **query).json()
    place, mine = NAMES.index("age × ill"), MADE.questions["age × ill"]
    for key, rows in sorted(reports_on(contents, place, (0,)).items()):
        estimate = mine.tally(rows).estimate()
        group = next(g for g in found["groups"] if g["group"] == labels((0,), key))
        assert [row["question"] for row in group["margins"]] == ["age", "ill"]
        for told in group["margins"]:
            for row in told["items"]:
                cells = MADE.margins("age × ill")[told["question"]][row["item"]]
                expected = estimate.total(cells)
                assert row["count"] == pytest.approx(expected["count"])
                assert row["stderr"] == pytest.approx(expected["stderr"])
    plain = ask(service, question="age", by="region").json()["groups"]
    assert all(group["margins"] == [] for group in plain)
    few = ask(service, {}, question="age × ill", by=["region", "shift"]).json()["groups"]
    assert all((group["margins"] == []) == group["hidden"] for group in few)


def labels(by, key):
    return {MADE.public[k].name: MADE.public[k].items[x] for k, x in zip(by, key, strict=True)}


@pytest.mark.parametrize("by", [(0,), (1,), (0, 1), (1, 0)])
def test_an_estimate_by_group_is_that_of_its_people(answered, by):
    service, contents = answered
    for k, question in enumerate(MADE.listed):
        query = {"question": question.name, "by": [MADE.public[x].name for x in by]}
        found = ask(service, **query).json()
        direct = reports_on(contents, k, by)
        assert found["by"] == query["by"]
        assert [group["group"] for group in found["groups"]] == [
            labels(by, key) for key in sorted(direct)
        ]
        for key, group in zip(sorted(direct), found["groups"], strict=True):
            mine = question.mechanism.tally(direct[key])
            assert (group["n"], group["hidden"]) == (mine.n, False)
            assert group["items"] == mine.estimate().table().rows()
        table = list(csv.DictReader(io.StringIO(ask(service, format="csv", **query).text)))
        rows = [(group["group"], row) for group in found["groups"] for row in group["items"]]
        assert len(table) == len(rows)
        for told, (group, row) in zip(table, rows, strict=True):
            assert {key: told[key] for key in group} == group
            assert told["item"] == row["item"] and float(told["count"]) == row["count"]


def uneven(n, few):
    """Contents of n reports on the first question, of which `few` are from one group."""
    made = MADE.listed[0].mechanism
    rows = made.perturb_many(np.arange(n) % made.m)
    group = [(2, 1) if k < few else (0, 0) for k in range(n)]
    return [bytes([0, *group[k]]) + rows[k].tobytes() for k in range(n)]


@pytest.mark.parametrize("order", ["token first", "stranger first"])
def test_a_small_group_is_for_the_organiser_alone(serve, order):
    """Whoever asked before: neither the cache nor the ETag gives one the other's answer."""
    service, contents = serve(MADE, open_results=True), uneven(150, 49)
    service.post(MADE, joined(ids(150), contents))
    query = {"question": "age", "by": ["region", "shift"]}
    people = [("organiser", BEARER), ("stranger", {})]
    told = {}
    for who, headers in people if order == "token first" else people[::-1]:
        for _ in range(2):
            told[who] = ask(service, headers, **query)
    groups = {who: answer.json()["groups"] for who, answer in told.items()}
    small = labels((0, 1), (2, 1))
    for who, hidden in (("organiser", False), ("stranger", True)):
        large, few = (g for g in groups[who] if g["group"] in (labels((0, 1), (0, 0)), small))
        assert len(groups[who]) == (6 if hidden else 2)  # an empty group looks like a hidden one
        assert few["group"] == small and few["hidden"] is hidden
        assert (few["n"], few["items"] == []) == ((0, True) if hidden else (49, False))
        assert (large["n"], large["hidden"]) == (101, False) and large["items"]
    assert told["organiser"].headers["etag"] != told["stranger"].headers["etag"]
    for who, headers in people:
        other = told["stranger" if who == "organiser" else "organiser"].headers["etag"]
        mine = told[who].headers["etag"]
        for mark, status in ((other, 200), (mine, 304)):
            found = service.get(PATH, params=query, headers={**headers, "If-None-Match": mark})
            assert found.status_code == status
    for who, n in (("organiser", 2), ("stranger", 1)):
        written = ask(service, dict(people)[who], format="csv", **query).text
        assert len({(r["region"], r["shift"]) for r in csv.DictReader(io.StringIO(written))}) == n


@pytest.mark.parametrize(("few", "shown"), [(49, False), (50, True)])
def test_a_group_is_shown_from_the_least_number_on(serve, few, shown):
    service = serve(MADE, open_results=True)
    service.post(MADE, joined(ids(200), uneven(200, few)))
    groups = ask(service, {}, question="age", by="region").json()["groups"]
    assert [group["hidden"] for group in groups] == [False, True, not shown]


def test_every_table_has_a_mark_of_its_own(answered):
    service, _ = answered
    queries = [
        {"question": name, "by": by}
        for name in NAMES
        for by in ([], ["region"], ["shift"], ["region", "shift"], ["shift", "region"])
    ]
    marks = [ask(service, **query).headers["etag"] for query in queries]
    assert len(set(marks)) == len(queries)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("question=none", "question must be one of age, ill, wide, age × ill"),
        ("question=", "question must be one of"),
        ("by=age", "by names public questions, which are region, shift"),
        ("by=region&by=none", "by names public questions"),
        ("question=age&question=ill", "question is given more than once; give it once"),
        ("by=region&by=shift&by=region", "by names a public question more than once"),
    ],
)
def test_tables_that_there_are_not_are_refused(answered, query, sentence):
    answer = answered[0].get(f"{PATH}?{query}", headers=BEARER)
    assert_problem(answer, 400, "query", sentence)


def test_nothing_is_asked_openly_in_a_survey_of_one_question(serve):
    service = serve(survey("bits"))
    answer = service.get("/v1/collections/bits/estimate?by=region", headers=BEARER)
    assert_problem(answer, 400, "query", "none: this survey asks nothing openly")


def test_a_description_has_every_question(serve):
    told = serve(MADE).get("/v1/collections/several").json()
    assert d.Survey.from_document(told["survey"]) == MADE
    assert (told["title"], told["questions"], told["answers"]) == ("several", 4, 1)
    assert [row["name"] for row in told["asked"]] == NAMES
    assert [row["of"] for row in told["asked"]] == [[], [], [], ["age", "ill"]]
    assert [row["report_bytes"] for row in told["asked"]] == [
        question.mechanism.report_size for question in MADE.listed
    ]
    promise = MADE.promise()
    assert told["guarantee"]["sentences"] == promise.sentences()
    assert told["guarantee"]["ldp_epsilon"] == pytest.approx(math.log(promise.factor))


def test_public_questions_beside_one_question_need_no_number(serve):
    """A frame has the public answers only, and results by group all the same."""
    made = d.Survey("one", [Question("age", MADE.listed[0].mechanism)], public=[REGION])
    service, contents = serve(made), crowd(made, 200)
    assert {len(content) for content in contents} == {1 + made.mechanism.report_size}
    assert service.post(made, joined(ids(200), contents)).json()["accepted"] == 200
    bad = bytes([3]) + contents[0][1:]
    answer = service.post(made, joined(ids(1), [bad]))
    assert_problem(answer, 422, "public", 'answer 3 to the public question "region"')
    path = "/v1/collections/one/estimate?by=region"
    groups = service.get(path, headers=BEARER).json()["groups"]
    counts = [sum(content[0] == k for content in contents) for k in range(3)]
    assert [group["n"] for group in groups] == counts


def test_a_store_is_verified_question_by_question(store, place):
    store.create(MADE)
    store.add([Upload("several", ids(120), crowd(MADE, 120))])
    found = CliRunner().invoke(main, ["verify", "--store", place, "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.output)["odd"].get("several", []) == []


# ---- what published results tell -----------------------------------------------------------------


def told(service, **query):
    """The sentence on the results page of the organiser."""
    answer = service.get(PATH, headers=BEARER, params=query)
    assert answer.status_code == 200
    return answer.json()["published"]


def test_the_sentence_about_results_waits_for_the_end(serve, monkeypatch):
    """What is shown again and again tells more."""
    monkeypatch.setattr(limits, "FRESH", -1)
    service, contents = serve(MADE, open_results=False), crowd(MADE, 2_100)
    service.post(MADE, joined(ids(len(contents)), contents))
    assert told(service) == ""
    service.collector.store.close_collection("several")
    assert told(service).startswith("488 people are too few")
    assert all(told(service, question=name) == told(service) for name in NAMES)
    assert told(service, by="region").startswith("In the smallest group 149 people are too few")


def test_the_sentence_about_results_is_about_all_that_is_shown():
    """All questions together, and the smallest group of any."""
    contents = crowd(MADE, 2_100)
    tally = SurveyTally.count(MADE, contents)
    for _ in range(6):
        tally += tally
    sizes = {
        q.name: [64 * len(x) for x in reports_on(contents, k, (0,)).values()]
        for k, q in enumerate(MADE.listed)
    }
    promise, sentences = MADE.promise(), []
    for by, fold in (((), sum), ((0,), min)):
        people = {name: fold(groups) for name, groups in sizes.items()}
        expected = promise.published(people, grouped=bool(by))
        assert expected.n == min(people.values()) and expected.epsilon < promise.epsilon / 2
        assert documents.published(MADE, tally, by) == expected.sentence
        sentences.append(expected.epsilon)
    assert sentences[0] < sentences[1]  # the whole alone would promise too much
    assert documents.published(MADE, SurveyTally(MADE, {}), ()) == ""
