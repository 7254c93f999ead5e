"""What a person without the token can compute of a survey's results, however often they look."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from collecting import REGION, SHIFT, ids
from test_collector import Service

import discreet as d
from discreet.arrays.survey_tally import SurveyTally
from discreet.collector import publishing, store_reading
from discreet.collector.store import Upload, open_store
from discreet.device.wire import front
from discreet.survey import about

LEAST = 6
MANY = 90  # reports on each question
TABLES = [by for k in range(3) for by in combinations(range(2), k)]


@pytest.fixture(autouse=True)
def least(monkeypatch):
    monkeypatch.setattr(about, "LEAST", LEAST)


def marked(public=(REGION, SHIFT), questions=2):
    """A survey whose reports have a bit for every report of the test."""
    bits = d.Policy.from_levels([("all", 1, [str(k) for k in range(MANY)])])
    made = d.design(bits, "rappor")
    return d.Survey("marked", {f"q{k}": made for k in range(questions)}, public=public)


def marked_reports(made, seed=0):
    """On every question, report k has the bit k alone: a count says which reports are in it. One
    group is large, one small, one has a single report, and one comes late.
    """
    rng, contents = np.random.default_rng(seed), []
    for place in range(len(made.listed)):
        for k in range(MANY):
            row = np.zeros(MANY, np.uint8)
            row[k] = 1
            groups = [(0, 0), (0, 1), (1, 1), (2, 0)] if k < 60 else [(2, 0), (1, 0)]
            chances = [0.5, 0.2, 0.2, 0.1] if k < 60 else [0.9, 0.1]
            group = (2, 1) if k == 7 else groups[rng.choice(len(groups), p=chances)]
            group = group[: len(made.public)]
            report = np.packbits(row, bitorder="little").tobytes()
            contents.append((k, front(made, place, group) + report))
    return [content for _, content in sorted(contents, key=lambda x: x[0])]


def views(tally, tables):
    """Every table that anyone can ask for, as which reports it counts; by question."""
    found = {}
    for place in range(len(tally.survey.listed)):
        rows = [tally.question(place).counts[0]]
        for by in tables:
            rows += [group.counts[0] for group in tally.groups(place, by).values()]
        found[place] = rows
    return found


def smallest_computable(seen):
    """The number of reports in the smallest set of which somebody can compute the counts from these
    sums. Reports that are in the same sums cannot be told apart by any computation; so every such
    set is made of whole classes of them.
    """
    columns = Counter(tuple(column) for column in np.array(seen).T)
    return min((n for column, n in columns.items() if any(column)), default=None)


def poll(tmp_path, made, contents, tables=TABLES):
    """All that a person sees who asks for everything after every report, and after the end."""
    store, seen, last = open_store(str(tmp_path / "store")), {}, []
    store.create(made)
    for content in [*contents, None, None]:
        if content is None:
            store.close_collection(made.name)
        else:
            store.add([Upload(made.name, ids(1), [content])])
        tally = store.published(made.name)
        for place, rows in views(tally, tables).items():
            seen.setdefault(place, []).extend(row.tolist() for row in rows)
        last.append(tally)
    whole = store.tally(made.name)
    store.close()
    return {place: sorted(set(map(tuple, rows))) for place, rows in seen.items()}, last, whole


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nobody_can_compute_the_counts_of_few_reports(tmp_path, seed):
    made = marked()
    seen, shown, _ = poll(tmp_path, made, marked_reports(made, seed))
    for rows in seen.values():
        assert len(rows) > 10  # it was worth looking
        assert smallest_computable(rows) >= LEAST
    assert shown[-1] == shown[-2] and shown[-1].n > shown[-3].n  # it ended, with more


@pytest.mark.parametrize("public", [(), (REGION,), (REGION, SHIFT)], ids=len)
def test_all_but_a_few_reports_are_shown_in_the_end(tmp_path, public):
    made = marked(public)
    tables = [by for by in TABLES if all(k < len(public) for k in by)]
    seen, shown, whole = poll(tmp_path, made, marked_reports(made), tables)
    for place, rows in seen.items():
        assert smallest_computable(rows) >= LEAST
        assert MANY - LEAST < shown[-1].question(place).n <= whole.question(place).n == MANY
        for key, group in shown[-3].groups(place).items():  # still open
            assert whole.groups(place)[key].n - group.n < LEAST


def whole_survey_in_steps(shown, whole, closed):
    return whole if whole.n - shown.n >= (1 if closed else LEAST) else shown


def groups_alone(shown, whole, closed):
    """Every group in steps of its own, but the table of all of them is up to date."""
    slots = {
        slot: tally
        for slot, tally in whole.slots.items()
        if tally.n - (shown.slots[slot].n if slot in shown.slots else 0) >= LEAST
    }
    rest = sum(t.n for t in whole.slots.values()) - sum(t.n for t in slots.values())
    return whole if rest and closed else SurveyTally(whole.survey, {**shown.slots, **slots})


def one_too_few(left, kept, least):
    return LARGE(left, kept, least - 1)


LARGE = publishing._large


@pytest.mark.parametrize("rule", [whole_survey_in_steps, groups_alone])
def test_other_rules_let_somebody_compute_them(tmp_path, monkeypatch, rule):
    monkeypatch.setattr(store_reading, "publish_more", rule)
    made = marked()
    seen, *_ = poll(tmp_path, made, marked_reports(made))
    assert min(map(smallest_computable, seen.values())) < LEAST


def test_batches_of_one_report_too_few_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "_large", one_too_few)
    made = marked()
    seen, *_ = poll(tmp_path, made, marked_reports(made))
    assert min(map(smallest_computable, seen.values())) == LEAST - 1


def test_whoever_polls_the_service_sees_steps_of_groups(tmp_path):
    """The numbers of reports of every table, group and rest, in JSON and CSV: between any two
    moments each of them differs by nothing or by at least the minimum. Groups that are not shown
    look the same with and without reports.
    """
    made = marked(questions=1)
    service = Service(tmp_path, made, open_results=True)
    seen, hidden = {}, set()
    for content in [*marked_reports(made), None]:
        if content is None:
            service.collector.store.close_collection("marked")
        else:
            service.post(made, ids(1)[0] + content)
        if service.get("/v1/collections/marked/estimate").headers["etag"] in hidden:
            continue
        for by in ([], ["region"], ["shift"], ["region", "shift"]):
            answer = service.get("/v1/collections/marked/estimate", params={"by": by})
            found = answer.json()
            hidden.add(answer.headers["etag"] if not by else "")
            assert found["asked"][0]["n"] == found["n"]
            groups = {tuple(g["group"].values()): g["n"] for g in found["groups"]}
            assert len(groups) == {0: 0, 1: 3 if by == ["region"] else 2, 2: 6}[len(by)]
            assert all(g["hidden"] == (g["n"] == 0) == (g["items"] == []) for g in found["groups"])
            rest = {"rest": found["n"] - sum(groups.values())}
            for key, n in {**groups, **rest, "all": found["n"]}.items():
                seen.setdefault((*by, key), set()).add(n)
    service.close()
    assert max(map(len, seen.values())) > 4
    for key, numbers in seen.items():
        for low, high in combinations(sorted(numbers), 2):
            assert high - low >= LEAST, key
