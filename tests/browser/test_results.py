"""The results page in a real Chromium, against a real `discreet serve`: what is shown, and what can
be taken away.
"""

import io
import json
import math
import random
import re
import xml.etree.ElementTree as ElementTree
from functools import cache, partial
from pathlib import Path
from urllib.parse import unquote_plus

import chromium
import numpy as np
import pandas as pd
import pytest
from checks import must_fail
from chromium import TOKEN, Server, Visitor, browser
from drawing import some_report
from organising import expected_row, expected_rows, figure, organiser, rows
from PIL import Image
from test_pages import (
    check_narrow,
    levels,
    look,
    patiently,
    sets,
    tab_to,
)

import discreet as d
from discreet.collector import pages
from discreet.data.examples import example, made_up_answers
from discreet.designs.surveys import design_survey
from discreet.errors import short_fingerprint
from discreet.estimates.fakes import Reach, oddities
from discreet.estimates.views import VIEWS

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("results")
expect.set_options(timeout=20_000)
__all__ = ["browser"]
PHONE = {"width": 390, "height": 844}
SVG = "{http://www.w3.org/2000/svg}"
FILE = {
    "name": "work",
    "answers": 2,
    "about": {"language": "en"},
    "question": [
        {"name": "age", "text": "How old are you?",
         "level": [{"name": "all", "epsilon": 2, "items": ["under 40", "40 or older"]}]},
        {"name": "strain", "text": "What strained you most?",
         "totals": {"something": ["harassment", "burnout", "noise"]},
         "level": [{"name": "serious", "epsilon": 2, "items": ["harassment", "burnout"]},
                   {"name": "common", "epsilon": 3, "items": ["nothing", "noise"]}]},
    ],
    "cross": [{"of": ["age", "strain"]}],
    "public": [{"name": "region", "text": "Where do you work?",
                "items": ["north", "south", "overseas"]}],
    "translations": {"de": {"questions": {"strain": {
        "text": "Was hat Sie am meisten belastet?",
        "items": {"harassment": "Belästigung", "burnout": "Burnout", "noise": "Lärm",
                  "nothing": "nichts"}}}}},
}  # fmt: skip


@cache
def mechanisms():
    toy, health = example("toy"), example("health-survey")
    return {
        "sets": d.design(sets(), "opt0", padding=3),
        "nudged": d.design(toy, "grr"),
        "wide": d.design(levels(("all", 2, [f"item {k}" for k in range(1500)])), encoding="ticket"),
        "empty": d.design(toy),
        "few": d.design(health),
        "live": d.design(health),
        "stuffed": d.design(health),
        "many": d.design(levels(("all", 2, [f"item {k}" for k in range(150)])), "oue"),
        "steps": d.design(toy),
    }


@cache
def surveys():
    found = {name: d.Survey(name, [mechanism]) for name, mechanism in mechanisms().items()}
    return {**found, "work": design_survey(FILE)}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"), [*surveys().values()])
    yield running
    running.stop()


@pytest.fixture(scope="module")
def open_server(tmp_path_factory):
    """Everybody sees results."""
    listed = [surveys()[name] for name in ("steps", "work", "live")]
    running = Server(tmp_path_factory.mktemp("open"), listed, "--open-results")
    fill_work(running)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def someone(browser):
    return Visitor(browser)


@pytest.fixture
def visitor(someone, server):
    someone.arrive(server.base)
    yield someone
    someone.leave()


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


@pytest.fixture
def speaker(browser, server):
    """A visitor with languages of their own."""
    made = []

    def speak(locale, scheme="light", size=PHONE):
        context = browser.new_context(locale=locale, color_scheme=scheme, viewport=size)
        made.append(context)
        return context.new_page()

    yield speak
    for context in made:
        context.close()


@pytest.fixture(scope="module")
def live(server):
    """A collection with many reports."""
    mechanism = mechanisms()["live"]
    given = made_up_answers(mechanism.policy, 20_000)
    drawn = (mechanism.perturb_many(given) for _ in range(3))
    # honest reports may look odd, once in 1,000 times at most: not three times in a row
    server.upload(surveys()["live"], next(x for x in drawn if not oddities(mechanism.tally(x))))
    return mechanism


def fill_work(running):
    """3,000 answers per question; few people work overseas."""
    survey, rng = surveys()["work"], np.random.default_rng(5)
    contents = []
    for number, question in enumerate(survey.listed):
        mechanism, n = question.mechanism, 3000
        answers = np.where(rng.random(n) < 0.5, 1, rng.integers(mechanism.m, size=n))
        regions = np.where(np.arange(n) < 3, 2, rng.integers(2, size=n))
        reports = mechanism.perturb_many(answers, indices=True)
        contents += [bytes([number, k]) + bytes(x) for k, x in zip(regions, reports)]
    running.upload(survey, contents)


