"""Invitations: what a phone reads is the link, and a link that does not work is not printed."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import zxingcpp
from click.testing import CliRunner
from collecting import mechanism, serving
from PIL import Image

import discreet as d
from discreet.cli import main
from discreet.errors import DataError
from discreet.show import invitations

LINK = "https://survey.example.org/c/h%C3%A4rte%20term#" + "0123456789abcdef" * 4


def read(picture):
    """What a phone's camera would make of it."""
    (found,) = zxingcpp.read_barcodes(np.asarray(picture.convert("L")))
    return found.text


def drawn(text):
    """The picture that half blocks in a terminal are, white where they are."""
    lines = [line for line in text.splitlines() if line]
    rows = []
    for line in lines:
        rows.append([c in "█▀" for c in line])
        rows.append([c in "█▄" for c in line])
    bits = np.array(rows, np.uint8) * 255
    return Image.fromarray(np.kron(bits, np.ones((8, 8), np.uint8)))


def test_a_poster_has_every_language_of_the_survey():
    """Paper does not know who reads it."""
    said = {"de": ("Was <hat> Sie?", ["Stadt & Land"]), "ar": ("ماذا؟", [])}
    page = invitations.poster(LINK, "What?", "Lead.", ["a factor"], (), said)
    german = '<div lang="de" dir="auto"><h2>Was &lt;hat&gt; Sie?</h2><p>Stadt &amp; Land</p></div>'
    assert german in page and '<div lang="ar" dir="auto"><h2>ماذا؟</h2></div>' in page
    assert page.index("What?") < page.index(german) < page.index("<svg")
    plain = invitations.poster(LINK, "What?", "Lead.", ["a factor"])
    assert (
        page.replace(german, "").replace('<div lang="ar" dir="auto"><h2>ماذا؟</h2></div>', "")
        == plain
    )


def test_every_form_is_the_link(tmp_path):
    assert read(drawn(invitations.terminal(LINK))) == LINK
    invitations.save(LINK, tmp_path / "i.png", "Which?", "Lead.", [])
    with Image.open(tmp_path / "i.png") as picture:
        assert read(picture) == LINK
        covered = np.array(picture.convert("L"))
    size = len(covered)
    covered[size // 2 : size // 2 + size // 12, size // 2 : size // 2 + size // 12] = 255
    assert read(Image.fromarray(covered)) == LINK
    invitations.save(LINK, tmp_path / "i.svg", "Which?", "Lead.", [])
    told = invitations.poster(
        LINK, "Which?", "Lead.", [], [("organiser", "A & B"), ("closes", "soon")]
    )
    assert "<p>Organiser: A &amp; B</p><p>Closes: soon</p>" in told
    assert (tmp_path / "i.svg").read_text().count("<path") == 1


def test_the_page_to_print_is_text_and_loads_nothing():
    page = invitations.poster(LINK, "<b>Which & what?", "It is < safe.", ["a <factor> of 2"])
    assert "<p>It is &lt; safe.</p>" in page and "The whole link is the same for everybody" in page
    assert "&lt;b&gt;Which &amp; what?" in page and "a &lt;factor&gt; of 2" in page
    assert f"<code>{LINK}</code>" in page and page.count("<svg") == 1
    assert not re.search(r"(src|href)=|@import|url\(", page)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="is written as .png, .svg, .html"):
        invitations.save(LINK, tmp_path / "i.pdf", "Which?", "Lead.", [])


class Button(HTMLParser):
    """Every tag with its attributes, and the text, as a browser reads them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def button(html):
    """Where a link button leads and what it says; it is one link, and nothing else."""
    parsed = Button(html)
    ((tag, attributes),) = parsed.tags
    assert tag == "a" and {*attributes} == {"href", "rel", "target", "style"}
    return attributes["href"], parsed.text


@pytest.mark.parametrize(
    "title",
    ["Which?", 'Fish & "chips"?', "</a><script>alert(1)</script>", "<b onclick='x'>&lt;", "ما؟"],
)
@pytest.mark.parametrize("link", [LINK, 'https://a.example/c/"><script>x</script>?a=1&b=2#0'])
def test_a_link_button_takes_every_name_as_a_text(link, title):
    html = invitations.link_button(link, title)
    assert button(html) == (link, title)
    assert "<script" not in html
    with pytest.raises((AssertionError, ValueError)):  # the twin: what is not escaped is seen
        assert button(html.replace("</a>", "<script>x</script></a>")) == (link, title)


def run(*arguments, code=0):
    found = CliRunner().invoke(main, ["invite", *map(str, arguments)])
    assert found.exit_code == code, found.output
    return found


def test_the_command_tries_the_link_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = d.Survey("bits", [mechanism("bits")])
    made.save("m.json")
    with serving(tmp_path, "m.json") as server:
        link = f"{server.url}/c/bits#{made.fingerprint}"
        output = run(link, "-o", "i.png", "-o", "i.html").output
        assert link in output and "This link works on this machine only" in output
        with Image.open("i.png") as picture:
            assert read(picture) == link
        page = Path("i.html").read_text()
        assert link in page and made.mechanism.policy.question in page
        assert "by at most a factor of" in page and "can tell for sure what you answered" in page
        told = json.loads(run(link, "-o", "k.svg", "--json").output)
        assert told.pop("url") == link and Path("k.svg").exists()
        assert told.pop("caution") == ""
        html = told.pop("button")
        assert told == {"state": "open", "this_machine_only": True, "output": ["k.svg"]}
        assert run(link, "--button").stdout == f"{html}\n"
        assert button(html) == (link, made.mechanism.policy.question)
        wrong = link[:-64] + "0" * 64
        (line,) = run(wrong, "-o", "j.png", code=2).stderr.splitlines()
        assert "fingerprint" in line and not Path("j.png").exists()
        (line,) = run(f"{server.url}/c/none#{made.fingerprint}", code=2).stderr.splitlines()
        assert "none" in line
    (line,) = run(f"http://127.0.0.1:{server.port}/c/bits", code=2).stderr.splitlines()
    assert "has no fingerprint" in line
    (line,) = run(f"http://0.0.0.0:1/c/bits#{made.fingerprint}", code=2).stderr.splitlines()
    assert "is not an address that people can open" in line
    (line,) = run(link, code=2).stderr.splitlines()
    assert "cannot be used" in line


def test_weak_protection_is_said_where_people_are_invited(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = d.Survey("weak", [d.design(d.Policy.from_levels([("a", 20, ["x", "y", "z"])]))])
    made.save("m.json")
    with serving(tmp_path, "m.json") as server:
        link = f"{server.url}/c/weak#{made.fingerprint}"
        shown = run(link, "-o", "i.html")
        assert "Warning: This is weak protection" in shown.stderr
        page = Path("i.html").read_text()
        assert "This is weak protection" in page and "can tell for sure" not in page
        assert "weak protection" in json.loads(run(link, "--json").output)["caution"]
