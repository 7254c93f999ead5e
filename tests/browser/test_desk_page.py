"""The organiser's desk in a real Chromium: a survey is written, forecast, previewed, tried,
published, answered, closed, reopened, exported and deleted, without a terminal.
"""

import json
import re
import tomllib
import zipfile

import chromium
import pytest
from checks import must_fail
from collecting import TOKEN, serving

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

from discreet.data.templates import TEMPLATES, template

pytestmark = pytest.mark.xdist_group("desk")
browser = chromium.browser
expect.set_options(timeout=20_000)
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}
EXPECTED = (  # what is forbidden, and we try
    "Connecting to 'http://127.0.0.1:",
    "Access to fetch at",
    "Framing 'http://127.0.0.1:",
)
CHECKED = re.compile("an answer shows from|too few")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("desk")) as running:
        yield running


@pytest.fixture
def visit(browser, server):
    """A page of the desk, logged in; no page breaks a rule or falls."""
    contexts, strange = [], []

    def open_desk(path="", login=True, **settings):
        context = browser.new_context(
            **{"viewport": DESKTOP, "reduced_motion": "reduce", **settings}
        )
        context.set_default_timeout(20_000)
        contexts.append(context)
        context.on("weberror", lambda error: strange.append(str(error.error)))
        context.on("console", lambda message: strange.append(message.text))
        page = context.new_page()
        page.goto(f"{server.url}/desk{path}")
        if login:
            log_in(page)
        return page

    yield open_desk
    for context in contexts:
        context.close()
    assert [x for x in strange if not x.startswith(("Failed to load resource", *EXPECTED))] == []


