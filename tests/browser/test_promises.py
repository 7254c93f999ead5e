"""What a participant is promised, held against a real Chromium: an answer that left arrives, nobody
sees the answer of the person before, and no sentence reassures where it is not true.
"""

import json
import re
import time
from functools import cache

import chromium
import pytest
from chromium import Server, Visitor, answered, asked, confirmed, look_closely, prepared

import discreet as d

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("promises")
browser, server, visitor = chromium.browser, chromium.server, chromium.visitor  # fixtures
LEVELS = [("serious", 1, ["HIV", "hepatitis"]), ("common", 2, ["cold", "flu", "acne"])]
FRUIT = [f"{name} {k}" for k in range(30) for name in ("apple", "banana", "cherry")]
SAFE = "Nobody, not even the organiser, can know what you answered."


def survey(name, levels=LEVELS, **more):
    policy = d.Policy.from_levels(levels, question="Which of these?", **more)
    return d.Survey(name, [d.design(policy)])


@cache
def surveys():
    weak = [("a", 6, ["HIV", "cold", "flu"])]
    free = {"pairs": [("serious", "common", None)]}
    found = [
        survey("plain"),
        survey("other"),
        survey("wide", [("a", 1, FRUIT)]),
        survey("wide-lists", [("a", 1, FRUIT)], kind="set", padding=2),
        survey("weak", weak),
        survey("open", **free),
        survey("each", [("a", 2, ["HIV", "cold", "flu"])], kind="each"),
        survey("capped", [("a", 1, ["HIV"]), ("b", "2.5", ["cold", "flu"])]),
    ]
    return {found_.name: found_ for found_ in found}


def states(page, key="discreet-ledger/4"):
    text = page.evaluate("(key) => localStorage.getItem(key)", key)
    return [entry["state"] for entry in json.loads(text or '{"entries": []}')["entries"]]


def send_offline(visitor, page, key="discreet-ledger/4"):
    """Send without a network, and wait until the ledger knows that the report is on its way: the
    page says that it is offline a moment earlier.
    """
    visitor.context.set_offline(True)
    page.locator("#send").click()
    expect(page.locator("#status")).to_contain_text("You are offline")
    wait_for_states(page, key, ["leaving"])


def wait_for_states(page, key, expected):
    end = time.monotonic() + 20
    while states(page, key) != expected:
        assert time.monotonic() < end
        page.wait_for_timeout(50)


# ---- an answer that left arrives -----------------------------------------------------------------


def test_a_report_that_was_on_its_way_is_sent_on_the_next_visit(visitor, server):
    page = visitor.another(server.links["plain"])
    page.locator("#form").wait_for()
    prepared(page, "cold")
    before = server.n("plain")
    send_offline(visitor, page)
    page.close()
    assert server.n("plain") == before
    visitor.context.set_offline(False)
    page = visitor.open(server.links["plain"])
    page.locator("#receipt").wait_for()
    assert server.n("plain") == before + 1 and states(page) == ["counted"]
    page.reload()
    expect(page.locator("#known")).to_contain_text("This browser has answered this question")
    assert server.n("plain") == before + 1


def test_until_it_is_acknowledged_nobody_is_told_that_it_is_answered(visitor, server):
    """Also where it arrived, and only the acknowledgement was lost: it is counted once."""
    page = asked(visitor, server.links["plain"])
    prepared(page, "cold")
    before = server.n("plain")
    lost = [True]

    def lose(route):
        if lost[0]:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    visitor.context.route("**/reports", lose)
    page.locator("#send").click()
    expect(page.locator("#status")).to_contain_text("does not answer just now")
    assert server.n("plain") == before + 1 and states(page) == ["leaving"]
    page.reload()
    page.locator("#form").wait_for()
    expect(page.locator("#known")).to_contain_text("Not sent yet, or nobody knows")
    assert "answered" not in page.locator("#known").inner_text()
    expect(page.get_by_role("button", name="Show the receipt")).to_be_hidden()
    expect(page.get_by_role("button", name="Somebody else answers")).to_be_hidden()
    lost[0] = False
    page.reload()
    page.locator("#receipt").wait_for()
    expect(page.locator("#thanks")).to_contain_text("It is counted once")
    assert server.n("plain") == before + 1 and len({*visitor.posts()}) == 1


