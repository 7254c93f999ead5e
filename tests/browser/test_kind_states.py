"""When nothing can be answered: a kind sentence and what to do, in every language of the page.

Each state is a real one: a Chromium that blocks storage, runs no scripts, or does not understand
this one; a survey that is closed; a link that is damaged; a server that is away.
"""

import base64
import contextlib
import hashlib
import json
import re
import socket
from datetime import UTC, datetime, timedelta
from functools import cache

import chromium
import pytest
from chromium import (
    Server,
    answered,
    asked,
    check_axe,
    command,
    confirmed,
    hosted,
    prepared,
)

import discreet as d
from discreet.collector import pages

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("participant")
browser, visitor = chromium.browser, chromium.visitor  # fixtures
PHONE = {"width": 390, "height": 844}
LANGUAGES = [texts["language"] for texts in pages.translations()]
TEXTS = {texts["language"]: texts for texts in pages.translations()}
ENGLISH = TEXTS["en"]


def survey(name, **about):
    levels = [("serious", 1, ["HIV", "hepatitis"]), ("common", 2, ["cold", "flu"])]
    policy = d.Policy.from_levels(levels, question=f"Which of these? ({name})")
    about = {"organiser": "City of Ghent", "contact": "survey@example.org"} | about
    return d.Survey(name, [d.design(policy)], about=about)


@cache
def surveys():
    now = datetime.now(UTC).replace(microsecond=0)
    hours = timedelta(hours=30)
    found = (survey("now"), survey("early", opens=now + hours), survey("over", closes=now - hours),
             survey("stopped"))  # fmt: skip
    return {one.name: one for one in found}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"), surveys().values(), "--open-results")
    running.close_collection("stopped")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Where somebody else hosts the page."""
    folder = tmp_path_factory.mktemp("copy")
    command(folder, "page", "-o", "answer.html")
    with hosted(folder) as origin:
        yield f"{origin}/answer.html"


def pattern(sentence):
    """A text of the page, whatever stands in its places."""
    return re.compile("^" + re.sub(r"\\{\w+\\}", ".+", re.escape(sentence)))


def check_said(page, key, *, errors=True):
    """One kind sentence in the alert, in every language; the cause, if any, is behind a click."""
    for language in [*LANGUAGES[1:], "en"]:
        page.locator("#language").select_option(language)
        texts = TEXTS[language]["errors"] if errors else TEXTS[language]
        expect(page.locator("#trouble")).to_have_text(pattern(texts[key]))
        expect(page.locator("#cause")).to_be_hidden()
        assert page.evaluate("document.documentElement.lang") == language
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("#form")).to_be_hidden()
    expect(page.locator("#status")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    said = page.locator("main").inner_text()
    assert ENGLISH["lead"] not in said and "undefined" not in said
    shown = page.locator("#facts details:visible > summary").all_inner_texts()
    assert all(text.strip() for text in shown)
    check_axe(page)


def phone(page, link):
    page.set_viewport_size(PHONE)
    page.goto(link)
    page.locator("#problem").wait_for()
    return page


# ---- the browser ---------------------------------------------------------------------------------


@contextlib.contextmanager
def blocking(browser, folder, way):
    """A page of a browser that stores nothing: its user chose so, or it was started so."""
    prefs = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    (folder / "Default").mkdir()
    if way == "setting":
        (folder / "Default" / "Preferences").write_text(json.dumps(prefs), encoding="utf-8")
    else:
        arguments.append("--disable-local-storage")
    context = browser.browser_type.launch_persistent_context(
        str(folder), executable_path=chromium.executable(), args=arguments
    )
    yield context.pages[0]
    context.close()


@pytest.mark.parametrize("way", ["setting", "flag"])
def test_storage_is_blocked(browser, server, tmp_path, way):
    with blocking(browser, tmp_path, way) as page:
        methods = set()
        page.on("request", lambda request: methods.add(request.method))
        phone(page, server.links["now"])
        check_said(page, "ledger")
        expect(page.locator("#try")).to_be_visible()
        page.locator("#help > summary").click()
        expect(page.locator("#cause")).to_contain_text("The ledger cannot be read")
        assert methods == {"GET"}
        page.goto(server.links["stopped"])  # closed is closed, whatever is stored
        expect(page.locator("#trouble")).to_have_text(ENGLISH["closed"])


def test_what_is_stored_is_damaged(visitor, server):
    page = asked(visitor, server.links["now"])
    page.evaluate("localStorage.setItem('discreet-ledger/4', '{')")
    page.reload()
    check_said(page, "damaged")


def test_a_private_window_forgets_and_the_page_says_so(browser, server):
    """Chromium's contexts of Playwright are private windows; no page can tell."""
    for _ in range(2):
        context = browser.new_context(viewport=PHONE)
        page = context.new_page()
        page.goto(server.links["now"])
        page.locator("#form").wait_for()
        expect(page.locator("#before")).to_be_hidden()
        answered(page, "cold")
        for language in LANGUAGES:
            page.locator("#language").select_option(language)
            expect(page.locator("#receipt")).to_contain_text(TEXTS[language]["once"])
        context.close()


