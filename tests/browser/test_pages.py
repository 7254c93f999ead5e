"""The pages in a real Chromium, against a real `discreet serve`: what is seen, what is sent."""

import base64
import hashlib
import json
import math
import random
import re
import socket
import time
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import chromium
import handmade
import numpy as np
import pytest
from checks import must_fail
from chromium import Server, Visitor, Wire, command, confirmed, hosted, look_closely
from drawing import (
    WHOLE,
    check_frequencies,
    expected,
    features,
    linked,
    moved,
    named_in,
    some_report,
    too_large,
    too_small,
    words_for,
)
from exhaustive import groups_of
from organising import organiser, rows
from small import KINDS, pair_chances, small

import discreet as d
from discreet.collector import pages
from discreet.data.examples import example
from discreet.errors import short_fingerprint
from discreet.promises.words import in_words
from discreet.survey import Survey

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser")
expect.set_options(timeout=20_000)
STATIC = Path(pages.__file__).parent / "static"

# ---- the collections -----------------------------------------------------------------------------

HTML = '<img src=x onerror="window.hacked = 1">'
QUESTION = f'<script>window.hacked = 1</script>{HTML} Which & "why"?'
ODD = 'odd <b> & "name"'
LONG = "x" * 80
THANKS = "Thank you. Your report is counted."


def levels(*rows, question="Which of these?", **more):
    return d.Policy.from_levels(list(rows), question=question, **more)


def sets(**more):
    """A question with several answers."""
    serious, common = ["HIV", "hepatitis"], ["cold", "flu", "headache", "back pain", "allergy"]
    return levels(("serious", 1, serious), ("common", 2, common), **{"kind": "set", **more})


def forty():
    """The same with many of them, of which five are reported."""
    rows = [
        ("grave", 1, ["HIV", "hepatitis"]),
        ("private", "ln(4)", ["depression", "acne", "asthma"]),
        ("common", 2, [f"item {k}" for k in range(35)]),
    ]
    return levels(*rows, kind="set", padding=5)


@cache
def mechanisms():
    """All that is asked for; the last one, the toy survey, `discreet serve` designs itself."""
    toy, health = example("toy"), example("health-survey")
    wide = levels(
        ("rare", 1, [f"rare {k}" for k in range(100)]),
        ("common", 2, [f"item {k}" for k in range(1900)]),
    )
    odd = levels(
        ("<i>rare", 1, [HTML, "\"quotes\" & 'apostrophes'", "שלום עולם"]),
        ("b", 2, ["&lt;b&gt;", LONG]),
        question=QUESTION,
    )
    return {
        "bits": d.design(health, "opt0"),
        "parts": d.design(health),
        "ticket": d.design(health, encoding="ticket"),
        "wide": d.design(wide, encoding="ticket"),
        "sets": d.design(sets(), "opt0", padding=3),
        "set-parts": d.design(sets(), "subset", encoding="bits", padding=3, goal="total"),
        "set-ticket": d.design(sets(), "subset", encoding="ticket", padding=3),
        "set-hits": d.design(sets(), "hits", padding=4),
        "set-each": d.design(sets(kind="each"), "each"),
        "forty": d.design(forty(), "hits"),
        "renamed": d.design(toy),
        "nudged": d.design(toy, "grr"),
        "closed": d.design(toy),
        "closing": d.design(toy),
        ODD: d.design(odd),
        "toy-survey": d.design(toy),
    }


@cache
def surveys():
    """A survey of every one of these questions."""
    toy = d.Survey.design(Path(d.__file__).parent / "data" / "toy.toml")
    found = {name: d.Survey(name, [mechanism]) for name, mechanism in mechanisms().items()}
    return {**found, toy.name: toy}


def document(name):
    return mechanisms()[name].to_document()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    toy = Path(d.__file__).parent / "data" / "toy.toml"
    found = Server(
        tmp_path_factory.mktemp("server"),
        [x for x in surveys().values() if x.name != "toy-survey"],
        str(toy),
    )
    assert {name: link.partition("#")[2] for name, link in found.links.items()} == {
        name: survey.fingerprint for name, survey in surveys().items()
    }
    found.close_collection("closed")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def browser():
    with chromium.launched() as found:
        yield found


@pytest.fixture(scope="module")
def someone(browser):
    return Visitor(browser)


@pytest.fixture
def visitor(someone, server):
    someone.arrive(server.base)
    yield someone
    someone.leave()


@pytest.fixture
def wrong_format(browser, server):
    """A visitor of one test alone: a script that runs before the page cannot be taken back."""
    found = Visitor(browser, server.base)
    yield found
    found.leave()
    found.context.close()


@pytest.fixture(scope="module")
def someone_else(browser):
    found = Visitor(browser)
    found.page.clock.install()
    return found


@pytest.fixture
def patient(someone_else, server):
    """A visitor for whom time passes when the test says so."""
    someone_else.arrive(server.base)
    yield someone_else
    someone_else.leave()


# ---- what a participant does ---------------------------------------------------------------------


def invited(visitor, link, another=False):
    page = (visitor.another if another else visitor.open)(link)
    page.locator("#form").wait_for()
    look_closely(page)
    return page


def choose(page, *labels):
    """As a person does: what is not in sight is searched for."""
    for label in labels:
        box = page.get_by_label(label, exact=True)
        if not box.count():
            page.locator("#search").fill(label)
        box.check()


def prepare(page):
    """What the page says will be sent."""
    confirmed(page)
    expect(page.get_by_role("heading", name=re.compile("^This will be sent"))).to_be_focused()
    look_closely(page)
    return bytes.fromhex(page.locator("#bytes").inner_text())


def send(page):
    """What is uploaded then: id and report; the receipt names them."""
    with page.expect_request(lambda request: request.method == "POST") as found:
        page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("heading", name=THANKS)).to_be_focused()
    body = found.value.post_data_buffer
    assert (page.locator("#id").inner_text(), page.locator("#sent").inner_text()) == (
        body[:16].hex(),
        body[16:].hex(),
    )
    return body


def answer(page, *labels):
    choose(page, *labels)
    shown = prepare(page)
    body = send(page)
    assert body[16:] == shown
    return body


def refused(visitor, page, words):
    """A kind sentence in an alert, and its cause; nothing can be chosen, nothing was sent."""
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(words)
    assert len(page.locator("#trouble").inner_text().splitlines()) == 1
    expect(page.get_by_role("status")).to_have_count(0)
    expect(page.locator("button:visible:not(#try)")).to_have_count(0)
    assert visitor.posts() == []


def ledger(page):
    return json.loads(
        page.evaluate("localStorage.getItem('discreet-ledger/4')") or '{"entries": []}'
    )["entries"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("toy-survey", "anemia"),
        ("bits", "HIV"),
        ("parts", "arthritis"),
        ("wide", "rare 7"),
        ("nudged", "anemia"),
        (ODD, HTML),
    ],
    ids=["silent", "bits", "parts", "ticket", "grr", "odd"],
)
def test_answer_a_single_question(visitor, server, name, label):
    mechanism, before = mechanisms()[name], server.n(name)
    short = short_fingerprint(surveys()[name].fingerprint)
    page = invited(visitor, server.links[name])
    expect(page).to_have_title(mechanism.policy.question)
    expect(page.get_by_role("heading", level=1)).to_have_text(mechanism.policy.question)
    expect(page.locator("#pinned")).to_contain_text(
        f"was verified on your device. Fingerprint: {short}"
    )
    button = page.locator("#prepare")
    expect(button).to_be_disabled()
    body = answer(page, label)
    assert visitor.posts() == [body]
    assert len(body) == 16 + mechanism.report_size
    expect(page.locator("#survey")).to_have_text(surveys()[name].fingerprint)
    expect(page.locator("#named")).to_have_text(repeated(document(name), body[16:]))
    expect(page.locator("#thanks")).to_have_text("It is counted once, and for good.")
    assert server.n(name) == before + 1
    assert [(e["name"], e["id"] + e["report"], e["state"]) for e in ledger(page)] == [
        (name, body.hex(), "counted")
    ]