def log_in(page, token=TOKEN):
    page.get_by_label("Organiser’s token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.locator("#login").wait_for(state="hidden")


def checked(page):
    """The draft is valid, and the forecast is that of what stands in the form."""
    expect(page.locator("#checked")).to_have_text(CHECKED)


def begin(page, example="Workplace"):
    page.get_by_role("link", name="New survey").first.click()
    page.locator("#new").get_by_role("button", name=re.compile(f"^{example}")).click()
    page.locator("#edit").wait_for()


def toml_of(page):
    checked(page)
    return tomllib.loads(page.locator("#toml").input_value())


def use_file(page, text):
    page.locator("#file-tab").click()
    page.locator("#toml").fill(text)
    page.locator("#use-file").click()


SMALL = """name = "{name}"
question = "Which one?"
[[level]]
name = "sensitive"
epsilon = "ln(4)"
items = ["depression", "epilepsy"]
[[level]]
name = "hardly sensitive"
epsilon = "ln(9)"
items = ["a cold", "none of these"]
"""


def publish(page, name):
    """A small survey, published; the page shows it."""
    begin(page, "Empty")
    use_file(page, SMALL.format(name=name))
    expect(page.locator("#survey-name")).to_have_value(name)
    checked(page)
    page.locator("#publish").click()
    page.locator("dialog").get_by_role("button", name="Publish").click()
    page.locator("#survey #n").wait_for()


# ---- the whole way -------------------------------------------------------------------------------


def test_a_survey_from_the_first_word_to_its_end(visit, browser, server, tmp_path):
    page = visit()
    expect(page.locator("#list")).to_contain_text("Surveys")
    begin(page, "Empty")
    expect(page.locator("#checked")).to_have_text(
        "To do: write the question, write at least two answers."
    )
    page.get_by_label("What do you ask?").fill("What kept you awake?")
    answers = page.get_by_label("Answer", exact=True)
    answers.nth(0).fill("debts")
    answers.nth(1).fill("nothing")
    page.get_by_role("button", name="Add an answer").click()
    answers.nth(2).fill("the neighbours")
    answers.nth(2).press("Enter")
    answers.nth(3).fill("pain")
    page.get_by_label("How sensitive is “pain”?").select_option("very sensitive")
    page.get_by_label("Name in the link").fill("sleep")
    page.get_by_label("Who asks?").fill("Sleep clinic")
    told = toml_of(page)
    assert [(x["name"], x["items"]) for x in told["level"]] == [
        ("very sensitive", ["pain"]),
        ("sensitive", ["debts"]),
        ("hardly sensitive", ["nothing", "the neighbours"]),
    ]
    assert shown(told) == ["debts", "nothing", "the neighbours", "pain"]
    assert told["about"] == {"organiser": "Sleep clinic"}

    # what so many people will be able to tell
    page.get_by_role("button", name="100,000").click()
    expect(page.locator("#forecast")).to_contain_text("With 100,000 people")
    many = page.locator("#checked").inner_text()
    page.get_by_label("If so many people take part").fill("60")
    expect(page.locator("#forecast")).to_contain_text("With 60 people")
    assert page.locator("#checked").inner_text() != many

    # tried with simulated people
    page.locator("#try").click()
    page.get_by_label("How many people?").fill("300")
    page.locator("dialog").get_by_role("button", name="Try it").click()
    expect(page.locator("#survey h1")).to_have_text("Rehearsal: What kept you awake?")
    expect(page.locator("#n")).to_have_text("300")
    page.get_by_role("link", name="See the results").click()
    expect(page.locator("#rows tr").first).to_be_visible()
    expect(page.locator("body")).to_contain_text("simulated people have answered")
    expect(page.get_by_role("link", name="discreet desk")).to_have_attribute("href", "/desk")
    page.go_back()

    # published, with the draft as it was
    page.get_by_role("link", name="Back to your survey").click()
    assert toml_of(page) == told
    page.locator("#publish").click()
    page.locator("dialog").get_by_role("button", name="Publish").click()
    expect(page.locator("#survey h1")).to_have_text("What kept you awake?")
    expect(page.locator("#n")).to_have_text("fewer than 50")
    link = page.get_by_label("Invitation").input_value()
    assert link.startswith(f"{server.url}/c/sleep#")
    expect(page.locator("#survey img")).to_have_js_property("complete", True)
    assert page.locator("#survey img").evaluate("image => image.naturalWidth") > 100
    assert link.replace("&", "&amp;") in page.locator("#snippet").input_value()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Poster to print").click()
    expect(opened.value.locator("body")).to_contain_text("What kept you awake?")
    expect(opened.value.locator("code")).to_have_text(link)
    opened.value.close()

    # answered on a telephone
    phone = browser.new_context(viewport=PHONE).new_page()
    phone.goto(link)
    chromium.prepared(phone, "pain")
    phone.locator("#send").click()
    phone.locator("#receipt").wait_for()
    phone.context.close()
    page.get_by_role("link", name="See the results").click()
    expect(page.locator("#n")).to_have_text("1")  # no token is asked for here
    page.go_back()

    # closed, reopened, exported, deleted
    page.locator("#close").click()
    page.locator("dialog").get_by_role("button", name="Close it").click()
    expect(page.locator("#state")).to_contain_text("closed")
    page.locator("#reopen").click()
    expect(page.locator("#state")).to_contain_text("open")
    with page.expect_download() as saved:
        page.locator("#export").click()
    with zipfile.ZipFile(saved.value.path()) as export:
        assert json.loads(export.read("tally.json"))["n"] == 1
    page.locator("#delete").click()
    expect(page.locator("#problem")).to_contain_text("Close the survey before you delete it")
    page.locator("#close").click()
    page.locator("dialog").get_by_role("button", name="Close it").click()
    page.locator("#delete").click()
    page.get_by_label("The survey’s name").fill("slee")
    page.get_by_role("button", name="Delete for good").click()
    expect(page.locator("dialog")).to_contain_text("Type the survey's name")
    page.get_by_label("The survey’s name").fill("sleep")
    page.get_by_role("button", name="Delete for good").click()
    expect(page.locator("#list")).to_be_visible()
    expect(page.locator("#surveys a[href='#survey/sleep-rehearsal']")).to_have_count(1)
    expect(page.locator("#surveys a[href='#survey/sleep']")).to_have_count(0)
    page.get_by_role("link", name="Log", exact=True).click()
    expect(page.locator("#lines")).to_contain_text("deleted")


# ---- nothing leaves the preview ------------------------------------------------------------------


def test_the_preview_is_the_real_page_and_sends_nothing(visit, server):
    page = visit()
    begin(page, "Health")
    checked(page)
    requests = []
    page.context.on("request", lambda request: requests.append(request))
    page.locator("#preview-tab").click()
    preview = page.frame_locator("#preview")
    preview.get_by_label("hay fever", exact=True).check()
    preview.locator("#prepare").click()
    preview.locator("#go").click()
    preview.locator("#send").click()
    expect(preview.locator("#receipt")).to_be_visible()
    assert [r.method for r in requests] == ["GET"]  # the page itself
    assert requests[0].url.startswith(f"{server.url}/desk/preview/c/health")
    assert page.evaluate("localStorage.length") == 0
    assert page.evaluate("JSON.stringify(sessionStorage)").find("leaving") < 0
    frame = next(frame for frame in page.frames if "/preview/" in frame.url)
    blocked = """() => new Promise((resolve) => {
      document.addEventListener("securitypolicyviolation", (event) => {
        resolve(event.violatedDirective);
      });
      navigator.sendBeacon("/healthz", "x");
    })"""
    assert frame.evaluate(blocked) == "connect-src"
    listed = page.request.get(f"{server.url}/v1/collections").json()["collections"]
    assert "health" not in [one["name"] for one in listed]


# ---- the form and the file say the same ----------------------------------------------------------

RICH = """
name = "rich"
answers = 2
[about]
organiser = "City of Ghent"
purpose = '''
Two
lines'''
notice = "https://example.org/privacy"
language = "en"
closes = 2099-12-01T19:00:00Z
minimum = 200
[[question]]
name = "age"
text = "How old are you?"
[[question.level]]
name = "age"
epsilon = 2
items = ["under 30", "30 to 49", "50 and older"]
[[question]]
name = "strain"
text = "What strained you most?"
last = ["nothing", "harassment"]
notion = "min"
strict = false
[[question.level]]
name = "serious"
epsilon = 1.25
weight = 2
items = ["burnout", "harassment"]
[[question.level]]
name = "hardly sensitive"
epsilon = "ln(8)"
items = ["noise", "nothing"]
[question.totals]
"any" = ["burnout", "harassment"]
[[question]]
name = "lonely"
text = "Lonely?"
scale = 0.5
cap = 1.5
items = ["1", "2", "3", "4", "5"]
[[cross]]
of = ["age", "strain"]
[[public]]
name = "region"
text = "Where?"
items = ["north", "south"]
[translations.de]
about = { purpose = "Zwei Zeilen" }
[translations.de.questions.age]
text = "Wie alt?"
items = { "under 30" = "unter 30" }
[translations.de.public.region]
items = { north = "Nord" }
"""
ONE_WAY = """
name = "one"
question = "Which?"
notion = "one-way"
[[level]]
name = "serious"
epsilon = 1
items = ["HIV"]
[[level]]
name = "nothing"
open = true
items = ["nothing"]
[[pair]]
levels = ["serious", "nothing"]
epsilon = 1
one_way = true
[translations.fr.questions.question]
text = "Lequel ?"
"""


@pytest.mark.parametrize(
    "text", [*map(template, TEMPLATES), RICH, ONE_WAY], ids=[*TEMPLATES, "rich", "one-way"]
)
def test_a_file_comes_back_from_the_form_as_it_was(visit, text):
    page = visit("#new")
    begin(page, "Empty")
    use_file(page, text)
    expected = tomllib.loads(text)
    expected = {key: value for key, value in expected.items() if (key, value) != ("answers", 1)}
    if "about" in expected:
        expected["about"] = {
            key: value.strftime("%Y-%m-%dT%H:%M:%S+00:00") if hasattr(value, "strftime") else value
            for key, value in expected["about"].items()
        }
    expect(page.locator("#survey-name")).to_have_value(expected["name"])
    page.locator("form").get_by_label("What do you ask?").first.press("End")
    assert toml_of(page) == expected


def test_a_question_of_many_answers_stays_whole(visit):
    items = ", ".join(f'"item {k}"' for k in range(600))
    page = visit("#new")
    begin(page, "Empty")
    use_file(page, SMALL.format(name="many").replace('"a cold"', items))
    expect(page.locator(".question")).to_contain_text("603 answers: too many for a form")
    page.get_by_label("Who asks?").fill("The library")
    told = toml_of(page)
    assert len(told["level"][1]["items"]) == 601 and told["about"]["organiser"] == "The library"


def test_a_reload_keeps_the_draft_and_a_new_tab_does_not(visit):
    page = visit()
    begin(page, "Student life")
    page.get_by_label("Who asks?").fill("The union")
    before = toml_of(page)
    page.reload()
    assert toml_of(page) == before and before["about"]["organiser"] == "The union"
    other = page.context.new_page()
    other.goto(page.url.replace("#edit", "#new"))
    expect(other.locator("#new")).to_contain_text("Health")
    expect(other.locator("#new")).not_to_contain_text("Go on")


# ---- order ---------------------------------------------------------------------------------------


def answers_of(page, k=0):
    card = page.locator(".question").nth(k)
    return [x.input_value() for x in card.get_by_label("Answer", exact=True).all()]


def shown(table):
    """The order in which people see the answers of a file."""
    listed = [item for level in table["level"] for item in level["items"]]
    last = table.get("last", [])
    return [item for item in listed if item not in last] + last


def test_answers_are_ordered_by_dragging_by_keys_and_by_buttons(visit):
    page = visit()
    begin(page, "Empty")
    use_file(page, SMALL.format(name="order"))
    expect(page.locator("#survey-name")).to_have_value("order")
    assert answers_of(page) == ["depression", "epilepsy", "a cold", "none of these"]
    handle = page.get_by_role("button", name="Move “none of these”: drag, or use the arrow keys")
    first = page.get_by_label("Answer", exact=True).first.bounding_box()
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 8, first["y"] + 60, steps=8)
    page.mouse.move(box["x"] + 8, first["y"] - 5, steps=8)
    page.mouse.up()
    order = ["none of these", "depression", "epilepsy", "a cold"]
    assert answers_of(page) == order and shown(toml_of(page)) == order
    page.keyboard.press("ArrowDown")  # the handle has the focus
    page.keyboard.press("ArrowDown")
    order = ["depression", "epilepsy", "none of these", "a cold"]
    assert answers_of(page) == order and shown(toml_of(page)) == order
    page.get_by_role("button", name="Move “a cold” up").click()
    assert answers_of(page) == ["depression", "epilepsy", "a cold", "none of these"]
    assert "last" not in toml_of(page)
    page.locator("#preview-tab").click()
    preview = page.frame_locator("#preview")
    expect(preview.locator("#choices label").first).to_have_text("depression")