@pytest.fixture(scope="module")
def work(server):
    fill_work(server)
    return surveys()["work"]


def check_rows(page, expected):
    """Wait until the table is this."""
    for _ in range(100):
        if rows(page) == expected:
            return
        page.wait_for_timeout(50)
    assert rows(page) == expected


# ---- the token, and the numbers ------------------------------------------------------------------


def test_the_organisers_token(visitor, server, live):
    """Asked for, refused, taken; it stays in this tab and goes nowhere but in one header."""
    page = visitor.open(server.results["live"])
    expect(page.get_by_role("heading", level=1)).to_have_text(live.policy.question)
    expect(page.locator("#numbers")).to_be_hidden()
    page.get_by_label("Organiser’s token").fill("somebody else's token")
    page.get_by_role("button", name="Show results").click()
    expect(page.get_by_role("alert")).to_have_text("That token is not the organiser’s.")
    expect(page.locator("#numbers")).to_be_hidden()
    page.get_by_label("Organiser’s token").fill(TOKEN)
    page.get_by_label("Organiser’s token").press("Enter")
    expect(page.locator("#n")).to_have_text("20,000")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.reload()
    expect(page.locator("#n")).to_have_text("20,000")
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [
        0,
        1,
        "",
    ]
    assert page.evaluate("sessionStorage.getItem('discreet-token')") == TOKEN
    assert not [r.url for r in visitor.requests if "token" in r.url.lower().replace("%20", " ")]
    assert {
        r.headers["authorization"] for r in visitor.requests if "authorization" in r.headers
    } == {
        f"Bearer {TOKEN}",
        "Bearer somebody else's token",
    }
    other = visitor.another(server.results["live"])
    expect(other.get_by_label("Organiser’s token")).to_be_visible()
    assert visitor.context.cookies() == []


def test_a_wrong_token_is_said_until_another_is_tried(patient, server):
    page = patient.open(server.results["live"])
    page.get_by_label("Organiser’s token").fill("somebody else's token")
    page.get_by_role("button", name="Show results").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.clock.run_for(10_000)
    assert page.get_by_role("alert").is_visible()


def test_after_the_token_the_keyboard_is_at_the_results(visitor, server):
    page = visitor.open(server.results["empty"])
    tab_to(page, role="password")
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    page.locator("#numbers").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1"


def test_results_are_what_the_service_says(visitor, server, live):
    """Sorted, with intervals and errors, in every view; and the download is the service's."""
    page = organiser(visitor, server, "live")
    found = server.estimate("live", views=",".join(VIEWS)).json()
    assert [view["name"] for view in found["views"]] == list(VIEWS) and found["telling"] > 0
    assert rows(page) == expected_rows(found)
    expect(page.locator("#verdict")).to_have_text(
        f"{found['telling']} of 41 answers stand out from zero "
        "(with 95 % confidence in all of them together)."
    )
    page.locator("#exactly > summary").click()
    for level in found["levels"]:
        change = math.floor(100 * (level["expected_stderr"] / level["plain_stderr"] - 1) + 0.5)
        card = page.locator("#levels > div", has_text=level["name"])
        expect(card).to_contain_text(f"budget {level['epsilon']}")
        expect(card).to_contain_text(f"expected error ± {figure(level['expected_stderr'])} people")
        side = "below" if change < 0 else "above"
        against = f"{abs(change)} % {side} plain LDP’s ± {figure(level['plain_stderr'])}"
        expect(card).to_contain_text(against if change else "as with plain LDP")
    for view in (*VIEWS, ""):
        page.locator(f'[name=view][value="{view}"]').check(force=True)
        check_rows(page, expected_rows(found, view))
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        assert download.value.suggested_filename == "live.csv"
        wanted = {"views": view, "format": "csv", "explained": "true"}
        told = Path(download.value.path()).read_bytes()
        assert told == server.estimate("live", **wanted).content
        table = pd.read_csv(io.BytesIO(told), comment="#")
        plain = server.estimate("live", views=view, format="csv").content
        pd.testing.assert_frame_equal(table, pd.read_csv(io.BytesIO(plain)))
    search = page.get_by_role("searchbox", name="Find an answer")
    search.fill("DIABETES")
    assert sorted(row[0] for row in rows(page)) == ["type 1 diabetes", "type 2 diabetes"]
    search.fill("serious")  # a level
    assert len(rows(page)) == 5
    expect(page.locator("#found")).to_have_text("5 of 41 answers")
    search.fill("nothing like it")
    assert rows(page) == []
    expect(page.locator("#found")).to_have_text("0 of 41 answers No answer matches.")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("live", "the best possible for this guarantee and prior"),
        ("sets", "not certified ("),
        ("nudged", None),
    ],
)
def test_results_show_the_certificate(visitor, server, live, name, words):
    """What the mechanism's file says about how good it is; nothing where it says nothing."""
    certificate = mechanisms()[name].certificate
    page = organiser(visitor, server, name)
    if words is None:
        assert certificate is None
        expect(page.locator("#certificate")).to_be_hidden()
        return
    assert words in certificate.sentence
    expect(page.locator("#certificate")).to_have_text(
        f"Expected error, as the designer says: {certificate.sentence}."
    )