def test_the_report_of_a_second_person_is_sent_on_the_next_visit_too(visitor, server):
    page = asked(visitor, server.links["plain"])
    answered(page, "cold")
    page.go_back()
    page.get_by_role("button", name="Somebody else answers").click()
    prepared(page, "flu")
    before = server.n("plain")
    send_offline(visitor, page, "discreet-ledger/4/2")
    page.goto("about:blank")
    visitor.context.set_offline(False)
    page = asked(visitor, server.links["plain"])
    wait_for_states(page, "discreet-ledger/4/2", ["counted"])
    assert server.n("plain") == before + 1


def test_what_was_on_its_way_when_the_question_closed_is_said(visitor, server):
    closing = survey("closing")
    body = {"state": "open", "keeps": "counts", "survey": closing.to_document()}
    visitor.context.route("**/v1/collections/closing", lambda route: route.fulfill(json=body))
    visitor.context.route("**/v1/collections/closing/reports", lambda route: route.abort())
    link = f"{server.base}/c/closing#{closing.fingerprint}"
    page = asked(visitor, link)
    prepared(page, "cold")
    page.locator("#send").click()
    expect(page.locator("#status")).to_contain_text("does not answer just now")
    body["state"] = "closed"
    page.reload()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("This survey is closed. It takes no more answers.")
    expect(alert).to_contain_text("Nobody knows whether it arrived in time")


# ---- nobody sees the answer of the person before -------------------------------------------------


def held(page, place):
    """How many sets of numbers in the page's memory hold this place of an item."""
    session = page.context.new_cdp_session(page)
    kind = session.send("Runtime.evaluate", {"expression": "Set.prototype"})["result"]["objectId"]
    found = session.send("Runtime.queryObjects", {"prototypeObjectId": kind})["objects"]
    counted = session.send(
        "Runtime.callFunctionOn",
        {
            "objectId": found["objectId"],
            "functionDeclaration": "function (k) { return this.filter((x) => x.has(k)).length; }",
            "arguments": [{"value": place}],
            "returnByValue": True,
        },
    )
    session.detach()
    return counted["result"]["value"]


def test_once_the_report_is_written_down_the_answer_is_nowhere(visitor, server):
    page = asked(visitor, server.links["wide"])
    place = FRUIT.index("cherry 7")
    page.locator("#search").fill("cherry 7")
    page.get_by_label("cherry 7", exact=True).check()
    expect(page.locator("#promise")).to_contain_text("cherry 7")
    assert held(page, place) > 0
    confirmed(page)
    page.locator("#check").wait_for()
    for step in ("prepared", "counted"):
        if step == "counted":
            page.locator("#send").click()
            page.locator("#receipt").wait_for()
        assert held(page, place) == 0
        form = page.locator("#form").inner_html()
        assert 'class="what"' in form and page.locator("#search").input_value() == ""
        assert page.evaluate("document.querySelectorAll('input:checked').length") == 0
        for part in ("#sentences", "#chosen", "#frequencies", "#people"):
            assert page.locator(part).inner_html() == ""
    page.go_back()
    page.locator("#form").wait_for()
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    expect(page.locator("#promise")).to_be_hidden()
    expect(page.locator("#chosen")).to_be_hidden()


def test_back_from_the_check_needs_no_answer_any_more(visitor, server):
    page = asked(visitor, server.links["plain"])
    prepared(page, "HIV")
    shown = page.locator("#bytes").inner_text()
    page.locator("#back").click()
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    confirmed(page)
    expect(page.locator("#bytes")).to_have_text(shown)


@pytest.mark.parametrize("name", ["wide", "wide-lists"])
def test_somebody_else_finds_nothing_of_the_person_before(visitor, server, name):
    page = asked(visitor, server.links[name])
    answered(page, "apple 0")
    page.go_back()
    page.locator("#groups button", has_text="C").click()
    page.locator("#search").fill("cherry 29")
    page.get_by_label("cherry 29", exact=True).check()
    page.locator("#exact summary").click()
    page.get_by_role("button", name="Somebody else answers").click()
    assert page.locator("#search").input_value() == ""
    expect(page.locator("#choices .what")).to_have_count(60)
    expect(page.locator("#groups button[aria-pressed=true]")).to_have_text("All")
    assert page.evaluate("document.querySelectorAll('input:checked').length") == 0
    assert "cherry 29" not in page.locator("#form").inner_text()
    assert page.evaluate("document.querySelectorAll('#form details[open]').length") == 0