@pytest.mark.parametrize(
    "chosen",
    [["HIV", "flu"], ["cold", "flu", "headache", "allergy"], []],
    ids=["two", "four", "none"],
)
@pytest.mark.parametrize("name", ["sets", "set-parts", "set-ticket", "set-hits", "set-each"])
def test_answer_a_set_question(visitor, server, name, chosen):
    before = server.n(name)
    page = invited(visitor, server.links[name])
    none = page.get_by_role("button", name="None of these: continue")
    expect(none).to_be_enabled()
    choose(page, *chosen)
    expect(none).to_have_count(0 if chosen else 1)
    assert page.locator("#sentences p").all_inner_texts() == promises_of(name, chosen)
    body = answer(page)
    assert visitor.posts() == [body]
    assert server.n(name) == before + 1


def promises_of(name, chosen):
    """A sentence per level of what is chosen, then one about the whole list."""
    mechanism = mechanisms()[name]
    policy, guarantee = mechanism.policy, mechanism.guarantee()
    found = []
    for level in sorted({policy.level_of[policy.items.index(x)] for x in chosen}):
        labels = [x for x, k in zip(policy.items, policy.level_of, strict=True)
                  if k == level and x in chosen]  # fmt: skip
        quoted = ", ".join(f"“{x}”" for x in labels[:3])
        more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
        which = f"one of {quoted}{more}" if len(labels) > 1 else quoted
        found.append(
            f"Having or not having {which}, whatever else you tick, changes the chance of any "
            f"report by at most a factor of {in_words(guarantee.factors[level])}."
        )
    padding = mechanism.padding or policy.m
    if policy.kind.pads and mechanism.encoding.lists == "sampled":
        one = "At most one of the answers that you tick is drawn at random."
        found += [f"{one} Nothing else is reported."] * bool(chosen)
    elif len(chosen) > padding:
        drawn = "one of them is" if padding == 1 else f"{padding} of them are"
        found.append(
            f"You ticked {len(chosen)}: {drawn} drawn at random, and nothing else is reported."
        )
    return [*found, guarantee.list_sentence(chosen)]


def test_a_participant_reads_what_is_promised_of_her_list(visitor, server):
    """Three of forty answers, of two levels; on a phone, before and after."""
    mechanism = mechanisms()["forty"]
    page = invited(visitor, server.links["forty"])
    read = page.locator("#sentences p")
    assert read.all_inner_texts() == promises_of("forty", [])
    assert len(read.all_inner_texts()) == 1
    choose(page, "item 7", "depression", "item 30")
    chosen = ["depression", "item 7", "item 30"]
    assert read.all_inner_texts() == promises_of("forty", chosen)
    assert "Having or not having one of “item 7”, “item 30”, whatever" in read.nth(1).inner_text()
    check_narrow(page)
    choose(page, "item 1", "item 2")
    assert "“item 1”, “item 2”, “item 7” and 1 more, whatever" in read.nth(1).inner_text()
    assert read.count() == 3
    page.get_by_label("item 1", exact=True).uncheck()
    page.get_by_label("item 2", exact=True).uncheck()
    page.locator("#how > summary").click()
    rows = page.locator("#promises tr").all()
    cells = [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]
    *_, whole = mechanism.guarantee().sentences()
    assert [who.partition(":")[0] for who, _ in cells] == [
        "grave", "private", "common", "Whole lists",
    ]  # fmt: skip
    assert f"Whole lists: {cells[-1][1][0].lower()}{cells[-1][1][1:]}" == whole
    check_narrow(page)
    report = prepare(page)
    named = handmade.named_by(document("forty"), report)
    shown = page.locator("#bits li").all_inner_texts()
    assert shown[:24] == [mechanism.policy.items[k] for k in named[:24]]
    meaning = page.locator("#meaning").inner_text()
    assert re.fullmatch(
        r"The report is a row of numbers that stands for a random choice among \d+ answers; it "
        rf"names {len(named) or 'none'}: one of yours(, if it is one of these,)? is named with a "
        r"chance of \d+ %, one that is not yours with about [\d.]+ %; if more than 5 are yours, "
        r"5 of them, drawn at random, count as yours\.( It says nothing about \d+ of the answers, "
        r"and is one of \d kinds, drawn at random whatever your answers are\.| It is one of \d "
        r"kinds, drawn at random whatever your answers are\.)?",
        meaning,
    ), meaning
    check_narrow(page)
    assert send(page)[16:] == report


def chances_told(document_, o):
    """Of the items that part o speaks about: how many they are, the chances that one's own is
    named, and the chances that another is; these from every kind of answer that people may have.
    """
    of = groups_of(document_)
    speaking = [i for i, g in enumerate(of) if document_["parts"][o]["other"][g]]
    held = [i for i, g in enumerate(of) if of[:i].count(g) < 2]  # more are like these
    nothing = [None] if document_["padding"] else []
    own, others = [], []
    for x in [*held, *nothing]:
        named = np.diagonal(pair_chances(document_, o, x))
        own += [named[i] for i in speaking if i == x]
        others += [named[i] for i in speaking if i != x]
    return len(speaking), own, others


def says(text, chances):
    """A percentage, or two that differ: the smallest and the largest, rounded as printed."""
    told = [x.removesuffix(" %") for x in text.split(" to ")]
    for x, chance in zip((told[0], told[-1]), (min(chances), max(chances)), strict=True):
        digits = 1 if chance < 0.1 else 0
        assert len(x.partition(".")[2]) == digits
        assert abs(float(x) - 100 * chance) <= 0.5 * 10**-digits + 1e-9, (text, chances)
    assert len(set(told)) == len(told)


OPENINGS = {
    "fixed": "The report names {named} of {among}, drawn at random: ",
    "bits": "For each of {among} it was drawn at random whether the report names it; "
    "it names {named}: ",
    "ticket": "The report is a number that stands for a random choice among {among}; "
    "it names {named}: ",
}
CHANCES = (
    r"(?P<who>[^%]*) is named with a chance of (?P<own>[^,]*), "
    r"one that is not yours with about (?P<others>[^%]* %(?: to [^%]* %)?)\.(?P<rest>.*)"
)


def check_meaning(document_, report, sentence):
    """Every word and every number of what the page says about a report."""
    (o,), (bits,) = named_in(document_, np.frombuffer(report, np.uint8)[None])
    m, kinds = len(bits), len(document_["parts"])
    among, own, others = chances_told(document_, o)
    rest = []
    if among:
        count = "1 answer" if among == 1 else f"{among:,} answers"
        opening = OPENINGS[document_["encoding"]["kind"]]
        opening = opening.format(named=bits.sum() or "none", among=count)
        assert sentence.startswith(opening), (opening, sentence)
        told = re.fullmatch(CHANCES, sentence.removeprefix(opening))
        assert told, sentence
        these = among < m
        assert told["who"] == (
            f"one of yours, if one is drawn at random{' and is one of these' * these},"
            if document_["padding"]
            else f"your own answer{', if it is one of these,' * these}"
        )
        says(told["own"], own)
        says(told["others"], others)
        if these:
            rest = [f"says nothing about {m - among:,} of the answers"]
        sentence = told["rest"]
    else:
        silent = "The report names no answer, whatever yours is."
        assert sentence.startswith(silent)
        sentence = sentence.removeprefix(silent)
    if kinds > 1:
        chances = "with chances that depend on your answer"
        rest.append(f"is one of {kinds} kinds, drawn at random {chances}")
    assert sentence == (f" It {', and '.join(rest)}." if rest else "")


def repeated(document_, report):
    """What the receipt says that a report names."""
    _, (bits,) = named_in(document_, np.frombuffer(report, np.uint8)[None])
    named = [document_["policy"]["items"][k] for k in np.flatnonzero(bits)]
    more = f" and {len(named) - 5:,} more" if len(named) > 5 else ""
    return ", ".join(f"“{x}”" for x in named[:5]) + more or "no answer"