def test_results_say_what_fakes_can_do_and_what_is_odd(visitor, server, live):
    """How far one fake report reaches, always; an alarm where honest reports would not look so."""
    page = organiser(visitor, server, "live")
    expect(page.locator("#fake")).to_have_text(Reach.for_mechanism(live).sentence(live))
    expect(page.locator("#odd")).to_be_hidden()
    stuffed = mechanisms()["stuffed"]
    honest = stuffed.perturb_many(made_up_answers(stuffed.policy, 20_000))
    server.upload(
        surveys()["stuffed"], np.concatenate([honest, np.repeat(honest[:1], 10_000, axis=0)])
    )
    page.goto(server.results["stuffed"])
    expect(page.locator("#odd")).to_contain_text("hardly made by honest devices")
    expect(page.locator("#oddities li").first).to_contain_text("honest reports would")


def test_results_update_as_reports_arrive(patient, server):
    """From none over few to many, without a reload; nothing is said that cannot be said."""
    mechanism, rng = mechanisms()["few"], random.Random(5)
    made = partial(some_report, mechanism.to_document(), rng)
    page = organiser(patient, server, "few")
    verdict = page.locator("#verdict")

    def soon(words):
        patiently(page, lambda: words in verdict.inner_text())

    expect(page.locator("#n")).to_have_text("0")
    expect(verdict).to_have_text("No report has arrived yet.")
    assert rows(page) == []
    page.evaluate("window.same = true")
    server.upload(surveys()["few"], [made()])
    expect(verdict).to_contain_text(
        "So far nothing stands out: 1 report cannot be told from chance, whatever people answer."
    )  # by itself
    needed = server.estimate("few").json()["needed"]
    expect(verdict).to_contain_text(
        re.compile(r"About ([\d,]+) reports show an answer that 10 in 100")
    )
    about = int(re.search(r"About ([\d,]+)", verdict.inner_text())[1].replace(",", ""))
    assert needed <= about <= 1.1 * needed
    expect(page.locator("#data")).to_be_hidden()
    expect(page.locator(".plot")).to_have_count(0)
    server.upload(surveys()["few"], [made() for _ in range(4)])
    soon("So far nothing stands out: 5 reports cannot be told from chance")
    page.get_by_role("button", name="Show the numbers anyway").click()
    assert rows(page) == expected_rows(server.estimate("few").json())
    expect(page.locator(".plot")).to_have_count(0)
    expect(page.get_by_role("button", name="Chart as PNG")).to_be_hidden()
    server.upload(surveys()["few"], mechanism.perturb_many(np.zeros(5000, int)))
    soon("stand out from zero")
    expect(page.locator("#n")).to_have_text("5,005")
    assert rows(page)[0][0] == "HIV"
    server.close_collection("few")
    soon(" The collection is closed.")
    (event,) = server.estimate("few").json()["history"]
    when = page.evaluate(
        "(time) => new Date(time).toLocaleString('en', { dateStyle: 'long', timeStyle: 'short' })",
        event["time"],
    )
    expect(page.locator("#history")).to_have_text(f"What the organiser did: closed, {when}.")
    assert page.evaluate("window.same") is True
    assert [r.url for r in patient.requests if r.resource_type == "document"] == [
        server.results["few"]
    ]


def test_a_collector_that_is_away_while_one_watches(patient, server, live):
    page = organiser(patient, server, "live")
    alert = page.get_by_role("alert")
    patient.context.route("**/estimate*", lambda route: route.abort())
    patiently(page, alert.is_visible)
    expect(alert).to_have_text("The collector cannot be reached; trying again.")
    expect(page.locator("#numbers")).to_be_visible()
    patient.context.unroute("**/estimate*")
    patiently(page, lambda: not alert.is_visible())


def test_many_items_are_drawn_on_demand(visitor, server):
    mechanism = mechanisms()["many"]
    server.upload(surveys()["many"], mechanism.perturb_many(np.arange(150)))
    page = organiser(visitor, server, "many")
    page.locator("#noise, #rows tr").filter(visible=True).first.wait_for()
    if page.locator("#noise").is_visible():
        page.locator("#noise").click()
    expect(page.locator("#rows tr")).to_have_count(50)
    check_narrow(page)
    page.get_by_role("button", name="Show 100 more").click()
    expect(page.locator("#rows tr")).to_have_count(150)
    expect(page.locator("#more")).to_be_hidden()


