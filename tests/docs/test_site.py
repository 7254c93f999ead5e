"""The documentation site: built strictly, without any network, and readable on a phone."""

import importlib.util
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import discreet

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
import chromium

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = {page.stem for page in DOCS.glob("*.md") if not page.stem.endswith(".template")}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
ON_A_PHONE = ("index", "tutorial", "organiser", "truth", "api/index", "api/mechanism")
# one worker builds the site, once
pytestmark = [
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("sphinx", "furo", "myst_parser")),
        reason="sphinx, furo and myst-parser are not installed, so the site cannot be built",
    ),
]


def build(source, output):
    """A strict build: every warning is a failure."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    return subprocess.run([*command, str(source), str(output)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    output = tmp_path_factory.mktemp("site")
    done = build(DOCS, output)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return output


class Page(HTMLParser):
    """Where a page leads, what it loads, and the ids in it."""

    LOADS = (
        ("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"),
        ("source", "srcset"), ("img", "srcset"), ("object", "data"), ("video", "src"),
    )  # fmt: skip

    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.loads, self.ids = path, [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = {name: value or "" for name, value in attributes}
        self.ids.add(found.get("id"))
        self.links += [found["href"]] if tag == "a" and "href" in found else []
        self.loads += [found[name] for one, name in self.LOADS if one == tag and name in found]
        self.loads += re.findall(r"url\(([^)]*)\)", found.get("style", ""))

    def leads_to(self):
        """The pages of this site that it links to."""
        inside = (urlsplit(link) for link in self.links)
        paths = (unquote(link.path) for link in inside if not link.scheme and not link.netloc)
        return {(self.path.parent / path).resolve() for path in paths if path.endswith(".html")}


@pytest.fixture(scope="module")
def pages(site):
    return {path.resolve(): Page(path) for path in site.rglob("*.html")}


def external(address):
    """Whether loading it would leave the site; pictures inside the page do not."""
    link = urlsplit(address.strip("\"' "))
    return bool(link.netloc or link.scheme not in ("", "data"))


# ---- the build -----------------------------------------------------------------------------------


def test_every_guide_is_reached_from_the_index(site, pages):
    seen, new = set(), {(site / "index.html").resolve()}
    while new:
        seen |= new
        new = set().union(*(pages[path].leads_to() for path in new)) - seen
    wanted = {f"{name}.html" for name in GUIDES}
    wanted |= {f"api/{path.stem}.html" for path in (DOCS / "api").glob("*.md")}
    assert {(site / name).resolve() for name in wanted} <= seen
    assert {"tutorial", "organiser", "paper", "changelog", "contributing"} <= GUIDES


def test_nothing_is_loaded_from_elsewhere(site, pages):
    loaded = {address for page in pages.values() for address in page.loads}
    assert len(loaded) > 20 and [address for address in loaded if external(address)] == []
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        named = re.findall(r"@import\s+[\"']([^\"']+)|url\(([^)]*)\)", text)
        assert [x for pair in named for x in pair if external(x)] == [], sheet
    for wrong in ("https://fonts.example.org/a.css", "//cdn.example.org/a.js", "http://a/b.png"):
        assert external(wrong) and external(f'"{wrong}"')


def test_the_search_knows_the_words(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    for word in ("subset", "ledger", "polynomi", "fingerprint"):  # the index has their stems
        assert f'"{word}":' in index
    assert '"xylophon":' not in index
    assert "searchindex.js" in (site / "search.html").read_text(encoding="utf-8")


def test_the_reference_has_every_public_name(pages):
    ids = set().union(*(page.ids for page in pages.values() if page.path.parent.name == "api"))
    assert {f"discreet.{name}" for name in discreet.__all__} <= ids
    for method in ("Mechanism.perturb_many", "Estimate.interval", "Policy.from_levels"):
        assert f"discreet.{method}" in ids
    assert "discreet.Mechanism.check_written_as" not in ids


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# A\n\n[b](b.md)\n", None),
        ("# A\n\n[b](c.md)\n", "c.md"),
        ("# A\n\n[b](b.md#nowhere)\n", "nowhere"),
        ("# A\n\n![b](b.png)\n", "b.png"),
        ("# A\n\n```{eval-rst}\n.. autofunction:: discreet.desing\n```\n", "desing"),
    ],
    ids=["good", "page", "heading", "picture", "name"],
)
def test_a_broken_link_fails(tmp_path, text, told):
    source = tmp_path / "docs"
    source.mkdir()
    shutil.copy(DOCS / "conf.py", source)
    shutil.copytree(DOCS / "_static", source / "_static")
    (source / "index.md").write_text(f"{text}\n```{{toctree}}\nb\n```\n", encoding="utf-8")
    (source / "b.md").write_text("# B\n", encoding="utf-8")
    done = build(source, tmp_path / "out")
    assert (done.returncode != 0) == (told is not None), done.stderr
    assert told is None or told in done.stderr


# ---- on a phone ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def phone(site):
    why = chromium.missing()
    if why:
        pytest.skip(why)
    with chromium.launched() as browser, chromium.hosted(site) as address:
        context = browser.new_context(**PHONE)
        yield context.new_page(), address
        context.close()


def fits(page):
    """Whether neither the page nor its text has to be moved sideways; furo scrolls the latter."""
    return page.evaluate(
        "innerWidth === 390 && [document.scrollingElement, document.querySelector('.content')]"
        ".every(e => e.scrollWidth <= e.clientWidth)"
    )


@pytest.mark.parametrize("name", ON_A_PHONE)
def test_it_fits_a_phone(phone, name):
    page, address = phone
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{name}.html")
    page.evaluate("Promise.all([...document.images].map(image => image.decode()))")
    assert fits(page)
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    page.evaluate("document.querySelector('article h1').style.width = '500px'")
    assert not fits(page)  # it would have been seen


def test_a_wide_table_scrolls_inside_itself(phone):
    page, address = phone
    page.goto(f"{address}/truth.html")
    table = page.locator(".table-wrapper").first
    assert table.evaluate("e => e.scrollWidth > 2 * e.clientWidth && e.clientWidth <= innerWidth")
    table.evaluate("e => e.scrollTo(200, 0)")
    assert table.evaluate("e => e.scrollLeft") == 200 and page.evaluate("scrollX") == 0


def test_the_search_finds_a_page(phone):
    page, address = phone
    page.goto(f"{address}/search.html?q=ledger")
    page.locator("#search-results li a", has_text="collector").first.wait_for()
    page.goto(f"{address}/search.html?q=xylophone")
    page.get_by_text("did not match any documents").wait_for()