TOLD = {  # answers to one question of every encoding and input
    "parts": ["HIV"], "bits": ["HIV"], "ticket": ["HIV"], "toy-survey": ["HIV"],
    "set-parts": ["HIV", "flu"], "sets": ["HIV", "flu"], "set-ticket": [],
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_what_will_be_sent_is_shown_in_words(visitor, server, name):
    """The items that the report names, what that means in every part, and the receipt."""
    document_, rng = document(name), random.Random(name)
    seen = set()
    while len(seen) < len(document_["parts"]):
        report = some_report(document_, rng)
        (o,), (bits,) = named_in(document_, np.frombuffer(report, np.uint8)[None])
        if o in seen:
            continue
        if seen:
            visitor.page.evaluate("localStorage.clear()")  # else the first draw would stay
        seen.add(o)
        page = invited(visitor, server.links[name])
        script(page, bytes(16), document_, TOLD[name], report)
        choose(page, *TOLD[name])
        assert prepare(page) == report
        yes = [document_["policy"]["items"][k] for k in np.flatnonzero(bits)]
        shown = page.locator("#bits li").all_inner_texts()
        assert shown == (yes if len(yes) <= 24 else [*yes[:24], f"and {len(yes) - 24} more"])
        sentence = page.locator("#meaning").inner_text()
        check_meaning(document_, report, sentence)
    assert visitor.posts() == []
    assert send(page)[16:] == report
    assert page.locator("#named").inner_text() == repeated(document_, report)
    # The twins: another number, another part's or another mechanism's sentence, another report.
    if re.search(r"\d %", sentence):
        digit = re.search(r"(\d) %", sentence)
        other = str((int(digit[1]) + 5) % 10)
        wrong = sentence[: digit.start()] + other + sentence[digit.end() - 2 :]
        must_fail(check_meaning, document_, report, wrong)
    must_fail(check_meaning, document_, report, sentence + " It is safe.")
    wrong = next(x for x in TOLD if x != name and document(x)["parts"] != document_["parts"])
    must_fail(check_meaning, document(wrong), some_report(document(wrong), rng), sentence)


def test_looking_again_does_not_draw_again(visitor, server):
    """Nor does loading the page again, or choosing another answer; nothing is sent; the promise is
    that of the answer.
    """
    mechanism = mechanisms()["bits"]
    page = invited(visitor, server.links["bits"])
    choose(page, "HIV")
    factor = math.ceil(100 * math.exp(mechanism.guarantee().level_epsilons[0]) * (1 - 1e-12)) / 100
    expect(page.locator("#sentences")).to_have_text(
        "Whoever sees your report can change their odds between “HIV” and any other answer by at "
        f"most a factor of {factor:g}."
    )
    expect(page.locator("#before")).to_be_hidden()
    report = prepare(page)
    for label in ("HIV", "anemia"):
        page.get_by_role("button", name="Back").click()
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        expect(page.locator("#before")).to_contain_text("not sent yet. It stays the same")
        choose(page, label)
        assert prepare(page) == report
    for _ in range(3):
        page.reload()
        page.locator("#form").wait_for()
        expect(page.locator("#before")).to_contain_text("not sent yet. It stays the same")
        choose(page, "HIV")
        assert prepare(page) == report
    assert visitor.posts() == [] and [entry["state"] for entry in ledger(page)] == ["shown"]
    assert send(page)[16:] == report


def test_with_another_ledger_it_is_another_draw(visitor, server):
    """The twin: what is remembered makes the difference. Each of 40 other items is named with a
    chance of 0.27, so two draws are the same with one of (0.27² + 0.73²)^40 < 1e-8.
    """
    drawn = set()
    for _ in range(2):
        page = invited(visitor, server.links["bits"])
        choose(page, "HIV")
        drawn.add(prepare(page))
        page.evaluate("localStorage.clear()")
    assert len(drawn) == 2


def test_where_the_ledger_was_removed_meanwhile_the_question_is_asked_again(visitor, server):
    """The answer was forgotten with the first draw, so there is nothing to draw from."""
    page = invited(visitor, server.links["bits"])
    choose(page, "HIV")
    prepare(page)
    page.get_by_role("button", name="Back").click()
    page.evaluate("localStorage.clear()")
    page.locator("#prepare").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert [entry["state"] for entry in ledger(page)] == ["drawn"]
    choose(page, "HIV")
    report = prepare(page)
    assert [entry["report"] for entry in ledger(page)] == [report.hex()]
    assert visitor.posts() == []


def test_answering_again_sends_the_same_report(visitor, server):
    before = server.n("parts")
    page = invited(visitor, server.links["parts"])
    first = answer(page, "HIV")
    page.reload()
    page.locator("#form").wait_for()
    assert page.get_by_role("radio", checked=True).count() == 0  # the answer is nowhere
    expect(page.locator("#before")).to_contain_text(
        "it sends the same report again, and that counts once"
    )
    choose(page, "acne")
    assert prepare(page) == first[16:]
    expect(page.locator("#repeated")).to_have_text(
        "This is the report that this browser made before."
    )
    assert send(page) == first
    expect(page.locator("#thanks")).to_have_text(
        "The server had this report already. It is counted once. "
        "It is the report that this browser had made before."
    )
    assert visitor.posts() == [first, first]
    assert server.n("parts") == before + 1


def test_the_receipt_can_be_seen_again(visitor, server):
    """By the browser's own Back, and after the page was loaded again; nothing is sent for it."""
    page = invited(visitor, server.links["parts"])
    choose(page, "HIV")
    prepare(page)
    expect(page.locator("#check")).to_contain_text("Once sent, it cannot be taken back")
    body = send(page)
    for how in (page.go_back, page.reload):
        how()
        page.locator("#form").wait_for()
        expect(page.locator("#before")).to_contain_text("This browser has answered this question.")
        page.get_by_role("button", name="Show the receipt").click()
        expect(page.get_by_role("heading", name=THANKS)).to_be_focused()
        look_closely(page)
        shown = [page.locator(where).inner_text() for where in ("#id", "#sent", "#survey")]
        assert shown == [body[:16].hex(), body[16:].hex(), surveys()["parts"].fingerprint]
        expect(page.locator("#named")).to_have_text(repeated(document("parts"), body[16:]))
    assert visitor.posts() == [body]


def test_the_browser_s_back_leads_to_the_question(visitor, server):
    """From what would be sent, with the answer forgotten; nothing was sent, so no receipt."""
    page = invited(visitor, server.links["bits"])
    choose(page, "HIV")
    report = prepare(page)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Show the receipt")).to_be_hidden()
    assert prepare(page) == report and page.url == server.links["bits"]


def test_two_tabs_send_one_report(visitor, server):
    """Both show a report before either sends: it is one, the first that was written down."""
    before = server.n("toy-survey")
    first, second = (
        invited(visitor, server.links["toy-survey"], another) for another in (False, True)
    )
    for page, label in ((first, "HIV"), (second, "anemia")):
        choose(page, label)
        prepare(page)
    assert send(first) == send(second)
    expect(second.locator("#thanks")).to_contain_text(
        "It is the report that this browser had made before."
    )
    assert server.n("toy-survey") == before + 1
    assert len(ledger(first)) == 1


# ---- questions that overlap ----------------------------------------------------------------------


def summed(*names):
    """The factor of all answers about the toy survey's items together."""
    each = [mechanisms()[name].guarantee().level_epsilons for name in names]
    epsilons = [sum(row) for row in zip(*each)]
    return (
        f"by at most a factor of {math.ceil(math.exp(max(epsilons)) * 100 * (1 - 1e-12)) / 100:g}."
    )


@pytest.mark.parametrize("name", ["renamed", "nudged"])
def test_the_same_items_under_another_name_need_consent(visitor, server, name):
    before = server.n(name)
    answer(invited(visitor, server.links["toy-survey"]), "HIV")
    page = invited(visitor, server.links[name])
    agree, button = (
        page.get_by_role("checkbox", name="I agree to that."),
        page.locator("#prepare"),
    )
    expect(page.locator("#summed")).to_contain_text(
        "You already gave an earlier answer about the same items: together,"
    )
    expect(page.locator("#summed")).to_contain_text(summed("toy-survey", name))
    choose(page, "HIV")
    expect(button).to_be_disabled()
    agree.check()
    expect(button).to_be_enabled()
    agree.uncheck()
    expect(button).to_be_disabled()
    assert len(visitor.posts()) == 1
    agree.check()
    answer(page)
    assert server.n(name) == before + 1


def test_an_overlap_that_arises_while_the_page_is_open_can_be_agreed_to(visitor, server):
    """Another tab has answered about the same items: nothing is sent, and consent is asked for."""
    page = invited(visitor, server.links["renamed"])
    choose(page, "HIV")
    prepare(page)
    answer(invited(visitor, server.links["toy-survey"], another=True), "HIV")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("answer only if you agree to that")
    assert len(visitor.posts()) == 1
    agree = page.get_by_role("checkbox", name="I agree to that.")
    assert agree.is_visible()
    agree.check()
    answer(page)
    assert len(visitor.posts()) == 2


def test_other_items_need_no_consent(visitor, server):
    """The twin: a question about other items asks for nothing."""
    answer(invited(visitor, server.links["toy-survey"]), "HIV")
    page = invited(visitor, server.links["wide"])
    expect(page.locator("#consent")).to_be_hidden()
    answer(page, "rare 7")


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        (
            "0" * 64,
            f"The invitation is for fingerprint {' '.join(['0000'] * 8)}… but this is ",
        ),
        (
            "abc",
            "This link is damaged: the part after # is no whole fingerprint.",
        ),
        (
            "fingerprint=" + "f" * 64,
            f"The invitation is for fingerprint {' '.join(['ffff'] * 8)}… but this is ",
        ),
    ],
    ids=["another", "none", "named"],
)
def test_another_fingerprint_is_refused(visitor, server, fragment, words):
    page = visitor.open(f"{server.base}/c/toy-survey#{fragment}")
    refused(visitor, page, words)
    # The invitation as it should be, put in the same tab: now it can be answered.
    page.goto(server.links["toy-survey"])
    page.locator("#form").wait_for()