def test_a_count_is_never_minus_nought(visitor, server, live):
    found = server.estimate("live").json()
    found["items"][3] |= {"count": -0.2, "lower": -5.0, "upper": 5.0, "share": -1e-5}
    visitor.context.route("**/estimate*", lambda route: route.fulfill(json=found))
    page = organiser(visitor, server, "live")
    page.get_by_role("searchbox").fill(found["items"][3]["item"])
    assert rows(page)[0][4] == "0"


def test_the_organisers_page_is_for_everybody(visitor, server, live):
    page = visitor.open(server.results["live"])
    page.get_by_label("Organiser’s token").fill("wrong")
    page.get_by_role("button", name="Show results").click()
    expect(page.get_by_role("alert")).to_be_visible()
    look(page)
    page = organiser(visitor, server, "live")
    page.locator("#exactly > summary").click()
    look(page)
    moves = (
        "[...document.querySelectorAll('*')].map((e) => getComputedStyle(e))"
        ".some(({ transitionDuration: time, animationName: name }) => "
        "time !== '0s' || name !== 'none')"
    )
    assert page.evaluate(moves)
    page.emulate_media(reduced_motion="reduce")
    assert not page.evaluate(moves)
    look(visitor.open(server.base))


# ---- a link to every view ------------------------------------------------------------------------


def view_of(page):
    """What the address says."""
    pairs = page.url.partition("#")[2].split("&")
    return {k: unquote_plus(v) for k, _, v in (x.partition("=") for x in pairs if x)}


def test_every_choice_is_in_the_address_and_the_back_button_undoes_it(visitor, server, work):
    page = organiser(visitor, server, "work")
    assert view_of(page) == {}
    page.locator("#which").select_option("strain")
    expect(page.locator("#asked")).to_have_text("What strained you most?")
    page.locator("#by").select_option("region")
    page.locator("#grouped").wait_for()
    page.locator("#group").select_option("north")
    page.locator('[name=view][value="shrunk"]').check(force=True)
    page.locator("#exactly > summary").click()
    page.locator("#confidence").select_option("0.9")
    whole = {"question": "strain", "by": "region", "group": "north", "view": "shrunk",
             "confidence": "0.9"}  # fmt: skip
    assert view_of(page) == whole
    found = server.estimate(
        "work", question="strain", by="region", views="shrunk", confidence=0.9
    ).json()
    (north,) = [g for g in found["groups"] if g["group"] == {"region": "north"}]
    factor = (north["n"] / found["n"]) ** 0.5
    plain = {level["name"]: factor * level["plain_stderr"] for level in found["levels"]}
    expected = [
        expected_row(row, north["n"], plain[row["level"]], "shrunk")
        for row in sorted(north["items"], key=lambda row: -row["shrunk"])
    ]
    expect(page.locator("#rows .share small").first).to_have_text(expected[0][3])
    assert rows(page) == expected
    assert TOKEN not in page.url
    link = page.url
    for step in ({"confidence"}, {"view"}, {"group"}, {"by"}, {"question"}):
        page.go_back()
        whole = {k: v for k, v in whole.items() if k not in step}
        assert view_of(page) == whole
    expect(page.locator("#asked")).to_have_text("How old are you?")
    check_narrow(page)
    page.goto("about:blank")
    page.goto(link)
    page.locator("#numbers").wait_for()
    assert rows(page) == expected
    assert page.locator("#group").input_value() == "north"
    assert page.locator('[name=view][value="shrunk"]').is_checked()
    assert not [r.url for r in visitor.requests if "north" in r.url]  # the view stays in the page


def test_the_filter_is_in_the_address_after_a_pause(patient, server, live):
    page = organiser(patient, server, "live")
    before = page.evaluate("history.length")
    page.locator("#search").press_sequentially("diab")
    assert sorted(row[0] for row in rows(page)) == ["type 1 diabetes", "type 2 diabetes"]
    assert view_of(page) == {}
    patiently(page, lambda: view_of(page) == {"find": "diab"})
    assert page.evaluate("history.length") == before  # a key is no step
    page.goto("about:blank")
    page.goto(f"{server.results['live']}#find=diab")
    page.locator("#numbers").wait_for()
    assert page.locator("#search").input_value() == "diab" and len(rows(page)) == 2


@pytest.mark.parametrize(
    "view", ["#question=none", "#view=none", "#by=none", "#confidence=7", "#by=region&group=none"]
)
def test_a_link_to_what_there_is_not_shows_what_there_is(visitor, server, work, view):
    page = organiser(visitor, server, "work", view=view)
    expect(page.locator("#bad-link")).to_have_text(
        "This link asks for something that this survey does not have. Here is what it has."
    )
    assert len(rows(page)) == 2 and "none" not in page.url
    page.locator("#which").select_option("strain")
    expect(page.locator("#bad-link")).to_be_hidden()