# ---- mistakes ------------------------------------------------------------------------------------

MISTAKES = [
    ("Address of the privacy notice", "example.org", "must be the address of a page"),
    ("Name in the link", "a/b", "no slash"),
    ("Language of the questions", "English!", "must be a language tag"),
    ("What do you ask?", "x‮y", "must be a text of one line"),
]


def said(page):
    """What stands beside fields, and how many fields are marked as wrong."""
    sentences = page.locator(".missing-here, .wrong-here").all_inner_texts()
    return [sentences, page.locator("[aria-invalid]").count()]


NOTHING = [[], 0]


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_what_is_missing_is_said_once_the_field_has_been_left(visit, size):
    page = visit(viewport=size)
    begin(page, "Empty")
    foot = page.locator("#checked")
    expect(foot).to_have_text("To do: write the question, write at least two answers.")
    assert said(page) == NOTHING
    words, answers = page.get_by_label("What do you ask?"), page.get_by_label("Answer", exact=True)
    words.click()
    words.type("Wh")
    expect(foot).to_have_text("To do: write at least two answers.")
    words.fill("")
    expect(foot).to_have_text("To do: write the question, write at least two answers.")
    assert said(page) == NOTHING  # still there
    answers.nth(0).click()
    expect(page.locator(".missing-here")).to_have_text("Write what you ask.")
    expect(words).to_have_attribute("aria-invalid", "true")
    answers.nth(0).fill("debts")
    answers.nth(1).click()  # between the answers nobody has left them
    expect(foot).to_have_text("To do: write the question, write at least two answers.")
    assert said(page) == [["Write what you ask."], 1]
    words.fill("What kept you awake?")
    expect(page.locator(".missing-here")).to_have_text("Write at least two answers.")
    answers.nth(1).fill("nothing")
    checked(page)
    assert said(page) == NOTHING


