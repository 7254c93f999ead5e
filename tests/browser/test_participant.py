"""The participant's minute, in a real Chromium: who asks, the promise in numbers of people, bad
networks, long lists, several people on one device, languages, and axe-core on every page.
"""

import json
import math
import re
import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache

import chromium
import pytest
from checks import must_fail
from chromium import TOKEN, answered, asked, check_axe, command, confirmed, prepared
from exhaustive import distribution

import discreet as d

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("participant")
browser, server, visitor = chromium.browser, chromium.server, chromium.visitor  # fixtures
PHONE = {"width": 390, "height": 844}
SOON = 10_000  # milliseconds; the page itself is told of the network at once
FRUIT = ("apple", "banana", "cherry", "date", "elderberry")
LAST = ["zz 1", "zz 2"]


def hours(n):
    return (datetime.now(UTC) + timedelta(hours=n)).replace(microsecond=0)


def survey(name, *rows, about=None, **more):
    levels = rows or (("serious", 1, ["HIV", "hepatitis"]), ("common", 2, ["cold", "flu", "acne"]))
    policy = d.Policy.from_levels(levels, question="Which of these?", **more)
    return d.Survey(name, [d.design(policy, goal="total")], about=about)


@cache
def surveys():
    about = {
        "organiser": "City of Ghent",
        "contact": "survey@example.org",
        "purpose": "To plan.\n\nNothing else.",
        "consent": "I may be counted.",
        "language": "en",
        "opens": hours(-1),
        "closes": hours(100),
        "minimum": 200,
    }
    rare = ("rare", 1, [f"aardvark bite {k}" for k in range(40)] + ["zoonosis"])
    fruit = ("common", 2, [f"{name} {k}" for k in range(392) for name in FRUIT][:1959])
    found = [
        survey("told", about=about),
        survey("early", about={"opens": hours(30)}),
        survey("over", about={"closes": hours(-30)}),
        survey("try", about={"rehearsal": True}),
        survey("plain"),
        survey("several", kind="set", padding=2),
        survey("each", kind="each"),
        survey("wide", rare, fruit),
        survey("wide-sets", ("sensitive", 1, LAST), fruit, kind="set", padding=3, last=LAST),
    ]
    return {found_.name: found_ for found_ in found}


# ---- who asks, and when --------------------------------------------------------------------------


def test_who_asks_is_a_line_and_consent_is_a_box_beside_the_button(visitor, server):
    page = asked(visitor, server.links["told"])
    expect(page.locator("#about-title")).to_have_text("Who asks? City of Ghent")
    page.get_by_label("cold", exact=True).check()
    expect(page.locator("#prepare")).to_be_disabled()
    page.get_by_label("I agree: I may be counted.").check()
    expect(page.locator("#prepare")).to_be_enabled()
    page.locator("#about-title").click()
    rows = dict(
        zip(
            page.locator("#told dt").all_inner_texts(),
            page.locator("#told dd").all_inner_texts(),
            strict=True,
        )
    )
    assert rows["Organiser"] == "City of Ghent" and rows["Contact"] == "survey@example.org"
    assert rows["What for"] == "To plan.\n\nNothing else."
    assert rows["You agree"] == "I may be counted."
    assert rows["Results"] == (
        "once 200 reports are in; before that, only the organiser can see them"
    )
    assert {"Opens", "Closes"} < {*rows}
    expect(page.locator("#rehearsal")).to_be_hidden()
    page = asked(visitor, server.links["plain"])
    expect(page.locator("#about-title")).to_have_text("Who asks?")
    expect(page.locator("#own")).to_be_hidden()
    page = asked(visitor, server.links["try"])
    expect(page.locator("#rehearsal")).to_contain_text("None of it counts with real answers")


LINES = (
    "Which of these?",
    "Which of these conditions were you last treated for?",
    "Which of these conditions were you last treated for by a doctor or at a hospital nearby?",
)


