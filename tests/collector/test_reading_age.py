"""Everybody of 14 can read the page and the poster: a measure of every text, in every language.

The sentences of the promises themselves are exact, and are not measured here.
"""

import re
from html import unescape

import pytest
from checks import must_fail
from readability import ease, grade, longest, sentences, words

import discreet as d
from discreet.collector import pages
from discreet.show.invitations import poster

GRADE = 8  # Flesch and Kincaid's: age 13 to 14
EASE, EASE_OF_ALL = 50, 70  # Amstad's; 60 to 70 is what people of 13 to 15 read
LONGEST = {"en": 20, "de": 20, "ar": 15}  # words of a sentence
FEW = 7  # words: below that a formula measures one long word
PROMISES = ("safe", "safeAlone")  # of the page's own texts: exact, and as the issue words them
TEXTS = {texts["language"]: texts for texts in pages.translations()}
FILLED = {"time": "1 May at 18:00", "n": "10", "k": "3", "low": "3", "high": "20", "mine": "70",
          "others": "30", "fingerprint": "12", "form": "#", "host": "a.org"}  # fmt: skip


def filled(text):
    """A text with something short in its places."""
    return re.sub(r"\{(\w+)\}", lambda place: FILLED.get(place[1], "flu"), text)


def texts_of(language):
    """Every text that people read, by its key."""
    found = {}
    for key, text in {**TEXTS[language], **TEXTS[language]["errors"]}.items():
        if key in ("sentences", "errors", "language", "direction"):
            continue
        for form in text.values() if isinstance(text, dict) else [text]:
            found[f"{key} {len(found)}"] = filled(form)
    return found


def check_text(language, text):
    """No long sentence; and easy by the formula of the language, if it has one."""
    if not words(text):
        return
    assert longest(text) <= LONGEST[language], (longest(text), text)
    if len(words(text)) < FEW:
        return
    if language == "en":
        assert grade(text) <= GRADE, (grade(text), text)
    if language == "de":
        assert ease(text) >= EASE, (ease(text), text)


@pytest.mark.parametrize("language", TEXTS)
def test_every_text_of_the_page_is_easy_to_read(language):
    texts = texts_of(language)
    assert len(texts) > 150
    for key, text in texts.items():
        if key.split()[0] not in PROMISES:
            check_text(language, text)
    whole = "\n".join(text for text in texts.values() if len(words(text)) >= FEW)
    counted = len(words(whole)) / len(sentences(whole))
    print(f"{language}: {len(words(whole)):,} words, {counted:.1f} a sentence")
    if language == "en":
        print(f"grade {grade(whole):.1f}")
        assert grade(whole) <= GRADE - 2
    if language == "de":
        print(f"reading ease {ease(whole):.0f}")
        assert ease(whole) >= EASE_OF_ALL


def test_the_poster_is_easy_to_read():
    """All but the promises, with everything that it says of the organiser's own."""
    policy = d.Policy.from_levels([("all", 1, ["flu", "cold"])], question="Which?")
    about = {"organiser": "Us", "consent": "Yes.", "minimum": 50, "closes": "2030-01-31T18:00:00Z"}
    survey = d.Survey("few", [d.design(policy)], about=about)
    rows = survey.about.rows()
    page = poster("https://a.org/c/b#0", "Which?", survey.promise().lead, [], rows)
    said = re.sub(r"<(style|title|svg|code).*?</\1>", "", page, flags=re.S)
    lines = [re.sub("<.*?>", "", " ".join(x.split())) for x in re.split("</?(?:p|h.|ul)>", said)]
    lines = [unescape(line).strip() for line in lines if words(line)]
    assert "What we promise" in lines and len(lines) >= 9
    for line in lines:
        check_text("en", line)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Nobody, not even the organiser, can know of any one answer whether you ticked it; "
               "each is protected on its own."),
        ("en", "Organisational responsibility necessitates thorough documentation of everything."),
        ("de", "Bei Nichterreichbarkeit der Sammelstelle erfolgt automatische Wiederholung der "
               "Übertragung."),
        ("ar", "في الحالتين يتحقق جهازك من الوعد، بأعداد صحيحة، قبل أن يمسّ إجابتك؛ ولا تُخزَّن إجابتك "
               "أبدًا، ويتذكر هذا المتصفح أي الأسئلة أجاب عنها."),
    ],
)  # fmt: skip
def test_what_is_hard_to_read_is_seen(language, text):
    must_fail(check_text, language, text)


def test_the_measures_are_those_of_the_formulas():
    """By hand: 6 words of 1 syllable; 8 words with 12 syllables."""
    assert grade("The cat sat on the mat.") == pytest.approx(0.39 * 6 + 11.8 - 15.59)
    text = "Your answer is never stored. Nobody can know."
    assert grade(text) == pytest.approx(0.39 * 4 + 11.8 * 12 / 8 - 15.59)
    assert ease("Der Hund sitzt auf dem Stuhl.") == pytest.approx(180 - 6 - 58.5)