@pytest.mark.parametrize("beside", ["&x=1", "&fingerprint=" + "0" * 64])
@pytest.mark.parametrize("start", ["#", "#fingerprint="])
def test_what_only_seems_to_pin_the_question_is_refused(visitor, server, start, beside):
    """The right fingerprint is in the link, for everybody to see."""
    page = visitor.open(server.links["toy-survey"].replace("#", start) + beside)
    refused(visitor, page, "the part after # is no whole fingerprint")


def test_without_a_fingerprint_the_page_says_so(visitor, server):
    page = invited(visitor, f"{server.base}/c/toy-survey")
    expect(page.locator("#pinned")).to_contain_text(
        "Your invitation names no fingerprint to compare"
    )


def tampered(sign):
    """The toy survey with HIV told apart by too much; signed anew, or not."""
    body = surveys()["toy-survey"].to_canonical()
    first, second, *_ = body["questions"][0]["mechanism"]["parts"]
    assert first["chance"][0] > first["chance"][1]
    first["chance"][0] += 10**6
    second["chance"][0] -= 10**6
    return {
        **body,
        "fingerprint": Survey.fingerprint_body(body)
        if sign
        else surveys()["toy-survey"].fingerprint,
    }


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        (True, "the promise does not hold; do not answer"),
        (False, "it was changed after it was made"),
    ],
    ids=["signed", "unsigned"],
)
def test_a_tampered_mechanism_is_refused(visitor, server, sign, words):
    changed = tampered(sign)
    said = {"survey": changed, "state": "open"}
    visitor.context.route(server.api("toy-survey"), lambda route: route.fulfill(json=said))
    refused(visitor, visitor.open(f"{server.base}/c/toy-survey#{changed['fingerprint']}"), words)


@pytest.mark.parametrize(
    "said",
    [
        {"json": {}},
        {"json": {"state": "open", "survey": 3}},
        {"body": "<html>"},
        {"status": 404},
    ],
    ids=["empty", "odd", "html", "404"],
)
def test_a_server_that_talks_nonsense_is_refused(visitor, server, said):
    visitor.context.route(server.api("toy-survey"), lambda route: route.fulfill(**said))
    kind = re.compile("^(The server does not|There is no survey|This survey is not written as it)")
    refused(visitor, visitor.open(server.links["toy-survey"]), kind)


def test_an_unknown_collection_is_named(visitor, server):
    refused(visitor, visitor.open(f"{server.base}/c/nobody"), re.compile('"nobody"'))


def test_a_closed_collection_says_so(visitor, server):
    page = visitor.open(server.links["closed"])
    refused(visitor, page, "This survey is closed. It takes no more answers.")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        mechanisms()["closed"].policy.question
    )


def test_a_collection_that_closes_while_one_answers(visitor, server):
    page = invited(visitor, server.links["closing"])
    choose(page, "HIV")
    prepare(page)
    server.close_collection("closing")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text(
        '"closing" is closed and takes no more reports; nothing of this upload was counted now'
    )
    expect(page.locator("#receipt")).to_be_hidden()
    assert server.n("closing") == 0


def failing(visitor, url, *failures):
    """The first requests go wrong, each in its way; then all is fine."""
    left = list(failures)

    visitor.context.route(url, lambda route: left.pop(0)(route) if left else route.continue_())


def busy(route):
    route.fulfill(status=503, json={"detail": "busy"})


def lost(route):
    """The collector gets the request, but the browser never gets the answer."""
    route.fetch()
    route.abort()


def test_a_server_that_is_away_for_a_moment(visitor, server):
    """Question and report are asked for and sent again; the report stays the same, counted once."""
    before = server.n("toy-survey")
    failing(visitor, server.api("toy-survey"), busy, lambda route: route.abort())
    failing(visitor, server.api("toy-survey", "/reports"), busy, lost)
    page = invited(visitor, server.links["toy-survey"])
    body = answer(page, "HIV")
    assert visitor.posts() == [body] * 3
    expect(page.locator("#thanks")).to_have_text(
        "The server had this report already. It is counted once."
    )
    assert server.n("toy-survey") == before + 1