def test_one_person_s_consent_is_not_the_next_one_s(visitor, server):
    """Both were asked about the same items before: each agrees for themselves."""
    page = asked(visitor, server.links["plain"])
    answered(page, "cold")
    page.go_back()
    page.get_by_role("button", name="Somebody else answers").click()
    answered(page, "flu")
    page = asked(visitor, server.links["other"])
    page.locator("#agree").check()
    answered(page, "cold")
    page.go_back()
    page.get_by_role("button", name="Somebody else answers").click()
    expect(page.locator("#consent")).to_be_visible()
    expect(page.locator("#agree")).not_to_be_checked()
    page.get_by_label("flu", exact=True).check()
    expect(page.locator("#prepare")).to_be_disabled()
    page.locator("#agree").check()
    expect(page.locator("#prepare")).to_be_enabled()


def test_the_browser_helps_with_nothing_that_is_typed_or_chosen(visitor, server):
    """Spelling and translation may be done by others."""
    page = asked(visitor, server.links["wide-lists"])
    page.get_by_label("apple 0", exact=True).check()
    search = page.locator("#search")
    told = {"spellcheck": "false", "autocomplete": "off", "translate": "no", "autocorrect": "off"}
    assert {key: search.get_attribute(key) for key in told} == told
    sealed = page.evaluate(
        "[...document.querySelectorAll('[translate=no]')].map((x) => x.id).filter((x) => x)"
    )
    wanted = {
        "search",
        "groups",
        "choices",
        "count",
        "promise",
        "chosen",
        "check",
        "receipt",
        "sure",
    }
    assert wanted == {*sealed}
    kept = page.evaluate("document.getElementById('form').autocomplete")
    assert kept == page.locator("#agree").get_attribute("autocomplete") == "off"


def race(visitor, link):
    """Two tabs draw at the same moment: what each shows, and what the ledger has."""
    pages = visitor.context.pages[:2]
    for page in pages:
        page.evaluate("localStorage.clear()")
    for page in pages:
        page.bring_to_front()
        page.goto("about:blank")
        page.goto(link)
        page.locator("#form").wait_for()
        page.get_by_label("HIV", exact=True).check()
        page.locator("#prepare").click()
        page.locator("#sure").wait_for()
    start = pages[0].evaluate("Date.now()") + 120
    press = "() => document.getElementById('go').click()"
    wait = f"(start) => {{ setTimeout({press}, start - Date.now()); }}"
    for page in pages:
        page.evaluate(wait, start)
    for page in pages:
        page.locator("#check").wait_for()
        look_closely(page)
    shown = [page.locator("#bytes").inner_text() for page in pages]
    text = pages[0].evaluate("localStorage.getItem('discreet-ledger/4')")
    return shown, [entry["report"] for entry in json.loads(text)["entries"]]


def raced(visitor, server, trials):
    visitor.open(server.links["wide"])
    visitor.another(server.links["wide"])
    link = server.links["plain"]
    for page in visitor.context.pages:
        page.goto(link)
        page.locator("#form").wait_for()
    different = 0
    for _ in range(trials):
        shown, kept = race(visitor, link)
        different += shown[0] != shown[1] or [shown[0].replace(" ", "")] != kept
    return different


def test_two_tabs_at_the_same_moment_draw_one_report(visitor, server):
    assert raced(visitor, server, 6) == 0


@pytest.mark.slow
def test_two_tabs_at_the_same_moment_draw_one_report_five_hundred_times(visitor, server):
    assert raced(visitor, server, 500) == 0


def sent_at_once(visitor, server, trials):
    """Two tabs send at the same moment, to questions about the same items: how often both reports
    left, though nobody had agreed to their sum.
    """
    names = "plain", "other"
    pages = [visitor.open(server.links["plain"]), visitor.another(server.links["other"])]
    both = 0
    for _ in range(trials):
        pages[0].evaluate("localStorage.clear()")
        for page, name in zip(pages, names):
            page.goto("about:blank")
            page.goto(server.links[name])
            page.locator("#form").wait_for()
            prepared(page, "HIV")
        before = sum(map(server.n, names))
        start = pages[0].evaluate("Date.now()") + 120
        press = "() => document.getElementById('send').click()"
        for page in pages:
            page.evaluate(f"(start) => {{ setTimeout({press}, start - Date.now()); }}", start)
        for page in pages:
            page.locator("#receipt:visible, #consent:visible").first.wait_for()
        both += sum(map(server.n, names)) - before == 2
    return both