def test_what_is_missing_is_said_to_who_tries_to_publish(visit):
    page = visit()
    begin(page, "Empty")
    for name in ("#publish", "#try"):
        page.get_by_role("button", name="Add a public question").click()
        expect(page.locator("#checked")).to_contain_text("To do: write the question, ")
        before = said(page)[0]
        page.locator(name).click()
        expect(page.locator("dialog")).to_have_count(0)
        expect(page.get_by_label("What do you ask?").first).to_be_focused()
        assert len(said(page)[0]) > len(before)  # the new public question is complained of, too
    assert said(page) == [["Write what you ask.", "Write at least two answers."] * 3, 6]
    chromium.check_axe(page)


def test_a_press_that_leaves_an_empty_field_meets_its_button(visit):
    """What is said there moves the form, so it waits for the end of the press."""
    page = visit()
    begin(page, "Empty")
    for k, answer in enumerate(page.get_by_label("Answer", exact=True).all()):
        answer.fill(f"answer {k}")
    page.get_by_label("What do you ask?").click()
    button = page.get_by_role("button", name="Add a question")
    button.evaluate("button => button.scrollIntoView({ block: 'center' })")
    box = button.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 3)
    page.mouse.down()
    page.wait_for_timeout(300)
    assert said(page) == NOTHING
    page.mouse.up()
    expect(page.locator(".question h3")).to_contain_text(["Question 1", "Question 2"])
    expect(page.locator(".missing-here")).to_have_text(["Write what you ask."])