def patiently(page, condition):
    """Let the page's own time pass until something is so."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it never was"
        page.clock.run_for(2000)


def test_a_server_that_stays_away(patient, server):
    """One sentence after a minute of retries; the same report is sent when it is back."""
    page = invited(patient, server.links["toy-survey"])
    away = server.api("toy-survey", "/reports")
    patient.context.route(away, busy)
    choose(page, "HIV")
    shown = prepare(page)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("status")).to_have_text(re.compile("^The server does not answer"))
    alert = page.get_by_role("alert")
    patiently(page, alert.is_visible)
    expect(alert).to_contain_text(
        "does not take the request (it answers 503); try again later: the same report will be sent"
    )
    patient.context.unroute(away)
    assert send(page)[16:] == shown
    assert len(set(patient.posts())) == 1


def test_nothing_is_sent_when_storage_is_blocked(wrong_format, server):
    throws = "get() { throw new DOMException('no', 'SecurityError'); }"
    blocked = f"Object.defineProperty(window, 'localStorage', {{ {throws} }});"
    wrong_format.context.add_init_script(blocked)
    refused(
        wrong_format,
        wrong_format.open(server.links["toy-survey"]),
        "The ledger cannot be read (no), so nothing is sent",
    )


def test_nothing_is_sent_when_the_ledger_is_damaged(visitor, server):
    page = invited(visitor, server.links["toy-survey"])
    page.evaluate("localStorage.setItem('discreet-ledger/4', '{')")
    page.reload()
    refused(visitor, page, "is damaged, so nothing is sent")


def test_nothing_is_sent_when_storage_is_full(visitor, server):
    page = invited(visitor, server.links["toy-survey"])
    page.evaluate(
        """() => {
          for (let text = "x".repeat(8 << 20), k = 0; text; k++) {
            try {
              localStorage.setItem(`filler ${k}`, text);
            } catch { text = text.slice(0, text.length / 2); }
          }
        }"""
    )
    choose(page, "HIV")
    confirmed(page)
    expect(page.get_by_role("alert")).to_contain_text("so nothing is sent; make room")
    expect(page.locator("#check")).to_be_hidden()  # what cannot be remembered is not shown
    assert visitor.posts() == []


# ---- many answers --------------------------------------------------------------------------------


def test_searching_many_answers(visitor, server):
    page = invited(visitor, server.links["wide"])
    search, radios, count = (
        page.get_by_role("searchbox", name="Search 2,000 answers"),
        page.get_by_role("radio"),
        page.locator("#count"),
    )
    expect(radios).to_have_count(60)
    expect(count).to_have_text("1,940 more; type to narrow them.")
    search.fill(" ITEM 18")
    expect(radios).to_have_count(60)
    expect(count).to_have_text("51 more; type to narrow them.")  # 18, 180–189, 1800–1899
    search.fill("item 1899")
    expect(radios).to_have_count(1)
    expect(count).to_have_text("")
    choose(page, "item 1899")
    search.fill("rare 9")
    expect(radios).to_have_count(12)  # 9, 90–99, and the one that is chosen
    expect(page.get_by_role("radio", name="item 1899", exact=True)).to_be_checked()
    search.fill("nothing like it")
    expect(count).to_have_text("No answer matches.")
    search.press("Enter")  # neither leaves the page nor answers
    expect(page.locator("#check")).to_be_hidden()
    body = answer(page)
    assert visitor.posts() == [body]


def test_few_answers_need_no_search(visitor, server):
    expect(invited(visitor, server.links["toy-survey"]).locator("#search")).to_be_hidden()


# ---- for everybody: keyboard, screen readers, phones, dark rooms ---------------------------------


def tab_to(page, *, role, name=None):
    """Press Tab until such a control has the focus; nothing on the way traps it."""
    for _ in range(30):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "(({ tagName, type, labels, textContent }) => "
            "[type || tagName.toLowerCase(), labels?.[0]?.textContent ?? textContent])"
            "(document.activeElement)"
        )
        if here[0] == role and (name is None or here[1].strip() == name):
            return
    raise AssertionError(f"Tab does not lead to {role} {name}")


def test_keyboard_alone_answers_a_single_question(visitor, server):
    page = invited(visitor, server.links["toy-survey"])
    tab_to(page, role="radio", name="HIV")
    for label in ("anemia", "headache", "stomachache"):
        page.keyboard.press("ArrowDown")
        expect(page.get_by_label(label)).to_be_checked()
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    expect(page.get_by_label("anemia")).to_be_checked()
    tab_to(page, role="submit", name="Continue")
    page.keyboard.press("Enter")
    expect(page.locator("#sure-title")).to_be_focused()
    tab_to(page, role="button", name="Change")
    page.keyboard.press("Enter")
    expect(page.get_by_role("radio", name="anemia")).to_be_checked()  # a slip can be mended
    tab_to(page, role="submit", name="Continue")
    page.keyboard.press("Enter")
    expect(page.locator("#sure-title")).to_be_focused()
    tab_to(page, role="button", name="Continue")
    page.keyboard.press("Enter")
    expect(page.locator("#check-title")).to_be_focused()
    tab_to(page, role="button", name="Back")
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_focused()
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)  # the answer is forgotten
    tab_to(page, role="radio", name="HIV")
    tab_to(page, role="submit", name="Continue")
    page.keyboard.press("Space")
    expect(page.locator("#check-title")).to_be_focused()
    tab_to(page, role="button", name="Send")
    page.keyboard.press("Enter")
    expect(page.locator("#receipt-title")).to_be_focused()


def test_keyboard_alone_agrees_searches_and_answers(visitor, server):
    answer(invited(visitor, server.links["bits"]), "HIV")
    page = invited(visitor, server.links["parts"])
    tab_to(page, role="search")
    page.keyboard.type("acne")
    tab_to(page, role="radio", name="acne")
    page.keyboard.press("Space")
    tab_to(page, role="checkbox", name="I agree to that.")
    page.keyboard.press("Space")
    tab_to(page, role="submit")
    page.keyboard.press("Enter")
    tab_to(page, role="button", name="Continue")
    page.keyboard.press("Enter")
    expect(page.locator("#check-title")).to_be_focused()  # drawing takes a moment
    tab_to(page, role="button", name="Send")
    page.keyboard.press("Space")
    expect(page.locator("#receipt-title")).to_be_focused()


def test_keyboard_alone_answers_a_set_question(visitor, server):
    page = invited(visitor, server.links["sets"])
    for label in ("HIV", "flu"):
        tab_to(page, role="checkbox", name=label)
        page.keyboard.press("Space")
        expect(page.get_by_label(label)).to_be_checked()
    tab_to(page, role="submit")
    page.keyboard.press("Enter")
    tab_to(page, role="button", name="Continue")
    page.keyboard.press("Enter")
    expect(page.locator("#check-title")).to_be_focused()  # drawing takes a moment
    tab_to(page, role="button", name="Send")
    page.keyboard.press("Enter")
    expect(page.locator("#receipt-title")).to_be_focused()


def test_after_a_failed_sending_the_keyboard_is_where_it_was(visitor, server):
    page = invited(visitor, server.links["toy-survey"])
    choose(page, "HIV")
    prepare(page)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    tab_to(page, role="button", name="Send")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("so nothing is sent")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
    assert page.evaluate("document.activeElement.id") == "send"


CONTROLS = {"button", "checkbox", "DisclosureTriangle", "link", "radio", "searchbox", "textbox"}


def check_names(page):
    """Every control that a screen reader finds has a name."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    found = [
        (n["role"]["value"], n.get("name", {}).get("value", "").strip())
        for n in nodes
        if not n["ignored"] and "role" in n
    ]
    assert not [x for x in found if x[0] in CONTROLS and not x[1]], found
    assert sum(role == "heading" for role, _ in found) >= 1
    assert sum(role == "main" for role, _ in found) == 1
    assert page.evaluate("document.documentElement.lang === 'en' && document.title !== ''")


def check_narrow(page, width=320):
    """The smallest phones need no scrolling to the side."""
    size = page.viewport_size
    page.set_viewport_size({"width": width, "height": 640})
    beyond = "(e) => e.getBoundingClientRect().right > innerWidth + 0.5 && !e.closest('.hidden')"
    wide = page.evaluate(
        f"[...document.querySelectorAll('body *')].filter({beyond})"
        ".map((e) => e.outerHTML.slice(0, 80))"
    )
    scrolled = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    page.set_viewport_size(size)
    assert scrolled[0] <= scrolled[1] == width, (scrolled, wide)