def test_the_link_is_copied_or_shown(visitor, server, live):
    page = organiser(visitor, server, "live", view="#view=shrunk")
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.base)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#copied")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    expect(page.locator("#link")).to_be_hidden()
    visitor.context.clear_permissions()
    for refuses in ("() => Promise.reject(new DOMException('no', 'NotAllowedError'))", "undefined"):
        page.evaluate(
            "(x) => Object.defineProperty(navigator, 'clipboard', {configurable: true, value: x})"
            if refuses == "undefined"
            else f"() => {{ navigator.clipboard.writeText = {refuses}; }}"
        )
        page.get_by_role("button", name="Copy link").click()
        expect(page.locator("#copied")).to_have_text(
            "Your browser does not let this page copy. Copy the link yourself:"
        )
        link = page.get_by_role("textbox", name="Link to this view")
        assert link.input_value() == page.url
        assert page.evaluate("getSelection().toString() || document.activeElement.id") in (
            page.url,
            "link",
        )


# ---- the chart -----------------------------------------------------------------------------------


def downloaded(page, button):
    with page.expect_download() as found:
        page.get_by_role("button", name=button).click()
    return found.value.suggested_filename, Path(found.value.path()).read_bytes()


def check_chart(drawn, table, n):
    """Every row of the table is in the chart, as text and as a bar of the right length."""
    texts = ["".join(node.itertext()) for node in drawn.iter(f"{SVG}text")]
    bars = [float(x.get("width")) for x in drawn.iter(f"{SVG}rect") if x.get("height") == "14"]
    for item, _, share, interval, *_ in table:
        assert f"{item}{item}" in texts  # the label and its full name
        assert f"{share} ({interval})" in texts
    values = [float(share.removesuffix(" %")) for _, _, share, *_ in table]
    scale = bars[0] / values[0]
    # a share is written to 0.1, the first too: each end of the ratio is up to 0.05 off
    for bar, value in zip(bars, values, strict=True):
        off = 0.05 * scale * (1 + value / values[0]) * 1.01 + 0.01
        assert max(1, scale * value) == pytest.approx(bar, abs=off)
    assert any(
        f"{n:,} reports · 95 % intervals, of the population · As counted" in x for x in texts
    )


def test_the_chart_is_the_table_with_what_one_must_know(visitor, server, live):
    page = organiser(visitor, server, "live")
    name, content = downloaded(page, "Chart as SVG")
    assert name == "live.svg"
    drawn = ElementTree.fromstring(content)
    table = rows(page)
    check_chart(drawn, table, 20_000)
    must_fail(check_chart, drawn, [[*table[0][:2], "99.9 %", *table[0][3:]], *table[1:]], 20_000)
    must_fail(check_chart, drawn, table, 20_001)
    texts = ["".join(node.itertext()) for node in drawn.iter(f"{SVG}text")]
    assert texts[0] == live.policy.question
    assert texts[1] == page.locator("#headline").inner_text()
    today = page.evaluate(
        "new Date().toLocaleDateString('en', {year: 'numeric', month: 'long', day: 'numeric'})"
    )
    short = short_fingerprint(surveys()["live"].fingerprint)
    assert (
        today in texts[-2]
        and f"fingerprint \u2066{short}\u2069" in texts[-1]
        and "live" in texts[-1]
    )
    assert not {*drawn.iter(f"{SVG}image")} and b"http" not in content.replace(
        SVG[1:-1].encode(), b""
    )
    page.get_by_role("searchbox").fill("serious")
    texts = [
        "".join(x.itertext()) for x in ElementTree.fromstring(downloaded(page, "Chart as SVG")[1])
    ]
    assert any("5 of 41 answers" in x for x in texts)


def test_the_picture_is_the_chart(visitor, server, live):
    """Its size is twice the chart's, its bars and texts are there, in the dark too."""
    page = organiser(visitor, server, "live")
    page.emulate_media(color_scheme="dark")
    svg = ElementTree.fromstring(downloaded(page, "Chart as SVG")[1])
    name, content = downloaded(page, "Chart as PNG")
    assert name == "live.png"
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    assert picture.size == tuple(2 * int(svg.get(x)) for x in ("width", "height"))
    assert picture.getpixel((2, 2)) == (255, 255, 255)
    (bar, *_) = [x for x in svg.iter(f"{SVG}rect") if x.get("height") == "14"]
    x, y = (2 * float(bar.get(k)) + 8 for k in ("x", "y"))
    assert picture.getpixel((int(x), int(y))) == (0x0F, 0x76, 0x6E)
    title = picture.crop((64, 64, 800, 140)).getcolors(10_000)
    assert sum(n for n, (r, *_) in title if r < 64) > 500  # dark letters