@pytest.mark.parametrize(("label", "text", "sentence"), MISTAKES)
def test_what_is_wrong_is_said_beside_its_field(visit, label, text, sentence):
    page = visit()
    begin(page, "Health")
    field = page.get_by_label(label).first
    field.fill(text)
    expect(page.locator("#wrong-here")).to_contain_text(sentence)
    assert field.get_attribute("aria-describedby") == "wrong-here"
    expect(page.locator("#publish")).to_be_disabled()
    good = {
        "Language of the questions": "en", "Name in the link": "good", "What do you ask?": "What?",
    }  # fmt: skip
    field.fill(good.get(label, ""))
    checked(page)
    expect(page.locator("#wrong-here")).to_have_count(0)


def test_a_text_that_is_no_file_is_refused_beside_it(visit):
    page = visit()
    begin(page, "Health")
    before = toml_of(page)
    use_file(page, "name = ")
    expect(page.locator("#file-panel")).to_contain_text("This is not TOML")
    use_file(page, SMALL.format(name="other"))
    expect(page.locator("#survey-name")).to_have_value("other")
    assert toml_of(page) != before


# ---- logging in ----------------------------------------------------------------------------------


def test_the_token_is_kept_nowhere(visit):
    page = visit(login=False)
    log_in(page)
    everything = page.evaluate(
        """() => document.documentElement.outerHTML + JSON.stringify(localStorage)
           + JSON.stringify(sessionStorage) + document.cookie
           + [...document.querySelectorAll("input")].map((x) => x.value).join()"""
    )
    assert TOKEN not in everything and "discreet-desk=" not in everything
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["path"] == "/desk"
    assert cookie["expires"] == -1 and TOKEN not in cookie["value"]


def test_a_wrong_token_and_logging_out(visit):
    page = visit(login=False)
    page.get_by_label("Organiser’s token").fill("this is not the token")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("This is not the organiser's token.")
    log_in(page)
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#login")).to_be_visible()
    page.reload()
    expect(page.locator("#login")).to_be_visible()