CONTRASTS = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].map((x) => x / 255);
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((x, k) => a * x + (1 - a) * under[k]);
  const behind = (e) => {
    const under = e.parentElement ? behind(e.parentElement) : rgba("Canvas").slice(0, 3);
    return over(rgba(getComputedStyle(e).backgroundColor), under);
  };
  const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ratio = (x, y) => {
    const [dark, bright] = [light(x), light(y)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const seen = (e) => {
    return e.checkVisibility({ visibilityProperty: true }) && !e.closest(".hidden, :disabled");
  };
  const text = (e, color) => {
    const found = ratio(over(rgba(color), behind(e)), behind(e));
    return { ratio: found, needs: 4.5, what: e.outerHTML.slice(0, 90) };
  };
  const all = [...document.querySelectorAll("body, body *")].filter(seen);
  const has = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const written = all.filter((e) => has(e) && e.tagName !== "SCRIPT")
    .map((e) => text(e, getComputedStyle(e).color));
  const hints = all.filter((e) => e.placeholder)
    .map((e) => text(e, getComputedStyle(e, "::placeholder").color));
  const bars = all.filter((e) => e.matches(".bar, .line")).map((e) => {
    const color = rgba(getComputedStyle(e).backgroundColor).slice(0, 3);
    return { ratio: ratio(color, behind(e.parentElement)), needs: 3, what: e.outerHTML };
  });
  return { seen: [...written, ...bars], hints };
}"""


def check_contrast(page, what="seen"):
    """WCAG 2: 4.5 for every text, 3 for bars and their lines; in the light and in the dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(CONTRASTS)[what]
        assert found
        assert not [x for x in found if x["ratio"] < x["needs"]], scheme
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", dark))) < 3 * 60) == (scheme == "dark")
    page.emulate_media(color_scheme="light")


def look(page):
    check_names(page)
    check_narrow(page)
    check_contrast(page)


def test_every_step_of_the_participants_page_is_for_everybody(visitor, server):
    answer(invited(visitor, server.links["bits"]), "HIV")
    page = invited(visitor, server.links["parts"])
    choose(page, "HIV")
    for name in ("about", "how", "trust"):
        page.locator(f"#{name} > summary").click()
    look(page)  # with the consent, a promise, and all promises
    page.get_by_label("I agree to that.").check()
    prepare(page)
    look(page)
    send(page)
    look(page)
    page = visitor.open(server.links["closed"])
    expect(page.get_by_role("alert")).to_be_visible()
    look(page)


def test_long_words_fit_on_a_small_phone(visitor, server):
    page = invited(visitor, server.links[ODD])
    page.locator("#how > summary").click()
    choose(page, LONG)
    check_narrow(page)
    prepare(page)
    check_narrow(page)
    send(page)
    organiser(visitor, server, ODD)
    check_narrow(page)


def test_the_hint_in_a_search_box_can_be_read(visitor, server):
    check_contrast(invited(visitor, server.links["bits"]), "hints")


def test_the_checks_for_everybody_see_what_they_must_see(visitor, server):
    """Their twins: a nameless button, something wide, pale text."""
    page = invited(visitor, server.links["toy-survey"])
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    must_fail(check_names, page)
    page.evaluate("document.documentElement.style.setProperty('--quiet', '#8a9b97')")
    must_fail(check_contrast, page)
    page.evaluate(
        "document.querySelector('main').append('x'.repeat(80));"
        "document.body.style.overflowWrap = 'normal'"
    )
    must_fail(check_narrow, page)


@pytest.fixture(scope="module")
def open_server(tmp_path_factory):
    found = Server(tmp_path_factory.mktemp("open"), [surveys()["toy-survey"]], "--open-results")
    yield found
    found.stop()


# ---- nothing foreign runs, nothing is taken for markup -------------------------------------------


def test_texts_of_the_organiser_are_shown_as_texts(visitor, server):
    mechanism = mechanisms()[ODD]
    server.upload(surveys()[ODD], [mechanism.perturb(0)])
    index = visitor.open(server.base)
    card = index.locator(".card", has=index.get_by_text(ODD, exact=True))
    expect(card.get_by_role("heading")).to_have_text(QUESTION)
    card.get_by_role("link", name="Answer").click()
    index.locator("#form").wait_for()
    listed = index.locator("#choices .what").all_inner_texts()
    assert sorted(listed) == sorted(mechanism.policy.items)
    index.locator("#how > summary").click()
    expect(index.locator("#promises")).to_contain_text(
        f"<i>rare: {HTML}, \"quotes\" & 'apostrophes', שלום עולם"
    )
    choose(index, HTML)
    expect(index.locator("#promise")).to_contain_text(f"“{HTML}”")
    results = organiser(visitor, server, ODD, another=True)
    results.get_by_role("button", name="Show the numbers anyway").click()
    expect(results.get_by_role("heading", level=1)).to_have_text(QUESTION)
    assert sorted(row[0] for row in rows(results)) == sorted(mechanism.policy.items)
    for page in (index, results):
        assert page.evaluate("window.hacked") is None
        assert page.locator("img, main b, main i:not(.plot i), main script").count() == 0


def test_nothing_but_the_pages_own_script_runs(visitor, server, open_server):
    """Injected scripts and styles do not, no other host is asked: the twin of "no violation"."""
    for link in (server.links["toy-survey"], server.results["toy-survey"], server.base):
        page = visitor.open(link)
        page.evaluate(
            """async (other) => {
              const script = document.createElement("script");
              script.textContent = "window.hacked = 'script'";
              document.body.append(script);
              const markup = "<img src=x onerror='window.hacked = 1'><b style='color: red'>b</b>";
              document.body.insertAdjacentHTML("beforeend", markup);
              await new Promise((done) => setTimeout(done));
              await fetch(other).then(() => { window.hacked = "fetched"; }, () => {});
              const image = new Image();
              await new Promise((done) => {
                image.onload = image.onerror = done;
                image.src = `${other}/static/icon.svg`;
              });
            }""",
            open_server.base,
        )
        assert page.evaluate("window.hacked") is None
        said = " ".join(visitor.violations())
        for directive in ("script-src", "style-src", "connect-src", "img-src"):
            assert f"VIOLATION {directive}" in said
        visitor.console.clear()
    foreign = [r for r in visitor.requests if r.url.startswith(open_server.base)]
    assert {r.failure for r in foreign} <= {"csp"}
    visitor.requests = [r for r in visitor.requests if r not in foreign]


# ---- the same page, from elsewhere ---------------------------------------------------------------


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The page as one static file, as its command writes it."""
    folder = tmp_path_factory.mktemp("copy")
    printed = command(folder, "page", "-o", "answer.html")
    assert (
        printed
        == f"{hashlib.sha256((folder / 'answer.html').read_bytes()).hexdigest()}  answer.html\n"
    )
    return folder / "answer.html"


@pytest.fixture(scope="module")
def host(copy):
    """Where somebody else publishes it."""
    with hosted(copy.parent) as origin:
        yield f"{origin}/answer.html"


def elsewhere(found, name, **changes):
    return "#" + urlencode(
        {"server": found.base, "collection": name, "fingerprint": surveys()[name].fingerprint}
        | changes
    )


def test_the_page_is_the_published_file(server, copy):
    for name in ("toy-survey", "sets", "nobody"):
        assert server.http.get(f"{server.base}/c/{name}").content == copy.read_bytes()


@pytest.mark.parametrize("how", ["http", "file"])
def test_answering_on_a_copy_of_the_page(visitor, server, copy, host, how):
    """Through CORS, without cookies, although there is one; from another host or one's own disk."""
    before, start = server.n("toy-survey"), host if how == "http" else copy.as_uri()
    visitor.arrive(server.base, start)
    visitor.context.add_cookies([{"name": "who", "value": "me", "url": server.base}])
    page = invited(visitor, start + elsewhere(server, "toy-survey"))
    expect(page.locator("#where")).to_contain_text(
        f"your report goes to {server.base.removeprefix('http://')}"
    )
    body = answer(page, "HIV")
    assert visitor.posts() == [body]
    asked = [r for r in visitor.requests if r.url.startswith(server.base)]
    assert [r.method for r in asked] == ["GET", "POST"]
    for request in asked:
        assert not {"cookie", "authorization", "referer"} & set(request.all_headers())
    assert server.n("toy-survey") == before + 1
    # The twin: the cookie is there, and would have gone with a request that does not leave it out.
    visitor.open(server.base)
    (asked,) = (r for r in visitor.requests if r.url == f"{server.base}/")
    assert asked.all_headers()["cookie"] == "who=me"


def test_a_copy_without_a_whole_invitation_says_what_is_missing(visitor, server, host):
    visitor.arrive(server.base, host)
    refused(
        visitor,
        visitor.open(host),
        re.compile(r"This page needs an invitation\..* The whole link ends with .#server="),
    )
    page = visitor.open(host + elsewhere(server, "toy-survey", fingerprint="0" * 64))
    refused(visitor, page, f"The invitation is for fingerprint {' '.join(['0000'] * 8)}…")


def test_a_copy_says_that_a_collection_does_not_exist(patient, server, host):
    patient.arrive(server.base, host)
    page = patient.open(host + elsewhere(server, "toy-survey", collection="nobody"))
    patiently(page, page.get_by_role("alert").is_visible)
    patient.console.clear()  # Chromium's own words about CORS
    expect(page.locator("#cause")).to_contain_text('"nobody"')


def test_a_copy_whose_server_is_away(patient, server, host):
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))  # bound, but nobody listens
        away = f"http://127.0.0.1:{free.getsockname()[1]}"
        patient.arrive(away, host)
        page = patient.open(host + elsewhere(server, "toy-survey", server=away))
        expect(page.get_by_role("status")).to_have_text(
            re.compile("^The server does not answer just now. The next try is in ")
        )
        patiently(page, page.get_by_role("alert").is_visible)
        refused(
            patient,
            page,
            f"The collector at {away} does not take the request (it cannot be reached); "
            "try again later",
        )