def test_a_chart_of_a_group_names_it_and_one_in_arabic_is_mirrored(speaker, server, work):
    page = speaker("ar", size={"width": 1280, "height": 900})
    page.goto(f"{server.results['work']}#question=strain&by=region&group=north")
    page.locator("#secret").fill(TOKEN)
    page.locator("#token button").click()
    page.locator("#rows tr").first.wait_for()
    with page.expect_download() as found:
        page.locator("#svg").click()
    drawn = ElementTree.fromstring(Path(found.value.path()).read_bytes())
    assert drawn.get("direction") == "rtl"
    texts = ["".join(node.itertext()).strip("\u2068\u2069") for node in drawn.iter(f"{SVG}text")]
    assert texts[:2] == ["What strained you most?", "north"]
    bars = [x for x in drawn.iter(f"{SVG}rect") if x.get("height") == "14"]
    ends = {float(x.get("x")) + float(x.get("width")) for x in bars}
    assert len(ends) == 1 and min(ends) > 600  # all begin on the right


# ---- groups, crosses, sums -----------------------------------------------------------------------


def test_groups_are_beside_each_other_with_intervals(visitor, server, work):
    page = organiser(visitor, server, "work", view="#question=strain&by=region")
    found = server.estimate("work", question="strain", by="region").json()
    table = page.get_by_role("table", name="Shares by region")
    heads = table.get_by_role("columnheader").all_inner_texts()
    names = [group["group"]["region"] for group in found["groups"]]
    assert [x.split()[0] for x in heads] == names and "overseas" in names
    assert [x.split()[1] for x in heads] == [f"{group['n']:,}" for group in found["groups"]]
    order = [row["item"] for row in sorted(found["items"], key=lambda row: -row["count"])]
    assert table.get_by_role("rowheader").all_inner_texts() == order
    told = table.locator("td.cell").evaluate_all(
        "(all) => all.map((x) => [x.firstChild.data, x.querySelector('small').textContent])"
    )
    by_item = [{row["item"]: row for row in group["items"]} for group in found["groups"]]
    assert told == [
        [f"{figure(100 * row['share'], 1)} %",
         f"{figure(100 * row['share_low'], 1)} to {figure(100 * row['share_high'], 1)}"]
        for item in order for row in (group[item] for group in by_item)
    ]  # fmt: skip
    page.locator("#group").select_option("south")
    expect(page.locator("#grouped")).to_be_hidden()


@pytest.mark.parametrize("locale", ["en", "ar"])
@pytest.mark.parametrize("view", ["#question=strain&by=region", "#question=age+×+strain"])
def test_a_wide_table_is_slid_to_its_end_on_a_phone(speaker, server, work, locale, view):
    """The page is as wide as the window. Every cell can be reached, and its row's name is there."""
    page = in_language(speaker, server, locale, "work", view)
    box = page.locator(".wide-table").filter(visible=True)
    hint = page.locator('[data-text="sideways"]').filter(visible=True)
    expect(box).to_have_class("wide-table more")
    expect(hint).to_have_count(1)
    check_narrow(page, PHONE["width"])
    for end in range(2):
        assert covered(box) == []
        assert in_sight(box, "tr > :first-child")
        assert in_sight(box, "tr > :last-child") == bool(end)
        box.evaluate("(box, way) => box.scrollBy(999 * way, 0)", -1 if locale == "ar" else 1)
    expect(box).to_have_class("wide-table")
    page.set_viewport_size({"width": 1280, "height": 844})
    expect(hint).to_have_count(0)
    page.set_viewport_size(PHONE)
    box.evaluate("box => { box.style.overflow = 'hidden'; box.style.width = '900px'; }")
    must_fail(check_narrow, page, PHONE["width"])


def in_sight(box, cells):
    """Whether these cells are between the edges of the table's window."""
    return box.evaluate(
        """(box, cells) => {
          const edge = box.getBoundingClientRect();
          return [...box.querySelectorAll(cells)].every((cell) => {
            const { left, right } = cell.getBoundingClientRect();
            return left > edge.left - 1 && right < edge.right + 1;
          });
        }""",
        cells,
    )


def covered(box):
    """The names of rows that something else is drawn over, or that are wider than their place."""
    return box.evaluate(
        """(box) => {
          box.scrollIntoView({ block: "center" });
          return [...box.querySelectorAll("tr:not(:first-child) th")].filter((head) => {
            const { left, top, width, height } = head.getBoundingClientRect();
            const there = document.elementFromPoint(left + width / 2, top + height / 2);
            return !head.contains(there) || head.scrollWidth > head.clientWidth + 1;
          }).map((head) => head.textContent);
        }"""
    )


def test_sums_of_answers_have_their_own_rows(visitor, server, work):
    page = organiser(visitor, server, "work", view="#question=strain")
    (total,) = server.estimate("work", question="strain").json()["totals"]
    n = server.estimate("work", question="strain").json()["n"]
    assert total["item"] == "something"
    assert rows(page, "#sums") == [expected_row(total, n, None)]
    expect(page.locator("#sums-head")).to_have_text("Sums of answers")
    page.locator('[name=view][value="consistent"]').check(force=True)
    expect(page.locator("#sums-head")).to_be_hidden()


