"""Websites that show the participant's page in a frame: none, unless `serve --frame-ancestors`."""

import contextlib

import chromium
import pytest
from chromium import Server, answered, hosted
from click.testing import CliRunner

import discreet as d
from discreet.cli import main
from discreet.collector import pages

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("participant")
browser = chromium.browser  # a fixture
TEXTS = {texts["language"]: texts for texts in pages.translations()}


def survey():
    policy = d.Policy.from_levels([("all", 1, ["cold", "flu"])], question="Which of these?")
    return d.Survey("framed", [d.design(policy)])


@contextlib.contextmanager
def website(folder):
    """A website of somebody: its origin, and a way to put a frame with a link into its page."""
    with hosted(folder) as origin:

        def around(link):
            html = f'<!doctype html><title>t</title><iframe src="{link}" width=390 height=700>'
            (folder / "index.html").write_text(html, encoding="utf-8")
            return f"{origin}/index.html"

        yield origin, around


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with website(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory, site):
    """It names the website twice: as 127.0.0.1, which is its own host, and as localhost."""
    folder = tmp_path_factory.mktemp("framing")
    named = [site[0], renamed(site[0])]
    options = [word for origin in named for word in ("--frame-ancestors", origin)]
    running = Server(folder, [survey()], *options)
    yield running
    running.stop()


def renamed(url):
    return url.replace("127.0.0.1", "localhost")


def check_alone(context, frame, link):
    """The page says that it is in a frame, and leads to itself without one."""
    for language in ("de", "ar", "en"):
        frame.locator("#language").select_option(language)
        expect(frame.locator("#framed")).to_contain_text(TEXTS[language]["framed"])
    with context.expect_page() as found:
        frame.locator("#alone").click()
    found.value.locator("#form").wait_for()
    assert found.value.url == link
    expect(found.value.locator("#framed")).to_be_hidden()
    found.value.close()


def test_a_named_website_shows_the_page_and_the_page_says_so(browser, server, site):
    origin, around = site
    context = browser.new_context(locale="en")
    page = context.new_page()
    page.goto(around(server.links["framed"]))
    frame = page.frames[1]
    frame.locator("#form").wait_for()
    check_alone(context, frame, server.links["framed"])
    answered(frame, "flu")
    assert server.n("framed") == 1
    said = f"In a frame at {origin}, {renamed(origin)}: that website can cover the page"
    assert said in server.said("stdout")
    context.close()


def test_where_the_browser_stores_nothing_in_frames_it_can_be_opened_alone(browser, server, site):
    """A private window of Chromium: frames of other sites store nothing."""
    context = browser.new_context(locale="en")
    page = context.new_page()
    page.goto(renamed(site[1](server.links["framed"])))
    frame = page.frames[1]
    expect(frame.locator("#trouble")).to_have_text(TEXTS["en"]["errors"]["ledger"])
    check_alone(context, frame, server.links["framed"])
    context.close()


def test_every_other_website_sees_nothing(browser, server, site, tmp_path):
    """No other website may show the page; none may show the results, the list or the desk."""
    context = browser.new_context()
    page = context.new_page()
    with website(tmp_path) as (_, around_elsewhere):
        for link, around in (
            (server.links["framed"], around_elsewhere),
            (server.results["framed"], site[1]),
            (f"{server.base}/", site[1]),
            (f"{server.base}/desk", site[1]),
        ):
            page.goto(around(link))
            page.wait_for_load_state()
            assert page.frames[1].url.startswith("chrome-error:"), link
    context.close()


def policy_of(running, path):
    return running.http.get(f"{running.base}{path}").headers["content-security-policy"]


def test_only_the_participant_s_page_may_be_framed(server, site):
    for path in ("/c/framed", "/answer.html"):
        ancestors = f"{site[0]} {renamed(site[0])}"
        assert policy_of(server, path).endswith(f"; frame-ancestors {ancestors}")
    for path in ("/", "/desk", "/c/framed/results", "/v1/collections"):
        assert f"frame-ancestors {site[0]}" not in policy_of(server, path)
    assert pages.answer_policy().endswith("; frame-ancestors 'none'")


def test_what_is_no_website_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(main, ["serve", "--frame-ancestors", "*"])
    assert found.exit_code == 2
    assert 'error: --frame-ancestors "*" is not the address of one website' in found.stderr
    assert not list(tmp_path.iterdir())