# ---- nothing but the perturbed report leaves the page --------------------------------------------

TWO_ANSWERS = {  # of every encoding, as different as can be; sets of different sizes
    "toy-survey": (["HIV"], ["toothache"]), "bits": (["HIV"], ["arthritis"]),
    "parts": (["depression"], ["acne"]), "wide": (["rare 0"], ["rare 59"]),
    "sets": ([], ["HIV", "hepatitis", "cold", "flu"]), "set-parts": (["HIV"], ["cold", "flu"]),
    "set-ticket": (["hepatitis"], []), "set-hits": (["HIV", "cold", "flu", "allergy"], ["flu"]),
    "set-each": (["HIV", "cold", "flu"], []), "forty": ([], ["HIV", "depression", "item 3"]),
}  # fmt: skip
SECRETS = tuple(TWO_ANSWERS)


SCRIPTED = """(text) => {
  const queue = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  let at = 0;
  crypto.getRandomValues = (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    if (at + bytes.length > queue.length) throw new Error("the script of draws is too short");
    bytes.set(queue.subarray(at, at += bytes.length));
    return array;
  };
}"""


POOL = 4096  # bytes that the module draws at once


def script(page, id_, document_, labels, report):
    """From now on the page's randomness is such that this answer gives that report, then that id;
    the question is drawn already, and zeros are left for the order of sending.
    """
    items = sorted(document_["policy"]["items"].index(label) for label in labels)
    words = words_for(document_, items, report)
    draws = b"".join(int(word).to_bytes(4, "little") for word in words)
    draws += bytes(-len(draws) % POOL)
    page.evaluate(SCRIPTED, base64.b64encode(draws + id_ + bytes(POOL)).decode())


class Told:
    """All that somebody told by answering: the bytes that left Chromium, and what it keeps."""

    def __init__(self, visitor, wire, name, labels, report, doctored=None):
        id_ = bytes(range(16))
        visitor.arrive(wire.base)
        wire.take()
        if doctored:
            visitor.context.route(
                "**/c/*", lambda route: route.fulfill(body=doctored, content_type="text/html")
            )
        page = invited(visitor, f"{wire.base}/c/{name}#{surveys()[name].fingerprint}")
        script(page, id_, document(name), labels, report)
        assert answer(page, *labels) == id_ + report
        self.kept = (
            visitor.context.storage_state(indexed_db=True),
            page.evaluate("JSON.stringify(sessionStorage)"),
        )
        self.sent = wire.take()
        visitor.leave()


def check_same(first, second):
    """Not a byte differs: method, address, every header, body, number and order of requests."""
    assert first.sent == second.sent
    assert first.kept == second.kept


@pytest.fixture(scope="module")
def wire():
    found = Wire()
    yield found
    found.close()


def test_all_that_leaves_is_a_function_of_the_report(someone, wire, tmp_path):
    """Change the answer, fix the report and its number: the wire, the browser's storage, the store
    and the logs stay the same.

    Two servers that know nothing of each other get the two answers at one address. No header is
    left out of the comparison.
    """
    told, servers = [], []
    for run in range(2):
        (folder := tmp_path / str(run)).mkdir()
        server = Server(folder, [surveys()[name] for name in SECRETS])
        wire.target, rng = server.port, random.Random(11)
        told.append(
            [
                Told(
                    someone,
                    wire,
                    name,
                    TWO_ANSWERS[name][run],
                    some_report(document(name), rng),
                )
                for name in SECRETS
            ]
        )
        server.stop()
        servers.append(server)
    for name, first, second in zip(SECRETS, *told, strict=True):
        check_same(first, second)
        heads = [request.split(b"\r\n")[0].decode() for request in first.sent]
        path = f"/v1/collections/{name}"
        assert heads == [
            f"GET /c/{name} HTTP/1.1",
            f"GET {path} HTTP/1.1",
            f"POST {path}/reports HTTP/1.1",
        ]
        (origin,) = first.kept[0]["origins"]
        assert [entry["name"] for entry in origin["localStorage"]] == ["discreet-ledger/4"]
        assert first.kept[0]["cookies"] == [] and first.kept[1] == "{}"
    first, second = servers
    assert first.stored() == second.stored()
    assert {x.name for x in first.folder.iterdir()} == {x.name for x in second.folder.iterdir()}
    assert first.said("stderr") == second.said("stderr") == ""