# ---- too few -------------------------------------------------------------------------------------


def test_strangers_see_fewer_than_the_minimum_never_nought(visitor, open_server):
    """0, 1, 49, 50 reports: the first three look the same."""
    visitor.arrive(open_server.base)
    survey = surveys()["steps"]
    page = visitor.open(open_server.results["steps"])
    page.locator("#numbers").wait_for()
    seen = []
    for more in (0, 1, 48, 1):
        if more:
            open_server.upload(survey, survey.mechanism.perturb_many([0] * more))
        page.reload()
        page.locator("#numbers").wait_for()
        seen.append(page.locator("#numbers").inner_text())
    assert seen[0] == seen[1] == seen[2] != seen[3]
    assert "fewer than 50 reports" in seen[0]
    assert (
        "Everyone sees results from 50 reports on, in steps; the organiser sees them earlier."
        in seen[0]
    )
    assert not re.search(r"\b0\b", seen[0].partition("How exact")[0])
    expect(page.locator("#n")).to_have_text("50")
    assert not [r for r in visitor.requests if "authorization" in r.headers]


def test_a_hidden_group_is_fewer_than_the_minimum(visitor, open_server):
    visitor.arrive(open_server.base)
    page = visitor.open(f"{open_server.results['work']}#question=strain&by=region")
    page.locator("#grouped").wait_for()
    options = page.locator("#group option").all_inner_texts()
    assert options[-1] == "overseas (fewer than 50)"
    page.locator("#group").select_option("overseas")
    expect(page.locator("#verdict")).to_have_text(
        "Fewer than 50 reports came from this group, so nothing of it is shown."
    )
    expect(page.locator("#n")).to_have_text("fewer than 50")
    expect(page.locator("#data")).to_be_hidden()
    expect(page.locator("#headline")).to_be_hidden()


def test_the_organiser_sees_a_small_group_and_that_it_shows_nothing(visitor, server, work):
    page = organiser(visitor, server, "work", view="#question=strain&by=region&group=overseas")
    expect(page.locator("#n")).to_have_text("3")
    expect(page.locator("#verdict")).to_contain_text("So far nothing stands out: ")
    expect(page.locator("#data")).to_be_hidden()


# ---- many answers --------------------------------------------------------------------------------


def enlarged(found, m):
    """The same estimate of many more items."""
    rows = [{**found["items"][k % 41], "item": f"item {k}"} for k in range(m)]
    for k, row in enumerate(rows):
        row["count"] -= k / 1000
    return {**found, "items": rows, "sure": []}


def test_of_16_470_answers_only_some_are_drawn(visitor, server, live):
    found = enlarged(server.estimate("live").json(), 16_470)
    body = json.dumps(found)
    visitor.context.route(
        "**/estimate*", lambda route: route.fulfill(body=body, content_type="application/json")
    )
    page = organiser(visitor, server, "live")
    expect(page.locator("#rows tr")).to_have_count(50)
    more, drawn = page.locator("#more"), 50
    while more.is_visible():
        more.click()
        assert page.locator("#rows tr").count() > drawn
        drawn = page.locator("#rows tr").count()
    assert drawn == 1000
    expect(page.locator("#found")).to_have_text(
        "15,470 more. Find them by their names, or download the table."
    )
    search = page.get_by_role("searchbox")
    search.fill("item 16469")
    assert [row[0] for row in rows(page)] == ["item 16469"]
    search.fill("item 1")
    expect(page.locator("#found")).to_contain_text(re.compile(r"^[\d,]+ of 16,470 answers"))
    expect(page.locator("#rows tr")).to_have_count(50)


# ---- for everybody -------------------------------------------------------------------------------


def in_language(speaker, server, locale, name, view="", **more):
    page = speaker(locale, **more)
    page.goto(server.results[name] + view)
    page.locator("#secret").fill(TOKEN)
    page.locator("#token button").click()
    page.locator("#rows tr").first.wait_for()
    return page


def spoken(page):
    """The texts that the page itself says, at their places."""
    return page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('[data-text]')]"
        ".map((x) => [x.dataset.text, x.textContent]))"
    )