HIGHEST = {360: (230, 285, 340), 390: (230, 260, 315)}  # of the first answer, by lines, in pixels


@pytest.mark.parametrize(("width", "height"), [(360, 640), (390, 844)])
def test_the_first_answer_and_the_button_are_seen_without_scrolling(visitor, server, width, height):
    page = visitor.page
    page.set_viewport_size({"width": width, "height": height})
    page = asked(visitor, server.links["told"])
    lines, highest = set(), []
    for words in LINES:
        page.evaluate("(words) => { question.textContent = words; }", words)
        heading, first, foot = (
            page.locator(x).first.bounding_box() for x in ("#question", "#choices label", "#foot")
        )
        lines.add(round(heading["height"] / 28))
        print(f"{width} x {height}, {len(words)} letters: first answer at {first['y']:.0f}")
        highest.append(round(first["y"]))
        assert first["y"] + first["height"] <= foot["y"]
        assert foot["y"] + foot["height"] <= height
    assert len(lines) >= 3
    assert all(y <= most for y, most in zip(highest, HIGHEST[width], strict=True)), highest
    page.locator("#about").evaluate("(x) => form.prepend(x)")  # the twin: who asks, as it was
    page.locator("#about-title").click()
    assert first["y"] + first["height"] < page.locator("#choices label").first.bounding_box()["y"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("early", r"^This survey opens on .*\. Please come back then\."),
     ("over", r"^This survey closed on .*\. It takes no more answers\.")],
)  # fmt: skip
def test_before_and_after_its_time_a_question_says_so(visitor, server, name, words):
    began = time.monotonic()
    page = visitor.open(server.links[name])
    expect(page.get_by_role("alert")).to_have_text(re.compile(words))
    assert time.monotonic() - began < DEADLINE
    expect(page.locator("#form")).to_be_hidden()
    expect(page.locator("#question")).to_have_text("Which of these?")


DEADLINE = 20  # seconds: not a measure, but an end


# ---- the promise in numbers of people ------------------------------------------------------------


def check_frequencies(document, item, low, high):
    """Whoever sends whatever report, if 10 of 100 hold the item: exactly, report by report."""
    others = [k for k in range(len(document["policy"]["items"])) if k != item]
    table = {k: distribution(document, k) for k in [item, *others]}
    for report, own in table[item].items():
        for other in others:  # all the rest hold the one that is least, or most, alike
            share = (
                Fraction(1, 10)
                * own
                / (Fraction(1, 10) * own + Fraction(9, 10) * table[other].get(report, Fraction(0)))
            )
            assert Fraction(low, 100) <= share <= Fraction(high, 100)


@pytest.mark.parametrize("label", ["HIV", "cold"])
def test_the_promise_is_an_example_in_numbers_of_people(visitor, server, label):
    page = asked(visitor, server.links["plain"])
    page.get_by_label(label, exact=True).check()
    words = page.locator("#frequencies").text_content()
    low, high = map(int, re.search(r"at least (\d+) and at most (\d+) gave this", words).groups())
    assert words.startswith(f"Say 10 of 100 people answer “{label}”.")
    document = surveys()["plain"].mechanism.to_document()
    item = surveys()["plain"].mechanism.policy.index[label]
    check_frequencies(document, item, low, high)
    must_fail(check_frequencies, document, item, low, high - 1)
    must_fail(check_frequencies, document, item, low + 1, high)
    drawn = page.locator("#people g")
    assert [drawn.nth(k).get_attribute("class") for k in (0, low, high)] == [
        "surely",
        "perhaps",
        "others",
    ]
    assert page.locator("#people .surely").count() == low
    assert page.locator("#people circle").count() == 100
    exact = page.locator("#sentences")
    expect(exact).to_be_hidden()
    page.get_by_text("What can others learn from it?").click()
    expect(exact).to_contain_text("by at most a factor of")