SENT = '"Discreet-Survey": fingerprint'
MADE = "ledger.reserve(origin, survey, question, content, id);"
LEAKS = {
    "header": (SENT, f'{SENT}, "X-Extra": globalThis.leak'),
    "query": ("${this.#path(name)}/reports`", "${this.#path(name)}/reports?${globalThis.leak}`"),
    "beacon": (MADE, MADE + " fetch(`/healthz?${JSON.stringify(answer)}`);"),
    "storage": (MADE, MADE + " localStorage.last = JSON.stringify(answer);"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_page_that_tells_more_is_seen(someone, wire, server, leak):
    """The twin: the same check, on a page that someone has changed."""
    text = pages.answer_file().decode()
    drawn = "const id = globalThis.crypto.getRandomValues(new Uint8Array(16));"
    for old, new in (LEAKS[leak], (drawn, drawn + " globalThis.leak = JSON.stringify(answer);")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    text = re.sub("<meta http-equiv=.*>", "", text)
    wire.target, report = server.port, some_report(document("bits"), random.Random(12))
    first, second = (
        Told(someone, wire, "bits", labels, report, doctored=text) for labels in TWO_ANSWERS["bits"]
    )
    must_fail(check_same, first, second)
    assert leak == "storage" or first.sent != second.sent


# ---- reports in distribution: the module in Chromium draws as the numbers say --------------------

EACH = 5000
PERTURB = """async ({ document, answers, each }) => {
  const { Mechanism } = await import("/discreet.js");
  const mechanism = await Mechanism.from(document);
  const { reportSize } = mechanism;
  const rows = new Uint8Array(answers.length * each * reportSize);
  let at = 0;
  for (const answer of answers) {
    for (let person = 0; person < each; person++, at += reportSize) {
      const report = mechanism.perturb(answer);
      if (mechanism.refusal(report) !== null) throw new Error(mechanism.check(report));
      rows.set(report, at);
    }
  }
  let text = "";
  for (let k = 0; k < rows.length; k += 4096) {
    text += String.fromCharCode(...rows.subarray(k, k + 4096));
  }
  return btoa(text);
}"""


@cache
def sampled(kind, what, padding):
    """A small mechanism of three parts or of one, made by hand, or one that is designed."""
    if kind in WHOLE:
        return whole_sets()[kind, what]
    if what != "designed":
        return small(kind, what, padding).to_document()
    budgets = {f"i{k}": ("1", "1.2", "2")[(k * k + 1) % 3] for k in range(43)}
    policy = d.Policy.from_budgets(budgets, kind="set" if padding else "single")
    how = {"fixed": ("subset", "bits"), "bits": ("opt0", "bits"), "ticket": ("subset", "ticket")}
    model, encoding = how[kind]
    made = d.design(policy, model, goal="total", encoding=encoding, padding=padding).to_document()
    assert made["encoding"]["kind"] == kind and len(made["parts"]) > (kind != "bits")
    return made


def answers_of(document_):
    """The first and the last item and two others; of sets none, one and more than the padding."""
    m = len(document_["policy"]["items"])
    if document_["policy"]["kind"] != "single":
        return [[], [0], [m - 1], [1, 2, m // 2, m - 1]]
    return [0, 1, m // 2, m - 1]


@contextmanager
def perturbing(browser, folder):
    """A function of a document: reports of EACH people per answer, from Chromium's randomness."""
    with hosted(folder) as origin:
        visitor = Visitor(browser, origin)
        page = visitor.open(f"{origin}/icon.svg")

        def drawn(document_):
            given = {"document": document_, "answers": answers_of(document_), "each": EACH}
            found = np.frombuffer(base64.b64decode(page.evaluate(PERTURB, given)), np.uint8)
            return found.reshape(len(given["answers"]), EACH, -1)

        yield drawn
        visitor.leave()
        visitor.context.close()


@pytest.fixture(scope="module")
def draw(browser):
    with perturbing(browser, STATIC) as drawn:
        yield drawn


def check_reports(document_, tables):
    """Parts, items and pairs of items of every answer, in one comparison."""
    found = [features(document_, rows) for rows in tables]
    chances = [expected(document_, answer) for answer in answers_of(document_)]
    check_frequencies(np.concatenate(found), EACH, np.concatenate(chances))


SETTINGS = [
    (kind, what, padding)
    for kind in KINDS
    for what in ("parts", "one", "designed")
    for padding in (None, 2)
] + [("hits", "parts", 2), ("hits", "one", 2), ("each", "one", None)]


@cache
def whole_sets():
    """Mechanisms that report all of a set, small enough for all of their reports."""
    rows, third = [("grave", "ln(200)", "abc"), ("mild", "ln(5000)", "def")], handmade.D // 3
    both, mild = ([1, 1], 2, [0, 1], third), ([0, 1], 3, [1, 1], handmade.D - third)
    return {
        ("hits", "parts"): handmade.hits_of(rows, 7, 2, [both, mild]),
        ("hits", "one"): handmade.hits_of(rows, 7, 2, [([0, 1], 3, [0, 0], handmade.D)]),
        ("each", "one"): handmade.each_of(rows, [2 * third, 2 * third], [third, third // 2]),
    }


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda x: "-".join(map(str, x)))
def test_every_item_and_every_pair_of_items(draw, setting):
    """20,000 reports against exact chances, and what must be seen in them."""
    document_ = sampled(*setting)
    tables = draw(document_)
    assert tables.shape[0] * tables.shape[1] >= 20_000
    check_reports(document_, tables)
    must_fail(check_reports, document_, tables[[1, 0, 3, 2]])  # somebody else's answer
    check_twins(document_, tables[1], expected(document_, answers_of(document_)[1]))


def check_twins(document_, rows, chances):
    """Chances that are a little off; items in other places; two that go together."""
    found, m = features(document_, rows), len(document_["policy"]["items"])
    kinds, size = len(document_["parts"]), m * (m + 1) // 2
    items = [kinds + o * size + i * m - i * (i - 1) // 2 for o in range(kinds) for i in (0, m - 1)]
    speaking = [k for k in items if chances[k] > 0.02]
    assert speaking
    for k in [*speaking, *range(kinds if kinds > 1 else 0)]:
        for off in (too_small, too_large):
            wrong = chances.copy()
            wrong[k] = off(EACH, chances[k], len(chances))
            assert 0 < abs(wrong[k] - chances[k]) < 0.1
            must_fail(check_frequencies, found, EACH, wrong)
    must_fail(check_frequencies, moved(document_, rows), EACH, chances)
    must_fail(check_frequencies, linked(document_, rows), EACH, chances)


FAULTS = {  # a module that somebody has changed: old, new, and the mechanism that shows it
    "a subset that is not uniform": (
        "draws.below(end + 1)", "Math.min(draws.below(end + 2), end)", ("fixed", "one", None),
    ),
    "an own item that is drawn again": (
        "const skipped = mine ? rank[held] : members[g].length;",
        "const skipped = mine ? members[g].length - 1 : members[g].length;", ("fixed", "one", None),
    ),
    "a last bit that is sent as it is": (
        "item === held ? own :", "item === held ? own || item === this.groups.m - 1 :",
        ("bits", "one", None),
    ),
    "a first bit that is never set": (
        "if (named) this.name(report, item);", "if (named && item) this.name(report, item);",
        ("bits", "one", 2),
    ),
    "a mark from all marks": (
        "threshold + draws.below(q - threshold)", "draws.below(q)", ("ticket", "one", None),
    ),
    "a ticket with a fixed digit": (
        "const others = Array.from({ length: t }, () => draws.below(q));",
        "const others = Array(t).fill(draws.below(q));", ("ticket", "one", None),
    ),
    "a part by another level's chances": (
        "(held < 0 ? none : chance[group])", "(held < 0 ? none : chance[0])",
        ("fixed", "parts", None),
    ),
    "a part for none by an item's chances": (
        "(held < 0 ? none : chance[group])", "chance[group ?? 0]", ("ticket", "parts", 2),
    ),
    "a set without its dummies": (
        "draws.below(Math.max(items.length, this.padding))",
        "draws.below(Math.max(items.length, 1))", ("bits", "parts", 2),
    ),
    "a sample of what a part speaks about": (
        "const kept = items.length > padding ? draws.subset(items, padding) : items;",
        "const live = items.filter((item) => active[groupOf[item]]);"
        "const kept = live.length > padding ? draws.subset(live, padding) : live;",
        ("hits", "one", 2),
    ),
    "a sample that is not drawn": (
        "const place = k + this.below(left.length - k);", "const place = k;", ("hits", "one", 2),
    ),
    "classes by other masses": (
        "[mass, c] = [draws.mass(), 0]", "[mass, c] = [draws.mass() / 2, 0]", ("hits", "parts", 2),
    ),
    "coefficients that are not free": (
        "Array.from({ length: padding + 2 - own.length }, () => draws.below(prime))",
        "Array(padding + 2 - own.length).fill(draws.below(prime))", ("hits", "one", 2),
    ),
    "an item on its own with another's chance": (
        "(mine.has(item) ? own : other)[g]", "(mine.has(item) && item ? own : other)[g]",
        ("each", "one", None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_module_that_draws_otherwise_is_seen(browser, draw, tmp_path, fault):
    """The twin in the module itself: the check passes before the change and fails after it."""
    old, new, setting = FAULTS[fault]
    text = (STATIC / "discreet.js").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "discreet.js").write_text(text.replace(old, new), encoding="utf-8")
    (tmp_path / "icon.svg").write_bytes((STATIC / "icon.svg").read_bytes())
    check_reports(sampled(*setting), draw(sampled(*setting)))
    with perturbing(browser, tmp_path) as drawn:
        must_fail(check_reports, sampled(*setting), drawn(sampled(*setting)))


TIMED = """async ({ document, answer, batches, each }) => {
  const { Mechanism } = await import("/discreet.js");
  const mechanism = await Mechanism.from(document);
  const found = [];
  for (let batch = 0; batch < batches; batch++) {
    const start = performance.now();
    for (let k = 0; k < each; k++) mechanism.perturb(answer);
    found.push((performance.now() - start) / each);
  }
  return found;
}"""


def test_a_report_of_a_set_takes_no_time(browser):
    """Five of 16,470 items, the median over batches; 0.01 milliseconds when this was written."""
    items = [f"item {k}" for k in range(16_470)]
    rows = [("rare", "ln(3)", items[:500]), ("common", "ln(9)", items[500:])]
    parts = [([1, 1], 8000, [0] * 5, handmade.D // 2), ([0, 1], 8000, [0] * 5, handmade.D // 2)]
    given = {
        "document": handmade.hits_of(rows, 65521, 5, parts),
        "answer": [3, 77, 1000, 5000, 16_469],
        "batches": 21,
        "each": 50,
    }
    with hosted(STATIC) as origin:
        visitor = Visitor(browser, origin)
        page = visitor.open(f"{origin}/icon.svg")
        assert np.median(page.evaluate(TIMED, given)) < 20
        visitor.leave()
        visitor.context.close()