def test_two_tabs_at_the_same_moment_cannot_do_without_consent(visitor, server):
    assert sent_at_once(visitor, server, 4) == 0


@pytest.mark.slow
def test_two_tabs_at_the_same_moment_cannot_do_without_consent_a_hundred_times(visitor, server):
    assert sent_at_once(visitor, server, 100) == 0


# ---- no sentence reassures where it is not true --------------------------------------------------


@pytest.mark.parametrize(
    ("name", "caution"),
    [
        ("plain", ""),
        (
            "weak",
            "This is weak protection: one report can change the odds between two answers by",
        ),
        ("open", "Some answers are not protected from each other"),
        ("each", "Each answer is protected on its own, but a list of several answers is not"),
    ],
)
@pytest.mark.parametrize("language", ["en", "de", "ar"])
def test_weak_protection_is_said_instead(visitor, server, name, caution, language):
    page = asked(visitor, server.links[name])
    page.locator("#language").select_option(language)
    if language == "en":
        assert caution in page.locator("#caution").inner_text() if caution else True
        assert (SAFE in page.locator("main").inner_text()) == (not caution)
    expect(page.locator("#caution")).to_be_visible(visible=bool(caution))
    assert bool(page.locator("#safe").inner_text()) == (not caution)
    page.get_by_label("HIV", exact=True).check()
    look_closely(page)
    expect(page.locator("#example")).to_be_visible(visible=not caution)


def test_a_link_of_one_s_own_is_refused(visitor, server):
    """The same question and fingerprint, under a name that only this person was given."""
    plain = surveys()["plain"]
    body = {"state": "open", "keeps": "counts", "survey": plain.to_document()}
    visitor.context.route("**/v1/collections/for-you", lambda route: route.fulfill(json=body))
    page = visitor.open(f"{server.base}/c/for-you#{plain.fingerprint}")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text('The link is for "for-you", but the survey there is called')
    expect(alert).to_contain_text("Compare your whole link")
    expect(page.locator("#form")).to_be_hidden()


def test_a_path_of_one_s_own_is_seen(visitor, server):
    plain = surveys()["plain"]
    body = {"state": "open", "keeps": "counts", "survey": plain.to_document()}
    path = "/for/anna/v1/collections/plain"
    visitor.context.route(f"**{path}", lambda route: route.fulfill(json=body))
    link = f"{server.base}/c/plain#server={server.base}/for/anna&collection=plain"
    page = asked(visitor, f"{link}&fingerprint={plain.fingerprint}")
    host = server.base.partition("//")[2]
    expect(page.locator("#where")).to_contain_text(f"your report goes to {host}/for/anna")
    page = asked(visitor, server.links["plain"])
    expect(page.locator("#where")).to_have_text(f"discreet · plain · your report goes to {host}")


OWN = {  # what a link could tell the server about its reader
    "a query": "/c/plain?for=anna#{mark}",
    "an empty query": "/c/plain?#{mark}",
    "another spelling": "/c/%70lain#{mark}",
    "another name": "/c/anna#collection=plain&fingerprint={mark}",
    "a slash behind": "/c/plain/#{mark}",
    "a slash before": "//c/plain#{mark}",
    "a server's query": "/c/plain#server={base}/?anna=&collection=plain&fingerprint={mark}",
    "a name that is none": "/c/%E0%A4%A#{mark}",
}


def everywhere(visitor, server, url):
    """A collector that shows the page and the survey at whatever address it is asked for."""
    html = server.http.get(f"{server.base}/c/plain").text
    body = {"state": "open", "keeps": "counts", "survey": surveys()["plain"].to_document()}
    visitor.context.route(
        lambda asked: asked == url, lambda route: route.fulfill(body=html, content_type="text/html")
    )
    visitor.context.route("**/?anna=/**", lambda route: route.fulfill(json=body))


@pytest.mark.parametrize("own", OWN)
def test_a_link_that_could_be_somebody_s_own_is_refused(visitor, server, own):
    mark = surveys()["plain"].fingerprint
    link = server.base + OWN[own].format(mark=mark, base=server.base)
    everywhere(visitor, server, link.partition("#")[0])
    page = visitor.open(link)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("This link has more in it than the survey and its fingerprint")
    expect(alert).to_contain_text("Compare the whole link")
    expect(page.locator("#form")).to_be_hidden()