def test_of_several_answers_the_example_holds_whatever_else_people_ticked(visitor, server):
    """People with an item and without it may differ in all others: it is the whole list's factor,
    and where lists are not protected there is no example.
    """
    page = asked(visitor, server.links["several"])
    expect(page.locator("#example")).to_be_hidden()
    for label in ("HIV", "flu"):
        page.get_by_label(label, exact=True).check()
    guarantee = surveys()["several"].mechanism.guarantee()
    factor = float(guarantee.set_factor)
    assert factor > 1.01 * float(guarantee.factors[0])  # that of an item like HIV
    high = math.ceil(1000 * factor / (10 * factor + 90))
    expect(page.locator("#frequencies")).to_contain_text("“HIV” applies to 10 of 100 people")
    expect(page.locator("#frequencies")).to_contain_text(f"at most {high}.")
    page = asked(visitor, server.links["each"])
    page.get_by_label("HIV", exact=True).check()
    expect(page.locator("#example")).to_be_hidden()
    expect(page.locator("#sentences")).to_contain_text("Your whole list is not protected as one")


def test_what_will_be_sent_is_mostly_chance_where_it_is(visitor, server):
    page = asked(visitor, server.links["wide-sets"])
    prepared(page, "apple 0")
    often = page.locator("#often").inner_text()
    assert re.search(
        r"If you gave that answer, about [\d–]+ of them name it\. If you did not", often
    )
    assert "most of what a report names is there by chance" in often
    expect(page.locator("#check")).to_contain_text("cannot be taken back")
    page = asked(visitor, server.links["plain"])
    prepared(page, "HIV")
    named = page.locator("#bits li").count()
    assert ("is there by chance" in page.locator("#often").inner_text()) == (named > 2)


# ---- networks that fail --------------------------------------------------------------------------


def test_offline_she_reads_it_at_once_and_it_goes_on_by_itself(visitor, server):
    page = asked(visitor, server.links["plain"])
    prepared(page, "cold")
    before = server.n("plain")
    visitor.context.set_offline(True)
    page.locator("#send").click()
    expect(page.locator("#status")).to_have_text(
        re.compile("^You are offline. This goes on by itself"), timeout=SOON
    )
    visitor.context.set_offline(False)
    expect(page.locator("#receipt")).to_be_visible(timeout=SOON)
    assert server.n("plain") == before + 1


def test_a_report_that_could_not_be_sent_is_sent_when_the_network_is_back(visitor, server):
    """After a minute the page gives up trying, not the report."""
    page = visitor.page
    page.clock.install()
    page = asked(visitor, server.links["plain"])
    prepared(page, "cold")
    before = server.n("plain")
    visitor.context.set_offline(True)
    page.locator("#send").click()
    alert = page.get_by_role("alert")
    for _ in range(90):
        page.clock.run_for(1000)
        if alert.is_visible():
            break
    expect(alert).to_contain_text("Not sent yet. Your report is kept on this device. It is sent by")
    assert server.n("plain") == before
    visitor.context.set_offline(False)
    expect(page.locator("#receipt")).to_be_visible(timeout=SOON)
    assert server.n("plain") == before + 1


def test_offline_from_the_start_with_a_copy_of_the_page(visitor, server, tmp_path):
    command(tmp_path, "page", "-o", "answer.html")
    fingerprint = surveys()["plain"].fingerprint
    visitor.allowed = (*visitor.allowed, "file:")
    visitor.context.set_offline(True)
    page = visitor.open(
        f"{(tmp_path / 'answer.html').as_uri()}"
        f"#server={server.base}&collection=plain&fingerprint={fingerprint}"
    )
    waiting = re.compile("You are offline|The server does not answer just now")
    expect(page.locator("#status")).to_contain_text(waiting, timeout=SOON)  # as the browser knows
    expect(page.locator("#form")).to_be_hidden()
    visitor.context.set_offline(False)
    expect(page.locator("#form")).to_be_visible(timeout=SOON)


