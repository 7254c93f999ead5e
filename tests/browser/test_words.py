"""Every language of the page says everything: the same keys and placeholders as English."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from checks import must_fail
from nodejs import NODE

from discreet.collector import pages

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "src" / "discreet" / "collector" / "static" / "discreet.js"
LANGUAGES = ("ar", "de")
pytestmark = pytest.mark.skipif(
    NODE is None, reason="node is not installed, so the JavaScript module cannot be run"
)


@pytest.fixture(scope="module")
def sentences():
    """The English sentences of discreet.js; those of the page are in texts/en.json."""
    show = f"import({json.dumps(str(MODULE))}).then(m => console.log(JSON.stringify(m.ENGLISH)))"
    return json.loads(subprocess.run([NODE, "-e", show], capture_output=True, check=True).stdout)


def placeholders(form):
    return set(re.findall(r"{(\w+)}", form))


def forms(text):
    return text if isinstance(text, dict) else {"other": text}


def check_texts(words, english):
    """The same keys; the general form has the same placeholders, a plural form may leave out the
    number itself.
    """
    assert {*words} == {*english}
    for key, text in english.items():
        expected = placeholders(forms(text)["other"])
        assert placeholders(forms(words[key])["other"]) == expected, key
        for form in forms(words[key]).values():
            assert form.strip() and expected - {"n"} <= placeholders(form) <= expected, key


def page_texts(words):
    return {key: text for key, text in words.items() if key not in ("sentences", "errors")}


def test_the_languages_are_listed():
    assert [words["language"] for words in pages.translations()] == ["en", *LANGUAGES]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_everything(language, sentences):
    english, words = (
        next(words for words in pages.translations() if words["language"] == name)
        for name in ("en", language)
    )
    assert {*words} == {*english, "sentences"}
    check_texts(page_texts(words), page_texts(english))
    check_texts(words["sentences"], sentences)
    types = (ROOT / "js" / "discreet.d.ts").read_text(encoding="utf-8")
    codes = set(re.findall(r'"(\w+)"', types[: types.index("Everything this module")]))
    for errors in (english["errors"], words["errors"]):
        assert {*errors} == codes | {"late", "missing", "damaged"} and all(errors.values())


@pytest.mark.parametrize(
    "change",
    [{"odds": "{what}"}, {"more": "{items}"}, {"new": "x"}, {"padded": {"other": "{n} {k}"}},
     {"answers": {"one": "one {k}", "other": "{n}"}}],
)  # fmt: skip
def test_another_key_or_placeholder_is_seen(change, sentences):
    german = next(words for words in pages.translations() if words["language"] == "de")["sentences"]
    check_texts(german, sentences)
    must_fail(check_texts, {**german, **change}, sentences)
    must_fail(check_texts, {key: german[key] for key in german if key != "none"}, sentences)


def test_the_page_has_a_text_for_every_place():
    used = set(re.findall(r'data-text="(\w+)"', pages.read("answer.html")))
    assert used <= {*pages.translations()[0]}


# ---- the results page ----------------------------------------------------------------------------


def test_the_results_page_has_the_same_languages():
    texts = pages.translations(pages.RESULTS_TEXTS)
    assert [words["language"] for words in texts] == ["en", *LANGUAGES]
    ours = pages.translations()
    assert [(x["name"], x["direction"]) for x in texts] == [
        (x["name"], x["direction"]) for x in ours
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_results_page_says_everything_in_every_language(language):
    english, *others = pages.translations(pages.RESULTS_TEXTS)
    (words,) = [x for x in others if x["language"] == language]
    check_texts(words, english)
    must_fail(check_texts, {**words, "headline": "{n}"}, english)
    must_fail(check_texts, {key: words[key] for key in words if key != "none"}, english)


def test_every_text_of_the_results_page_is_used_and_every_used_one_is_there():
    (english, *_), page = pages.translations(pages.RESULTS_TEXTS), pages.read("results.html")
    modules = "".join(
        path.read_text(encoding="utf-8") for path in (MODULE.parent / "results").glob("*.js")
    )
    placed = {*re.findall(r'data-(?:text|note|label)="(\w+)"', page)}
    assert placed <= {*english}
    assert {*re.findall(r'\btext\("(\w+)"', modules)} <= {*english}
    said = {*re.findall(r'"(\w+)"', modules)} | placed
    views = {f"{name}About" for name in ("counted", "shrunk", "consistent")}
    own = {"language", "direction", "name"} | views
    assert {*english} <= said | own | {*re.findall(r"\b(shrunk|consistent)\b", modules)}


def test_the_page_stays_light():
    """One file for slow connections: what it was before it had these words, and 15 % more."""
    assert len(pages.answer_file()) <= 361_480
    assert len(pages.answer_compressed()) <= 100_880