def test_a_session_that_ends_does_not_lose_the_draft(visit):
    page = visit()
    begin(page, "Health")
    page.get_by_label("Who asks?").fill("The clinic")
    checked(page)
    page.context.clear_cookies()
    page.get_by_label("Who asks?").fill("The other clinic")
    expect(page.locator("#login")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("your draft is still here")
    log_in(page)
    expect(page.get_by_label("Who asks?")).to_have_value("The other clinic")
    checked(page)


# ---- other websites ------------------------------------------------------------------------------

FORM = """<!doctype html><title>evil</title>
<form id="f" method="post" enctype="text/plain" action="{url}">
<input name='{{"name": "' value='x"}}'></form>"""


def test_another_website_can_do_nothing_with_the_session(visit, server, tmp_path):
    """Of the same site, a port beside it: there the browser does send the cookie."""
    page = visit()
    publish(page, "held")
    close = f"{server.url}/desk/surveys/held/close"
    (tmp_path / "form.html").write_text(FORM.format(url=close), encoding="utf-8")
    (tmp_path / "index.html").write_text("<!doctype html><title>evil</title>", encoding="utf-8")
    with chromium.hosted(tmp_path) as elsewhere:
        evil = page.context.new_page()
        for method, headers in (("POST", {}), ("POST", {"Discreet-Desk": "1"}), ("GET", {})):
            evil.goto(f"{elsewhere}/index.html")
            said = evil.evaluate(
                """([url, method, headers]) => fetch(url, {
                  method, headers, credentials: "include",
                  mode: headers["Discreet-Desk"] ? "cors" : "no-cors",
                }).then((x) => x.type, (error) => error.name)""",
                [close if method == "POST" else f"{server.url}/desk/surveys", method, headers],
            )
            assert said in ("opaque", "TypeError")  # not a word can be read
        evil.goto(f"{elsewhere}/form.html")
        with evil.expect_response(close) as answered:
            evil.evaluate("document.getElementById('f').submit()")
        assert answered.value.status == 403
        assert "discreet-desk=" in answered.value.request.all_headers()["cookie"]  # it was sent
        evil.wait_for_url(close)  # the refusal is shown; then on
        frame = f"<iframe src='{server.url}/desk'></iframe>"
        evil.goto(f"{elsewhere}/index.html")
        evil.evaluate("html => { document.body.innerHTML = html; }", frame)
        evil.wait_for_timeout(500)
        assert all("/desk" not in one.url for one in evil.frames)  # it cannot be framed
        evil.close()
    page.reload()
    expect(page.locator("#state")).to_contain_text("open")


def test_what_people_write_is_text_everywhere(visit):
    html = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    text = SMALL.format(name="html <b>").replace("Which one?", html).replace("a cold", html + "2")
    page = visit()
    page.on("dialog", lambda dialog: pytest.fail("a script has run"))
    begin(page, "Empty")
    use_file(page, text)
    checked(page)
    page.locator("#preview-tab").click()
    expect(page.frame_locator("#preview").locator("h1")).to_have_text(html)
    page.locator("#publish").click()
    expect(page.locator("dialog h2")).to_have_text("Publish “html <b>”?")
    page.locator("dialog").get_by_role("button", name="Publish").click()
    expect(page.locator("#survey h1")).to_have_text(html)
    assert "&lt;script&gt;" in page.locator("#snippet").input_value()
    page.goto(page.url.partition("#")[0] + "#")
    expect(page.locator("#surveys")).to_contain_text(html)
    page.goto(page.url.replace("/desk#", "/desk/surveys/html%20%3Cb%3E/poster"))
    expect(page.locator("h1")).to_have_text(html)


# ---- for everybody -------------------------------------------------------------------------------


def test_by_keyboard_alone(visit):
    page = visit(login=False)
    expect(page.locator("#token")).to_be_focused()
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    page.locator("#list").wait_for()
    tab_to(page, "New survey")
    page.keyboard.press("Enter")
    page.locator("#new").wait_for()
    tab_to(page, "Student life")
    page.keyboard.press("Enter")
    checked(page)
    page.locator("#learn-tab").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#preview-tab")).to_be_focused()
    expect(page.frame_locator("#preview").locator("#form")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#toml")).to_be_visible()
    page.locator("#survey-name").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("by-keyboard")
    checked(page)
    tab_to(page, "Publish…")
    page.keyboard.press("Enter")
    tab_to(page, "Publish")
    page.keyboard.press("Enter")
    expect(page.locator("#survey h1")).to_have_text("by-keyboard")
    tab_to(page, "Close")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")  # leaves the dialog
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("#close")).to_be_focused()


def tab_to(page, name):
    """Press Tab until the element of this name has the focus."""
    said = "(document.activeElement.textContent || '').trim()"
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate(said).startswith(name):
            return
    raise AssertionError(f"Tab does not lead to {name}")


@pytest.mark.parametrize(("scheme", "size"), [("light", PHONE), ("dark", DESKTOP)])
def test_axe_finds_nothing_serious_on_any_screen(visit, scheme, size):
    page = visit(login=False, color_scheme=scheme, viewport=size)
    chromium.check_axe(page)
    log_in(page)
    page.locator("#list").wait_for()
    chromium.check_axe(page)
    begin(page, "Workplace")
    checked(page)
    page.evaluate("for (const x of document.querySelectorAll('details')) x.open = true")
    page.get_by_label("Address of the privacy notice").fill("wrong")
    page.locator("#wrong-here").wait_for()
    chromium.check_axe(page)
    for tab in ("preview", "file"):
        page.locator(f"#{tab}-tab").click()
        chromium.check_axe(page)
    publish(page, f"axe-{scheme}")
    page.evaluate("for (const x of document.querySelectorAll('details')) x.open = true")
    chromium.check_axe(page)
    page.locator("#close").click()
    chromium.check_axe(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Log", exact=True).click()
    page.locator("#log").wait_for()
    chromium.check_axe(page)
    page.evaluate("document.querySelector('#log h1').style.color = '#888'")
    page.evaluate("document.body.style.background = '#777'")
    must_fail(chromium.check_axe, page)


def test_no_screen_is_wider_than_the_window(visit):
    page = visit()
    begin(page, "Student life")
    checked(page)
    for tab in ("learn", "preview", "file"):
        page.locator(f"#{tab}-tab").click()
        check_width(page)
    publish(page, "wide")
    check_width(page)
    page.set_viewport_size({"width": 320, "height": 800})
    page.evaluate("document.querySelector('#survey h1').style.width = '400px'")
    assert page.evaluate("document.documentElement.scrollWidth") > 320  # the twin


def check_width(page):
    for width in (1280, 768, 390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