def test_a_slow_connection_is_called_slow(visitor, server):
    """30 kB/s and 800 ms: something to read at once, every step within seconds."""
    page = visitor.page
    session = visitor.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 800, "downloadThroughput": 30e3, "uploadThroughput": 30e3},
    )
    began = time.monotonic()

    def passed():
        return round(time.monotonic() - began, 1)

    page.goto(server.links["wide"], wait_until="commit")
    times = {}
    page.get_by_text("Your device mixes your answer with chance").wait_for()
    times["first words"] = passed()
    expect(page.locator("#status")).to_have_text(re.compile("^Fetching|^The connection is slow"))
    page.locator("#form").wait_for()
    times["question"] = passed()
    prepared(page, "apple 1")
    began = time.monotonic()
    page.locator("#send").click()
    expect(page.locator("#status")).to_have_text("Sending …")
    times["sending"] = passed()
    page.locator("#receipt").wait_for()
    times["receipt"] = passed()
    session.detach()
    print(f"at 30 kB/s and 800 ms, in seconds: {times}")
    assert times["first words"] < times["question"] < DEADLINE and times["receipt"] < DEADLINE


def test_a_silent_collector_is_called_slow_and_then_away(visitor, server):
    page = asked(visitor, server.links["plain"])
    prepared(page, "cold")
    page.route("**/reports", lambda route: None)  # no answer at all
    page.locator("#send").click()
    slow = "The connection is slow; still trying. Nothing is lost."
    expect(page.locator("#status")).to_have_text(slow, timeout=SOON)
    page.unroute_all()
    page.evaluate("localStorage.clear()")  # else this is about the same items
    page = asked(visitor, server.links["told"])
    prepared(page, "cold")
    page.route("**/reports", lambda route: route.fulfill(status=503, body="{}"))
    page.locator("#send").click()
    away = re.compile(r"^The server does not answer just now. The next try is in \d+ second")
    expect(page.locator("#status")).to_have_text(away, timeout=SOON)
    page.unroute_all()
    expect(page.locator("#receipt")).to_be_visible()


# ---- several people on one device ----------------------------------------------------------------


def test_a_second_person_answers_on_purpose(visitor, server):
    page = asked(visitor, server.links["told"])
    answered(page, "HIV")
    first = visitor.posts()
    page.reload()
    page.locator("#form").wait_for()
    expect(page.locator("#known")).to_contain_text("This browser has answered this question")
    before = server.n("told")
    page.get_by_role("button", name="Somebody else answers").click()
    expect(page.locator("#person")).to_have_text("Person 2 on this device")
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    answered(page, "cold")
    assert server.n("told") == before + 1 and visitor.posts()[1:] != first
    entries = page.evaluate("Object.entries(localStorage)")
    ledgers = {k: json.loads(v)["entries"] for k, v in entries if k.startswith("discreet-ledger")}
    assert [(k, len(v)) for k, v in sorted(ledgers.items())] == [
        ("discreet-ledger/4", 1),
        ("discreet-ledger/4/2", 1),
    ]
    assert ledgers["discreet-ledger/4"] != ledgers["discreet-ledger/4/2"]
    page.reload()  # the first person again, whose report is still hers
    page.locator("#form").wait_for()
    answered(page, "flu")
    assert visitor.posts()[2] == first[0] and server.n("told") == before + 1
    expect(page.locator("#thanks")).to_contain_text("counted once")


def test_nobody_draws_again_as_somebody_else(visitor, server):
    """A report that was looked at, or that could not be sent, offers no second draw."""
    page = asked(visitor, server.links["plain"])
    expect(page.locator("#shared")).to_be_hidden()
    prepared(page, "HIV")
    page.locator("#back").click()
    expect(page.locator("#shared")).to_be_hidden()
    confirmed(page)
    page.route("**/reports", lambda route: route.fulfill(status=404, body="{}"))
    page.locator("#send").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.locator("#back").click()
    page.locator("#form").wait_for()
    expect(page.locator("#shared")).to_be_hidden()
    page.unroute_all()
    confirmed(page)
    page.locator("#send").click()
    page.locator("#receipt").wait_for()
    page.go_back()
    expect(page.locator("#shared")).to_be_visible()