@contextlib.contextmanager
def changed(browser, server, old, new):
    """The page with another script, as its security policy allows it."""

    def answer(route):
        body = pages.answer_file().decode()
        _, script = pages._style_and_script()
        assert script.count(old) == 1
        other = script.replace(old, new)
        hashes = [base64.b64encode(hashlib.sha256(x.encode()).digest()).decode()
                  for x in (script, other)]  # fmt: skip
        route.fulfill(body=body.replace(script, other).replace(*hashes), content_type="text/html")

    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.route("**/c/now", answer)
    yield page
    context.close()


def check_every_language(page, place, key):
    """There is no script that could choose a language: every one is there, and nothing else."""
    for language in LANGUAGES:
        said = page.locator(f"{place} p[lang={language}]")
        expect(said).to_have_text(TEXTS[language][key])
        expect(said).to_have_attribute("dir", TEXTS[language]["direction"])
    for hidden in ("#form", "#status", "#lead", "#facts", "#languages", "#problem"):
        expect(page.locator(hidden)).to_be_hidden()


@pytest.mark.parametrize(
    ("old", "new"),
    [("class Page {", "class Page { not yet known"),
     ("class Page {", "class Page { static { neverHeardOf(); }")],
    ids=["syntax", "feature"],
)  # fmt: skip
def test_the_browser_is_too_old_for_the_script(browser, server, old, new):
    with changed(browser, server, old, new) as page:
        page.goto(server.links["now"])
        check_every_language(page, "#old", "old")
        check_axe(page)
    with changed(browser, server, old, f"{old} ") as page:  # the twin: another script that runs
        page.goto(server.links["now"])
        page.locator("#form").wait_for()
        expect(page.locator("#old")).to_be_hidden()


def test_the_browser_lacks_what_the_script_needs(browser, server):
    context = browser.new_context()
    context.add_init_script("delete AbortSignal.timeout")
    page = phone(context.new_page(), server.links["now"])
    check_said(page, "old", errors=False)
    context.close()


def test_scripts_are_switched_off(visitor, server):
    page = visitor.page
    page.set_viewport_size(PHONE)
    session = visitor.context.new_cdp_session(page)
    session.send("Emulation.setScriptExecutionDisabled", {"value": True})
    page.goto(server.links["now"])
    check_every_language(page, "noscript", "noScript")
    session.send("Emulation.setScriptExecutionDisabled", {"value": False})
    session.detach()
    page.reload()
    page.locator("#form").wait_for()


def test_the_browser_refuses_the_clipboard(visitor, server):
    page = asked(visitor, server.links["now"])
    session = visitor.context.new_cdp_session(page)
    own = session.send("Target.getTargetInfo")["targetInfo"]["browserContextId"]
    where = {"permission": {"name": "clipboard-write"}, "origin": server.base,
             "browserContextId": own}  # fmt: skip
    session.send("Browser.setPermission", {**where, "setting": "denied"})
    answered(page, "cold")
    page.locator("#copy").click()
    expect(page.locator("#copied")).to_have_text(ENGLISH["copyRefused"])
    marked = page.evaluate("getSelection().toString()")
    assert surveys()["now"].fingerprint in marked
    assert page.locator("#sent").inner_text() in marked
    session.send("Browser.setPermission", {**where, "setting": "granted"})
    page.locator("#copy").click()
    expect(page.locator("#copied")).to_have_text(ENGLISH["copied"])


# ---- the survey ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key"), [("stopped", "closed"), ("over", "closedOn"), ("early", "upcoming")]
)
def test_it_is_closed_or_not_open_yet(visitor, server, name, key):
    page = phone(visitor.page, server.links[name])
    check_said(page, key, errors=False)
    expect(page.locator("#question")).to_have_text(f"Which of these? ({name})")
    expect(page.locator("#problem")).to_have_class(re.compile("good"))  # nothing is wrong
    expect(page.locator("#about-title")).to_have_text("Who asks? City of Ghent")
    link = page.locator("#see-link")
    expect(link).to_be_visible(visible=name != "early")
    assert name == "early" or link.get_attribute("href") == server.results[name]