@pytest.mark.parametrize(
    ("locale", "direction", "share"), [("de-AT", "ltr", ","), ("ar-EG", "rtl", ".")]
)
def test_the_page_speaks_the_readers_language(speaker, server, live, locale, direction, share):
    page = in_language(speaker, server, locale, "live")
    language = locale[:2]
    texts = {x["language"]: x for x in pages.translations(pages.RESULTS_TEXTS)}
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [
        language,
        direction,
    ]
    told = spoken(page)
    assert len(told) > 25 and told == {key: texts[language][key] for key in told}
    assert not {*told.values()} & {texts["en"][key] for key in told}
    found = server.estimate("live").json()
    top = max(found["items"], key=lambda row: row["count"])
    expected = figure(100 * top["count"] / found["n"], 1).replace(".", share)
    assert page.locator("#rows .share").first.inner_text().startswith(f"{expected} %")
    start = page.evaluate(
        "() => { const [cell, bar] = ['.plot', '.plot .bar'].map((x) =>"
        " document.querySelector(x).getBoundingClientRect());"
        " return [bar.left - cell.left, cell.right - bar.right]; }"
    )
    assert abs(start[direction == "rtl"]) < 0.5 < start[direction == "ltr"]
    check_narrow(page)
    title = texts[language]["title"].replace("{what}", live.policy.question)
    expect(page).to_have_title(title)
    page.locator("#language").select_option("en")
    assert spoken(page) == {key: texts["en"][key] for key in told}
    page.reload()
    page.locator("#rows tr").first.wait_for()
    assert page.evaluate("document.documentElement.lang") == "en"  # the choice is remembered


def test_a_phone_and_a_desk_read_the_same_table(visitor, server, live):
    """To a screen reader it is a table at every size: rows, and heads of rows and columns."""
    page = organiser(visitor, server, "live")
    told = []
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        table = page.get_by_role(
            "table", name="Shares and numbers of people, with 95 % intervals", exact=True
        )
        assert table.get_by_role("row").count() == 42
        assert table.get_by_role("columnheader").count() == 4
        assert table.get_by_role("rowheader").count() == 41
        told.append(table.get_by_role("row").nth(1).get_by_role("cell").all_text_contents())
    assert told[0] == told[1] and len(told[0]) == 3


@pytest.mark.parametrize(("locale", "scheme"), [("en", "light"), ("en", "dark"), ("ar", "dark")])
def test_axe_finds_nothing_serious(speaker, server, work, live, locale, scheme):
    page = in_language(speaker, server, locale, "live", scheme=scheme)
    page.evaluate("exactly.open = true")
    chromium.check_axe(page)
    for view in ("#question=strain&by=region", "#question=age+×+strain"):
        page = in_language(speaker, server, locale, "work", view, scheme=scheme)
        chromium.check_axe(page)
        check_contrast_of_cells(page)
    page.evaluate("document.querySelector('h1').style.color = '#888'")
    page.evaluate("document.body.style.background = '#777'")
    must_fail(chromium.check_axe, page)


def check_contrast_of_cells(page):
    """Texts of cells are read on their colours, which axe cannot mix."""
    worst = page.evaluate(
        """() => {
          const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
          const context = canvas.getContext("2d", { willReadFrequently: true });
          const light = (color) => {
            context.fillStyle = color;
            context.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((x) => {
              const c = x / 255;
              return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
          };
          return Math.min(...[...document.querySelectorAll(".cell small")].map((small) => {
            const two = [getComputedStyle(small).color,
              getComputedStyle(small.parentElement).backgroundColor].map(light);
            return Math.max(...two) / Math.min(...two);
          }));
        }"""
    )
    assert 4.5 <= worst < 22, worst


def test_paper_has_bars_and_no_controls(visitor, server, live):
    page = organiser(visitor, server, "live")
    page.emulate_media(media="print", color_scheme="dark")
    for gone in (".tools", "#taking", ".language", "#further", "#exactly"):
        expect(page.locator(gone)).to_be_hidden()
    expect(page.locator("#headline")).to_be_visible()
    assert page.locator(".plot .bar").count() > 10
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    cut = page.locator(".wide-table").first.evaluate("box => getComputedStyle(box).overflowX")
    assert cut == "visible"  # nobody scrolls on paper
    page.emulate_media(media="screen")


# ---- from the desk -------------------------------------------------------------------------------


def test_from_the_desk_the_whole_is_seen_without_the_token(speaker, server, work):
    """Numbers below the minimum are the organiser's: 0 is 0, and a group of 3 has 3."""
    page = speaker("en")
    page.goto(f"{server.base}/desk")
    page.get_by_label("Organiser’s token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.locator("#list").wait_for()
    seen = []
    page.on("request", lambda request: seen.append((request.url, request.headers)))
    page.goto(f"{server.base}/desk/surveys/empty/results")
    expect(page.locator("#n")).to_have_text("0")
    expect(page.locator("#verdict")).to_have_text("No report has arrived yet.")
    page.goto(f"{server.base}/desk/surveys/work/results#question=strain&by=region&group=overseas")
    expect(page.locator("#n")).to_have_text("3")
    page.locator("#group").select_option("")
    page.locator("#rows tr").first.wait_for()
    assert page.locator("#token").is_hidden()
    name, content = downloaded(page, "Download CSV")
    assert name == "work-strain.csv" and content.startswith(b"# What strained you most?")
    assert downloaded(page, "Chart as PNG")[1].startswith(b"\x89PNG")
    assert seen and not [url for url, headers in seen if "authorization" in headers or TOKEN in url]
