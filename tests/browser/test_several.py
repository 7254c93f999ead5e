"""A survey of several questions in a real browser: a public one, a cross and two languages."""

import math
import os
import re
from functools import cache

import numpy as np
import pytest
from chromium import TOKEN, browser, confirmed, missing, server, visitor

import discreet as d
from discreet.designs.surveys import design_survey
from discreet.promises.words import MARGIN, in_words

if missing():
    pytest.skip(missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("several")
expect.set_options(timeout=20_000)
__all__ = ["browser", "server", "visitor"]
FILE = {
    "name": "work",
    "answers": 2,
    "about": {"organiser": "Study of work", "language": "en"},
    "question": [
        {"name": "age", "text": "How old are you?",
         "level": [{"name": "all", "epsilon": 2, "items": ["under 40", "40 or older"]}]},
        {"name": "strain", "text": "What strained you most?", "last": ["nothing of this"],
         "level": [{"name": "serious", "epsilon": 2, "items": ["harassment", "burnout"]},
                   {"name": "common", "epsilon": 3, "items": ["nothing of this", "noise"]}]},
        {"name": "leaving", "text": "Do you think of leaving?",
         "level": [{"name": "both", "epsilon": 2, "items": ["yes", "no"]}]},
    ],
    "cross": [{"of": ["age", "strain"]}],
    "public": [{"name": "region", "text": "Where do you work?", "items": ["north", "south"]}],
    "translations": {
        "de": {
            "about": {"organiser": "Studie zur Arbeit"},
            "questions": {
                "age": {"text": "Wie alt sind Sie?",
                        "items": {"under 40": "unter 40", "40 or older": "40 oder älter"}},
                "leaving": {"text": "Denken Sie daran zu gehen?",
                            "items": {"yes": "ja", "no": "nein"}},
                "strain": {"text": "Was hat Sie am meisten belastet?",
                           "items": {"harassment": "Belästigung", "burnout": "Burnout",
                                     "noise": "Lärm", "nothing of this": "nichts davon"}},
            },
            "public": {"region": {"text": "Wo arbeiten Sie?",
                                  "items": {"north": "Norden", "south": "Süden"}}},
        }
    },
}  # fmt: skip
ANSWERS = {"region": "south", "age": "40 or older", "strain": "burnout", "leaving": "no"}
GERMAN = {"region": "Süden", "age": "40 oder älter", "strain": "Burnout", "leaving": "nein"}
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


@cache
def surveys():
    levels = [("all", 1, ["burnout", "something else"])]
    other = d.design(d.Policy.from_levels(levels, question="Which one?"))
    made = [design_survey({**FILE, "name": name}) for name in ("work", "work-again", "work-table")]
    # with randomness that is fixed, all bits are drawn alike whatever the answer
    bits = design_survey({**FILE, "name": "work-bits"}, model="opt0")
    return {s.name: s for s in (*made, bits, d.Survey("overlapping", [other]))}


def picture(page, name):
    """For whoever looks at the pages: PICTURES names a folder."""
    folder = os.environ.get("PICTURES")
    if not folder:
        return
    for kind, size in (("phone", PHONE), ("desk", DESK)):
        page.set_viewport_size(size)
        page.screenshot(path=f"{folder}/{name}-{kind}.png", full_page=True)
    page.set_viewport_size(PHONE)


def entries(page, person=1):
    """What this browser remembers."""
    key = "discreet-ledger/4" + (f"/{person}" if person > 1 else "")
    return page.evaluate("(key) => JSON.parse(localStorage.getItem(key)).entries", key)


def opened(visitor, server, name="work"):
    """The page of a survey on a phone."""
    visitor.page.set_viewport_size(PHONE)
    page = visitor.open(server.links[name])
    page.locator("#form").wait_for()
    return page


def asked_now(page):
    """The name of the question that is asked, by its words in either language."""
    heading = page.locator("#question").inner_text()
    german = FILE["translations"]["de"]
    rows = [(q["name"], q["text"]) for q in (*FILE["question"], *FILE["public"])]
    rows += [(k, x["text"]) for part in ("questions", "public") for k, x in german[part].items()]
    return next(name for name, text in rows if text == heading)


def step(page, labels=ANSWERS):
    """Answer the question that is asked."""
    name = asked_now(page)
    page.get_by_label(labels[name], exact=True).check()
    progress = page.locator("#progress").inner_text()
    heading = page.locator("#question").inner_text()
    confirmed(page)
    expect(page.locator("#question")).not_to_have_text(heading)
    return name, progress


def through(page, labels=ANSWERS):
    """Answer everything; the names and the progress of every step."""
    found = []
    while page.locator("#form").is_visible():
        found.append(step(page, labels))
    return found


def visible_text(page, place):
    expect(page.locator(place)).to_be_visible()
    return page.locator(place).inner_text()


def sent(page):
    page.locator("#send").click()
    page.locator("#receipt").wait_for()


def test_the_drawn_questions_are_asked_one_after_another(visitor, server):
    page = opened(visitor, server)
    survey = surveys()["work"]
    picture(page, "1-public")
    drawn = [entry["question"] for entry in entries(page)]
    assert len(drawn) == 2 and {e["state"] for e in entries(page)} == {"drawn"}
    promise = survey.promise()
    assert page.locator("#everything").text_content() == f"{promise.drawn} {promise.sentence}"
    assert asked_now(page) == "region"
    assert "sent" in page.locator("#sentences").inner_text()
    # nothing says that chance protects what is sent as it is
    assert page.locator("#lead").is_hidden() and "sent as it is" in visible_text(page, "#lead-open")
    seen = [step(page)]
    assert page.locator("#lead-open").is_hidden() and "chance" in visible_text(page, "#lead")
    picture(page, "2-question")
    seen += through(page)
    needed = {name for q in drawn for name in (survey.question(q).of or (q,))}
    assert [name for name, _ in seen] == [
        "region",
        *(n for n in ("age", "strain", "leaving") if n in needed),
    ]
    n = len(seen)
    counted = [re.findall(r"\d+", progress) for _, progress in seen]
    assert counted == [[str(k), str(n)] for k in range(1, n + 1)]
    assert page.locator("#question").inner_text() == "work"
    picture(page, "3-check")
    assert not visitor.posts()
    sent(page)
    assert page.locator("#question").inner_text() == "work"
    picture(page, "4-receipt")
    posts = visitor.posts()
    frames = [bytes.fromhex(e["id"] + e["report"]) for e in entries(page)]
    assert sorted(posts) == sorted(frames) and len(posts) == 2
    for frame in posts:  # id, number of the question, "south", report
        question = survey.listed[frame[16]]
        assert question.name in drawn and frame[17] == 1
        assert question.mechanism.coder.refusal(frame[18:]) is None
    assert {e["state"] for e in entries(page)} == {"counted"}
    shown = page.locator("#receipt code").all_text_contents()
    assert all(e["id"] in shown and e["report"] in shown for e in entries(page))


@pytest.mark.parametrize("fill", [0, 2])
def test_the_page_says_where_several_reports_tell_of_one_answer(visitor, server, fill):
    """Fixed randomness draws the first two questions, or the last two: of one of them no other
    tells."""
    visitor.context.add_init_script(f"crypto.getRandomValues = (x) => x.fill({fill});")
    page = opened(visitor, server, "work-bits")
    survey = surveys()["work-bits"]
    promise, said = survey.promise(), {}
    while page.locator("#form").is_visible():
        name = asked_now(page)
        said[name] = page.locator("#together").inner_text()
        expected = "" if name == "region" else promise.answer_sentence(name)
        assert said[name] == expected
        assert page.locator("#together").is_visible() == bool(expected)
        if expected:
            page.locator("#language").select_option("de")
            german = page.locator("#together").inner_text()
            assert german.startswith("Auch eine andere Frage") and "7,39" in german
            page.locator("#language").select_option("en")
        step(page)
    assert any(said.values()) and (fill == 0 or said["leaving"] == "")


def test_an_interrupted_survey_is_resumed(visitor, server):
    page = opened(visitor, server)
    step(page)
    step(page)
    before = entries(page)
    page = opened(visitor, server)
    after = entries(page)
    assert [e["question"] for e in after] == [e["question"] for e in before]
    done = [e for e in before if e["state"] == "shown"]
    assert all(e in after for e in done)  # a report that was drawn stays as it is
    if page.locator("#form").is_visible() and not page.locator("#prepare").is_enabled():
        again = through(page)
        rest = {q for e in before if e["state"] == "drawn" for q in
                (surveys()["work"].question(e["question"]).of or (e["question"],))}  # fmt: skip
        assert {x for x, _ in again} - {"region"} == rest
        assert ("region" in [x for x, _ in again]) == (not done)
    else:
        confirmed(page)
        page.locator("#check").wait_for()
    sent(page)
    posts = visitor.posts()
    assert len(posts) == 2
    assert {p.hex() for p in posts} >= {e["id"] + e["report"] for e in done}


def test_the_page_speaks_german(visitor, server):
    page = opened(visitor, server)
    page.locator("#language").select_option("de")
    assert page.locator("#question").inner_text() == "Wo arbeiten Sie?"
    assert "Studie zur Arbeit" in page.locator("#told").text_content()
    step(page, GERMAN)
    name = asked_now(page)
    page.get_by_label(GERMAN[name], exact=True).check()
    text = page.locator("#promise").text_content()
    assert f"„{GERMAN[name]}“" in text and "“" + GERMAN[name] not in text
    picture(page, "5-german")
    told = page.locator("#everything").text_content()
    assert "„Wo arbeiten Sie?“" in told and "region" not in told
    through(page, GERMAN)
    assert "Wo arbeiten Sie? Süden." in page.locator("#check").inner_text()
    assert "region" not in page.locator("#check").inner_text()
    picture(page, "6-german-check")
    sent(page)
    items = {x for q in surveys()["work"].listed for x in q.policy.items}
    items -= {"Burnout"}
    named = page.locator("#receipt").text_content()
    assert not any(f"“{item}”" in named for item in items)
    assert len(visitor.posts()) == 2


def summed_up(remembered):
    """The largest sum of the budgets of one item, over the reports of both surveys."""
    sums = {name: {} for name in ("work", "work-again")}
    for entry in remembered:
        told = sums[entry["name"]]
        for item, k in zip(entry["items"], entry["budgets"]["levelOf"], strict=True):
            told[item] = told.get(item, 0) + entry["budgets"]["levels"][k]
    both = set(sums["work"]) & set(sums["work-again"])
    if not both:  # the earlier answers were to other questions
        return ""
    most = max(sum(told[item] for told in sums.values()) for item in both)
    return f"by at most a factor of {in_words(math.exp(most) * MARGIN)}"


def test_an_overlapping_survey_asks_for_consent_once(visitor, server):
    page = opened(visitor, server)
    through(page)
    sent(page)
    page = opened(visitor, server, "work-again")
    assert page.locator("#consent").is_visible()
    # the region was told openly both times: the sentence is about a protected answer
    items = {x for q in surveys()["work"].listed if q.of is None for x in q.policy.items}
    named = re.search('between "(.*?)" and', page.locator("#summed").inner_text())
    assert named and named[1] in items and "any number" not in page.locator("#summed").inner_text()
    assert summed_up(entries(page)) in page.locator("#summed").inner_text()
    picture(page, "7-consent")
    page.get_by_label("south", exact=True).check()
    assert page.locator("#prepare").is_disabled()
    page.locator("#agree").check()
    while page.locator("#form").is_visible():
        assert page.locator("#agree").is_checked()
        step(page)
    sent(page)
    assert len(visitor.posts()) == 4
    page = opened(visitor, server, "overlapping")
    shares = {"strain", "age × strain"} & {e["question"] for e in entries(page)}
    assert page.locator("#consent").is_visible() == bool(shares)


def test_somebody_else_answers_the_same_survey(visitor, server):
    page = opened(visitor, server)
    through(page)
    sent(page)
    page.go_back()
    page.locator("#another").click()
    page.locator("#person").wait_for()
    assert asked_now(page) == "region"
    mine = entries(page)
    seen = [name for name, _ in through(page, {**ANSWERS, "region": "north"})]
    assert seen[0] == "region"
    sent(page)
    theirs = entries(page, 2)
    assert entries(page) == mine and {e["state"] for e in theirs} == {"counted"}
    assert {e["id"] for e in mine}.isdisjoint({e["id"] for e in theirs})
    assert {e["report"][2:4] for e in theirs} == {"00"} and {e["report"][2:4] for e in mine} == {
        "01"
    }
    assert len(visitor.posts()) == 4


EVERYTHING = """() => {
  const inputs = [...document.querySelectorAll("input")].map((x) => `${x.checked} ${x.value}`);
  return document.documentElement.outerHTML + inputs.join();
}"""


def drawn_pages(visitor, server, labels):
    """The page after every report is drawn, and the storage, with randomness that is fixed."""
    page = opened(visitor, server, "work-bits")
    found = []
    while page.locator("#form").is_visible():
        step(page, labels)
        if page.locator("#check").is_visible():
            found.append((page.evaluate(EVERYTHING), page.evaluate("JSON.stringify(localStorage)")))
    return page, found


def test_nothing_of_an_answer_stays_when_its_report_is_drawn(visitor, server):
    """The reports are the same, so everything that is left must be: twins differ in the answers."""
    visitor.context.add_init_script("crypto.getRandomValues = (x) => x.fill(0);")
    pages, posts = [], []
    for labels in (ANSWERS, {**ANSWERS, "age": "under 40", "strain": "noise", "leaving": "yes"}):
        _, found = drawn_pages(visitor, server, labels)
        pages.append(found)
        visitor.page.locator("#send").click()
        visitor.page.locator("#receipt").wait_for()
        posts.append(visitor.posts())
        visitor.leave()
        visitor.arrive(server.base)
    assert len(posts[0]) == len(posts[1]) > 0
    assert [len(x) for x in posts[0]] == [len(x) for x in posts[1]]
    assert posts[0] == posts[1]
    for (one, stored), (two, stored_too) in zip(*pages, strict=True):
        different = [k for k in range(min(len(one), len(two))) if one[k] != two[k]][:1]
        assert not different, (one[different[0] - 300 :][:400], two[different[0] - 300 :][:400])
        assert (one, stored) == (two, stored_too)


@pytest.fixture(scope="module")
def full(server):
    """A survey that many people have answered."""
    survey = surveys()["work-table"]
    rng = np.random.default_rng(5)
    rows = []
    for number, question in enumerate(survey.listed):
        mechanism = question.mechanism
        n, m = 3000, mechanism.m
        answers = np.where(rng.random(n) < 0.5, 1, rng.integers(m, size=n))
        regions = rng.integers(2, size=n)
        reports = mechanism.perturb_many(answers, indices=True)
        rows += [bytes([number, k]) + bytes(x) for k, x in zip(regions, reports, strict=True)]
    server.upload(survey, rows)
    return survey


def results(visitor, server):
    visitor.page.set_viewport_size(PHONE)
    page = visitor.open(server.results["work-table"])
    page.locator("#secret").fill(TOKEN)
    page.locator("#token button").click()
    page.locator("#rows tr").first.wait_for()
    return page


def test_results_by_question_and_by_group(visitor, server, full):
    page = results(visitor, server)
    picture(page, "8-results")
    first = server.estimate("work-table", question="age").json()
    assert page.locator("#asked").inner_text() == "How old are you?"
    assert page.locator("#rows tr").count() == 2
    assert page.locator("#n").inner_text() == "3,000"
    page.locator("#which").select_option("strain")
    expect(page.locator("#asked")).to_have_text("What strained you most?")
    assert page.locator("#rows tr").count() == 4
    page.locator("#by").select_option("region")
    page.locator("#group option[value='north']").wait_for(state="attached")
    assert page.locator("#rows tr").count() == 4
    page.locator("#group").select_option("north")
    found = server.estimate("work-table", question="strain", by="region").json()
    (north,) = [g for g in found["groups"] if g["group"] == {"region": "north"}]
    assert page.locator("#n").inner_text() == f"{north['n']:,}"
    assert page.locator("#rows tr").count() == 4
    best = max(north["items"], key=lambda row: row["count"])
    assert page.locator("#rows tr").first.inner_text().startswith(best["item"])
    picture(page, "9-group")
    assert page.locator("#cross").is_hidden() and first["margins"] == []


def test_results_speak_the_survey_s_words_in_the_reader_s_language(visitor, server, full):
    """And of an untranslated one its own: the numbers are the same."""
    visitor.context.add_init_script(
        "Object.defineProperty(navigator, 'languages', { get: () => ['de-AT', 'en'] })"
    )
    page = results(visitor, server)
    expect(page.locator("#asked")).to_have_text("Wie alt sind Sie?")
    page.locator("#which").select_option("strain")
    expect(page.locator("#asked")).to_have_text("Was hat Sie am meisten belastet?")
    german = FILE["translations"]["de"]["questions"]
    heads = page.locator("#rows th").evaluate_all("(all) => all.map((x) => x.firstChild.data)")
    assert {*heads} == {*german["strain"]["items"].values()}
    expect(page.locator("#search")).to_be_hidden()  # there are four answers
    assert "Was hat Sie am meisten belastet?" in page.locator("#which").inner_text()
    assert "Wo arbeiten Sie?" in page.locator("#by").inner_text()
    page.locator("#by").select_option("region")
    page.locator("#group option[value='north']").wait_for(state="attached")
    assert page.locator("#group option[value='north']").inner_text().startswith("Norden (")
    page.locator("#group").select_option("north")
    found = server.estimate("work-table", question="strain", by="region").json()
    (north,) = [g for g in found["groups"] if g["group"] == {"region": "north"}]
    assert page.locator("#n").inner_text() == f"{north['n']:,}".replace(",", ".")
    page.locator("#by").select_option("")
    page.locator("#which").select_option("age × strain")
    name = re.compile("nach Wie alt sind Sie. .abwärts. und Was hat Sie am meisten belastet")
    table = page.get_by_role("table", name=name)
    table.wait_for()
    strain, age = (list(german[x]["items"].values()) for x in ("strain", "age"))
    assert {*table.get_by_role("columnheader").all_inner_texts()} == {*strain, "Alle"}
    assert table.get_by_role("rowheader").all_inner_texts() == [*age, "Alle"]
    titles = table.locator("td.cell").evaluate_all("(all) => all.map((x) => x.title)")
    assert sum(x.startswith("unter 40 × Belästigung: ") for x in titles) == 1


def test_a_crossed_question_is_a_table_of_shares(visitor, server, full):
    page = results(visitor, server)
    page.locator("#which").select_option("age × strain")
    page.locator("#cross").wait_for()
    found = server.estimate("work-table", question="age × strain").json()
    table = page.get_by_role("table", name=re.compile("Share of people by age"))
    policy = full.question("age × strain").policy
    age, strain = (full.question(x).policy.items for x in ("age", "strain"))
    assert table.get_by_role("columnheader").all_inner_texts() == [*strain, "All"]
    assert table.get_by_role("rowheader").all_inner_texts() == [*age, "All"]
    counts = {row["item"]: row["count"] for row in found["items"]}
    shares = [f"{100 * counts[item] / found['n'] + 0:.1f} %" for item in policy.items]
    cells = table.locator("td.cell")
    ends = {
        row["item"]: f"{100 * row['share_low'] + 0:.1f} to {100 * row['share_high'] + 0:.1f}"
        for row in found["items"]
    }
    told = cells.evaluate_all(
        "(all) => all.map((x) => [x.firstChild.data, x.querySelector('small').textContent])"
    )
    assert told == [[share, ends[item]] for share, item in zip(shares, policy.items)]
    sure = [k for k, item in enumerate(policy.items) if item in found["sure"]]
    assert 0 < len(sure) < len(policy.items) or sure == [*range(len(policy.items))]
    marked = cells.evaluate_all(
        "(all) => all.flatMap((x, k) => x.classList.contains('sure') ? [k] : [])"
    )
    assert marked == sure
    sums = [row["count"] for margin in found["margins"] for row in margin["items"]]
    texts = [x.split("%")[0] + "%" for x in table.locator("td.sum").all_text_contents()]
    assert texts == [f"{100 * x / found['n'] + 0:.1f} %" for x in sums]
    picture(page, "10-cross")
    page.locator("#by").select_option("region")
    page.locator("#group option[value='north']").wait_for(state="attached")
    page.locator("#group").select_option("north")
    assert table.locator("td.cell").count() == len(policy.items)
    found = server.estimate("work-table", question="age × strain", by="region").json()
    (north,) = [g for g in found["groups"] if g["group"] == {"region": "north"}]
    row = north["margins"][0]["items"][0]
    ends = [f"{100 * row[key] + 0:.1f}" for key in ("share_low", "share_high")]
    sums = table.locator("td.sum")
    expect(sums.first).to_contain_text(f"{100 * row['count'] / north['n'] + 0:.1f} %")
    assert " to ".join(ends) in sums.first.inner_text()