def test_a_link_with_somebody_s_name_before_the_host_is_refused(visitor, server):
    """Browsers hide it; a server can ask for it."""
    scheme, _, rest = server.links["plain"].partition("://")
    visitor.allowed += (f"{scheme}://anna:1@",)
    page = visitor.open(f"{scheme}://anna:1@{rest}")
    expect(page.get_by_role("alert")).to_contain_text("This link has more in it")


def test_a_page_at_an_address_of_one_s_own_says_where_it_is(visitor, server):
    mark = surveys()["plain"].fingerprint
    everywhere(visitor, server, f"{server.base}/anna")
    link = f"{server.base}/anna#server={server.base}&collection=plain&fingerprint={mark}"
    host = server.base.partition("//")[2]
    expect(asked(visitor, link).locator("#where")).to_contain_text(f"a copy at {host}/anna")


@pytest.mark.parametrize("mark", ["&", "x", "x&y"])
def test_what_is_no_fingerprint_does_not_count_as_none(visitor, server, mark):
    page = visitor.open(f"{server.base}/c/plain#{mark}")
    expect(page.get_by_role("alert")).to_contain_text("the part after # is no whole fingerprint")


def test_the_fingerprint_is_shown_as_people_compare_it(visitor, server):
    page = asked(visitor, server.links["plain"])
    fingerprint = surveys()["plain"].fingerprint
    groups = " ".join(re.findall("....", fingerprint)[:8])
    expect(page.locator("#pinned")).to_contain_text(groups)
    answered(page, "cold")
    expect(page.locator("#survey")).to_have_text(fingerprint)


def test_what_is_kept_is_said(visitor, server, browser, tmp_path):
    page = asked(visitor, server.links["plain"])
    prepared(page, "cold")
    expect(page.locator("#check")).to_contain_text("nobody can find it among the others")
    keeping = Server(tmp_path, [survey("keeping")], "--keep-reports")
    other = Visitor(browser, keeping.base)
    try:
        page = asked(other, keeping.links["keeping"])
        expect(page.locator("#told")).to_contain_text("every report, beside its number")
        prepared(page, "cold")
        expect(page.locator("#check")).not_to_contain_text("nobody can find it")
        expect(page.locator("#check")).to_contain_text("keeps every report beside its number")
        page.locator("#send").click()
        page.locator("#receipt").wait_for()
        expect(page.locator("#receipt")).to_contain_text("whoever has the number can find yours")
        other.leave()
    finally:
        other.context.close()
        keeping.stop()


def test_of_a_sampled_list_one_answer_is_drawn(visitor, server):
    """The paper's mechanism reports one item, however many places the padding has."""
    policy = d.Policy.from_levels([("a", 1, ["x", "y", "z", "u"])], kind="set")
    one = d.Survey("one", [d.design(policy, "subset", encoding="bits", padding=3)])
    body = {"state": "open", "keeps": "counts", "survey": one.to_document()}
    visitor.context.route("**/v1/collections/one", lambda route: route.fulfill(json=body))
    page = asked(visitor, f"{server.base}/c/one#{one.fingerprint}")
    for label in ("x", "y", "z", "u"):
        page.get_by_label(label, exact=True).check()
    page.locator("#exact summary").click()
    expect(page.locator("#sentences")).to_contain_text(
        "At most one of the answers that you tick is drawn at random"
    )
    expect(page.locator("#sentences")).not_to_contain_text("3 of them")


def test_the_example_is_an_average(visitor, server):
    page = asked(visitor, server.links["plain"])
    page.get_by_label("HIV", exact=True).check()
    expect(page.locator("#frequencies")).to_contain_text("On average, at least")


def test_a_budget_that_cannot_be_used_up_is_said_on_the_card(visitor, server):
    page = visitor.open(server.results["capped"])
    page.get_by_label("Organiser’s token").fill(chromium.TOKEN)
    page.get_by_role("button", name="Show results").click()
    page.locator("#numbers").wait_for()
    page.locator("#exactly > summary").click()
    cards = page.locator("#levels > div").all_inner_texts()
    assert "budget 1\n" in cards[0] + "\n" and "acts" not in cards[0]
    assert "budget 2.5, acts as 2" in cards[1]


# ---- several people, several tabs ----------------------------------------------------------------

HOLD = """() => new Promise((started) => {
  navigator.locks.request("discreet-ledger/4", () => new Promise((release) => {
    window.release = release;
    started();
  }));
})"""