def test_whoever_has_answered_reads_that_it_was_counted(visitor, server, tmp_path):
    running = Server(tmp_path, [survey("brief")])
    visitor.arrive(running.base)
    answered(asked(visitor, running.links["brief"]), "flu")
    running.close_collection("brief")
    page = phone(visitor.page, f"{running.base}/c/brief")
    expect(page.locator("#trouble")).to_have_text(f"{ENGLISH['closed']} {ENGLISH['took']}")
    expect(page.locator("#see-link")).to_be_hidden()  # only the organiser sees the results
    visitor.page.goto("about:blank")
    running.stop()


def check_wrong(page, key, *more):
    """A problem in the midst of answering is said again in every language."""
    for language in [*LANGUAGES[1:], "en"]:
        page.locator("#language").select_option(language)
        said = [TEXTS[language]["errors"][key], *(TEXTS[language][one] for one in more)]
        expect(page.locator("#trouble")).to_have_text(" ".join(said))
    check_axe(page)


def test_it_closes_while_somebody_answers(visitor, tmp_path):
    running = Server(tmp_path, [survey("brief")])
    visitor.arrive(running.base)
    page = asked(visitor, running.links["brief"])
    prepared(page, "flu")
    running.close_collection("brief")
    page.locator("#send").click()
    check_wrong(page, "late")
    expect(page.locator("#check")).to_be_visible()
    page.goto("about:blank")
    running.stop()


def test_the_storage_is_full(visitor, server):
    page = asked(visitor, server.links["now"])
    page.evaluate(
        """() => {
          for (let text = "x".repeat(8 << 20), k = 0; text; k++) {
            try {
              localStorage.setItem(`filler ${k}`, text);
            } catch { text = text.slice(0, text.length / 2); }
          }
        }"""
    )
    page.get_by_label("flu", exact=True).check()
    confirmed(page)
    check_wrong(page, "ledger")
    expect(page.locator("#check")).to_be_hidden()  # what cannot be remembered is not shown


# ---- the link ------------------------------------------------------------------------------------


def test_there_is_no_such_survey(visitor, server):
    page = phone(visitor.page, f"{server.base}/c/nobody#{surveys()['now'].fingerprint}")
    check_said(page, "missing")


@pytest.mark.parametrize("damage", [lambda link: link[:-7], lambda link: f"{link}."])
def test_the_link_is_damaged(visitor, server, damage):
    page = phone(visitor.page, damage(server.links["now"]))
    check_said(page, "noFingerprint", errors=False)


def test_the_invitation_is_missing(visitor, server):
    check_said(phone(visitor.page, f"{server.base}/answer.html"), "uninvited", errors=False)


def test_the_link_may_tell_who_somebody_is(visitor, server):
    page = phone(visitor.page, server.links["now"].replace("#", "?utm_source=mail#"))
    check_said(page, "personal", errors=False)


def test_the_fingerprint_is_of_another_survey(visitor, server):
    page = phone(visitor.page, f"{server.base}/c/now#{surveys()['over'].fingerprint}")
    check_said(page, "pinned")
    page.locator("#help > summary").click()
    expect(page.locator("#cause")).to_contain_text("The invitation is for fingerprint")


# ---- the server ----------------------------------------------------------------------------------


def test_the_server_is_away_and_comes_back(browser, server, copy):
    """After a minute of waiting, with a button that tries again."""
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.clock.install()
    with contextlib.closing(socket.socket()) as bound:  # nobody listens
        bound.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{bound.getsockname()[1]}"
        fingerprint = surveys()["now"].fingerprint
        page.goto(f"{copy}#server={away}&collection=now&fingerprint={fingerprint}")
        expect(page.locator("#status")).to_contain_text("The server does not answer just now")
        for _ in range(90):
            page.clock.run_for(2000)
            if page.locator("#problem").is_visible():
                break
        check_said(page, "network")
        asked_of = []
        page.on("request", lambda request: asked_of.append(request.url))
        page.get_by_role("button", name=ENGLISH["retry"]).click()
        expect(page.locator("#status")).to_be_visible()
        expect(page.locator("#problem")).to_be_hidden()
        assert asked_of[0].startswith(away)
    context.close()