def test_consent_can_be_another_person_s(visitor, server):
    """Who shares a device with somebody who answered about the same items need not agree to her
    sum.
    """
    answered(asked(visitor, server.links["plain"]), "HIV")
    page = asked(visitor, server.links["told"])
    expect(page.locator("#consent")).to_be_visible()
    page.get_by_role("button", name="Somebody else answers").click()
    expect(page.locator("#consent")).to_be_hidden()
    expect(page.locator("#shared")).to_be_hidden()
    answered(page, "cold")


def test_the_dates_are_the_question_s_not_the_server_s(visitor, server):
    def lie(route):
        found = route.fetch()
        route.fulfill(response=found, json={**found.json(), "state": "open"})

    visitor.page.route("**/v1/collections/over", lie)
    page = visitor.open(server.links["over"])
    expect(page.get_by_role("alert")).to_contain_text("This survey closed on")
    expect(page.locator("#form")).to_be_hidden()


# ---- long lists ----------------------------------------------------------------------------------


def test_two_thousand_answers_in_their_order_with_the_chosen_ones_in_sight(visitor, server):
    visitor.page.set_viewport_size(PHONE)
    page = asked(visitor, server.links["wide-sets"])
    labels = page.locator("#choices .what")
    assert labels.all_inner_texts() == [f"{name} {k}" for k in range(12) for name in FRUIT]
    page.locator("#show-more").click()
    expect(labels).to_have_count(120)
    page.get_by_role("button", name="C", exact=True).click()
    assert labels.nth(0).inner_text() == "cherry 0"
    for label in ("cherry 1", "cherry 40"):
        page.get_by_label(label, exact=True).check()
    page.get_by_role("button", name="All", exact=True).click()
    page.locator("#search").fill("ZZ 2")  # a search looks everywhere
    page.get_by_label("zz 2", exact=True).check()
    chips = page.locator("#chosen button")
    assert chips.all_inner_texts() == ["cherry 1", "cherry 40", "zz 2"]
    page.locator("#search").fill("")
    for place in ("#search", "#choices label:nth-of-type(30)"):
        page.locator(place).scroll_into_view_if_needed()
        for thing in ("#prepare", "#chosen"):
            box = page.locator(thing).bounding_box()
            assert 0 <= box["y"] and box["y"] + box["height"] <= PHONE["height"]
    page.get_by_role("button", name="Remove cherry 40").click()
    assert chips.all_inner_texts() == ["cherry 1", "zz 2"]
    page.get_by_role("button", name="C", exact=True).click()
    expect(page.get_by_label("cherry 40", exact=True)).not_to_be_checked()
    answered(page)


def test_few_answers_are_in_the_order_of_the_file(visitor, server):
    page = asked(visitor, server.links["plain"])
    listed = page.locator("#choices .what").all_inner_texts()
    assert listed == ["HIV", "hepatitis", "cold", "flu", "acne"]
    expect(page.locator("#chosen")).to_be_hidden()
    expect(page.locator("#groups")).to_be_hidden()


# ---- languages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("locale", "direction", "send", "thanks", "number"),
    [("de-AT", "ltr", "Senden", "Danke. Ihre Meldung ist gezählt.", "2,"),
     ("ar-EG", "rtl", "إرسال", "شكرًا لك. عُدَّ تقريرك.", "2."),
     ("fr-FR", "ltr", "Send", "Thank you. Your report is counted.", "2.")],
)  # fmt: skip
def test_the_page_speaks_the_reader_s_language(
    browser, server, locale, direction, send, thanks, number
):
    context = browser.new_context(locale=locale, viewport=PHONE)
    page = context.new_page()
    page.goto(server.links["told"])
    page.locator("#form").wait_for()
    assert page.evaluate("document.documentElement.dir") == direction
    assert page.evaluate("document.documentElement.lang") == (
        locale[:2] if locale[:2] in ("de", "ar") else "en"
    )
    page.get_by_label("cold", exact=True).check()
    page.locator("#exact summary").click()
    assert re.search(rf"7{number.replace('2', '')}3", page.locator("#sentences").inner_text())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    confirmed(page)
    expect(page.locator("#send")).to_have_text(send)
    page.locator("#send").click()
    expect(page.locator("#receipt-title")).to_have_text(thanks)
    context.close()