def test_nobody_sits_down_while_a_report_is_being_drawn(visitor, server):
    """Another tab holds the ledger, so that drawing takes long."""
    page = asked(visitor, server.links["plain"])
    answered(page, "cold")
    page = asked(visitor, server.links["other"])
    page.locator("#agree").check()
    other = visitor.another(server.links["plain"])
    other.locator("#form").wait_for()
    other.evaluate(HOLD)
    page.get_by_label("cold", exact=True).check()
    confirmed(page)
    expect(page.locator("#another")).to_be_disabled()
    expect(page.locator("#change")).to_be_disabled()
    other.evaluate("window.release()")
    page.locator("#check").wait_for()
    page.locator("#send").click()
    page.locator("#receipt").wait_for()
    page.go_back()
    expect(page.get_by_role("button", name="Somebody else answers")).to_be_enabled()


def test_a_damaged_ledger_keeps_nobody_else_s_report(visitor, server):
    page = asked(visitor, server.links["plain"])
    answered(page, "cold")
    page.evaluate(
        """() => {
          const key = "discreet-ledger/4";
          const ledger = JSON.parse(localStorage.getItem(key));
          Object.assign(ledger.entries[0], { state: "leaving", id: "ab".repeat(16) });
          localStorage.setItem(`${key}/2`, "damaged");
          localStorage.setItem(`${key}/3`, JSON.stringify(ledger));
        }"""
    )
    before = server.n("plain")
    page.reload()
    page.locator("#form").wait_for()
    end = time.monotonic() + 20
    while states(page, "discreet-ledger/4/3") != ["counted"]:
        assert time.monotonic() < end
        page.wait_for_timeout(50)
    assert server.n("plain") == before + 1
    assert ["damaged" in text for text in visitor.console] == [True]
    visitor.console.clear()


def test_a_tab_that_wakes_up_late_says_that_another_has_sent(visitor, server):
    """The network is back, and the report counted, before this tab hears of it."""
    page = asked(visitor, server.links["plain"])
    prepared(page, "cold")
    visitor.context.add_init_script(
        "window.addEventListener('online', (e) => window.late && e.stopImmediatePropagation())"
    )
    other = visitor.another(server.links["plain"])
    other.locator("#form").wait_for()
    other.evaluate("window.late = true")
    send_offline(visitor, page)
    other.locator("#language").select_option("de")
    visitor.context.set_offline(False)
    page.locator("#receipt").wait_for()
    expect(other.locator("#receipt")).to_be_hidden()
    other.evaluate("window.late = false; window.dispatchEvent(new Event('online'))")
    other.locator("#receipt").wait_for()


def test_the_network_s_return_is_noticed_in_every_tab(visitor, server):
    """One tab sends while offline; in another only the language is changed."""
    page = asked(visitor, server.links["plain"])
    prepared(page, "cold")
    other = visitor.another(server.links["plain"])
    other.locator("#form").wait_for()
    before = server.n("plain")
    send_offline(visitor, page)
    other.locator("#language").select_option("de")
    other.locator("#language").select_option("en")
    visitor.context.set_offline(False)
    page.locator("#receipt").wait_for()
    other.locator("#receipt").wait_for()
    expect(other.get_by_role("alert")).to_be_hidden()
    assert server.n("plain") == before + 1


@pytest.mark.parametrize("sure", [False, True])
def test_a_tab_with_a_choice_forgets_it_when_another_tab_s_report_was_sent(visitor, server, sure):
    """The answer was ticked in this tab and the report drawn in another; once that is acknowledged,
    nothing of the answer is on either page.
    """
    page = asked(visitor, server.links["plain"])
    other = visitor.another(server.links["plain"])
    other.locator("#form").wait_for()
    other.get_by_label("HIV", exact=True).check()
    if sure:
        other.locator("#prepare").click()
        expect(other.locator("#sure-title")).to_contain_text("HIV")
    page.bring_to_front()
    prepared(page, "HIV")
    send_offline(visitor, page)
    visitor.context.set_offline(False)
    page.locator("#receipt").wait_for()
    other.locator("#receipt").wait_for()
    assert other.locator("input[name=answer]:checked").count() == 0
    assert other.locator("#sure-title").inner_text() == ""
    other.go_back()
    expect(other.locator("#known")).to_contain_text("This browser has answered this question")
    assert other.locator("input[name=answer]:checked").count() == 0