def test_a_language_can_be_chosen_and_is_remembered(visitor, server):
    page = asked(visitor, server.links["told"])
    assert page.get_by_label("Language").inner_text().split() == ["English", "العربية", "Deutsch"]
    page.get_by_label("HIV", exact=True).check()
    page.get_by_label("Language").select_option("de")
    expect(page.locator("#prepare")).to_have_text("Weiter")
    expect(page.locator("#told dt").first).to_have_text("Organisatoren")
    expect(page.get_by_label("HIV", exact=True)).to_be_checked()
    confirmed(page)
    page.locator("#check").wait_for()
    page.get_by_label("Sprache").select_option("ar")
    expect(page.locator("#check-title")).to_have_text("هذا ما سيُرسل: خليط من إجابتك ومن المصادفة")
    expect(page.locator("#check")).to_be_visible()
    page.reload()
    page.locator("#form").wait_for()
    assert page.evaluate("document.documentElement.dir") == "rtl"
    page = visitor.open(server.links["over"])
    expect(page.get_by_role("alert")).to_have_text(re.compile("^أُغلق هذا الاستبيان في .*مجيئك."))
    expect(page.locator("#help")).to_be_hidden()
    page.get_by_label("اللغة").select_option("en")
    expect(page.get_by_role("alert")).to_contain_text("This survey closed on")


def test_an_error_is_said_in_the_reader_s_language_and_in_english(visitor, server):
    page = asked(visitor, server.links["told"])
    page.get_by_label("Language").select_option("de")
    page = visitor.open(f"{server.base}/c/told#{'0' * 64}")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Das ist nicht die Umfrage, zu der Sie eingeladen wurden")
    expect(alert.locator("#cause")).to_contain_text("The invitation is for fingerprint 0000")


# ---- axe-core ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("locale", "scheme"),
    [
        ("en-GB", "light"),
        ("ar", "dark"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("en-GB", "dark"), ("ar", "light"), ("de", "dark"))
        ),
    ],
)
def test_axe_finds_nothing_serious_on_any_page(browser, server, locale, scheme):
    context = browser.new_context(locale=locale, color_scheme=scheme, viewport=PHONE)
    page = context.new_page()
    for name in ("told", "wide-sets"):
        page.goto(server.links[name])
        page.locator("#form").wait_for()
        page.locator("#choices input").nth(1).check()
        page.evaluate("for (const x of document.querySelectorAll('details')) x.open = true")
        check_axe(page)
        confirmed(page)
        page.locator("#check").wait_for()
        check_axe(page)
        page.locator("#send").click()
        page.locator("#receipt").wait_for()
        check_axe(page)
    page.goto(server.links["told"])
    page.reload()
    page.locator("#before").wait_for()
    check_axe(page)
    for name in ("over", "try"):
        page.goto(server.links[name])
        page.locator("#question").filter(has_text="Which").wait_for()
        check_axe(page)
    page.goto(server.base)
    check_axe(page)
    page.goto(server.results["told"])
    check_axe(page)
    page.locator("#secret").fill(TOKEN)
    page.locator("#token button").click()
    page.locator("#noise").click()  # so few answers are shown only to those who ask
    page.locator("#rows tr").first.wait_for()
    check_axe(page)
    page.evaluate("document.querySelector('h1').style.color = '#888'")
    page.evaluate("document.body.style.background = '#777'")
    must_fail(check_axe, page)
    context.close()
