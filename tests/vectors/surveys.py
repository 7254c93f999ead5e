"""Surveys a second time, straight from their contract: what is accepted, the fingerprint, and the
factor of everything that one person sends.

`good_surveys` and `bad_surveys` are the cases. Nothing of discreet is used here.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import prod
from typing import Any

from building import changed, policy
from good import good_mechanisms
from reference import (
    RESERVED,
    TAG,
    D,
    Document,
    Refused,
    body_of,
    check_about,
    check_shape,
    exponential,
    holds,
    label,
    must,
    prose,
    rows,
    same,
    sha256,
    table,
    whole,
)

MOST_QUESTIONS, MOST_PUBLIC, MOST_GROUPS, MOST_ITEMS, LONGEST_NAME = 100, 8, 10_000, 255, 200
OUTSIDE = ("model", "prior", "certificate")  # of the fingerprint


def survey_sha256(body: Document) -> str:
    """The fingerprint: how the mechanisms were found is not covered by it."""
    questions = body.get("questions")
    if isinstance(questions, list):
        body = {**body, "questions": [*map(covered, questions)]}
    return sha256(body)


def covered(row: Any) -> Any:
    """A question without how its mechanism was found."""
    if not isinstance(row, dict) or not isinstance(row.get("mechanism"), dict):
        return row
    mechanism = {key: x for key, x in row["mechanism"].items() if key not in OUTSIDE}
    return {**row, "mechanism": mechanism}


def sealed(body: Document) -> Document:
    """With its fingerprint."""
    body = body_of(body)
    return {**body, "fingerprint": survey_sha256(body)}


def survey_verdict(document: Any) -> str:
    """What becomes of a survey: ok, or the word of its refusal."""
    try:
        must(isinstance(document, dict))
        must(document.get("fingerprint") == survey_sha256(body_of(document)), "fingerprint")
        check_survey(body_of(document))
        for row in document["questions"]:
            must(holds(row["mechanism"]), "guarantee")
    except Refused as refused:
        return str(refused)
    return "ok"


def check_survey(body: Document) -> None:
    """Everything but the fingerprint and the exact checks."""
    optional = [key for key in ("about", "public", "translations") if key in body]
    table(body, ["format", "name", "answers", "questions", *optional])
    must(body["format"] == "discreet-survey/1")
    questions = rows(body["questions"])
    must(1 <= len(questions) <= MOST_QUESTIONS)
    for row in questions:
        table(
            row, ["name", "mechanism", *(["of"] if isinstance(row, dict) and "of" in row else [])]
        )
        must(isinstance(row["mechanism"], dict) and "fingerprint" not in row["mechanism"])
        check_shape(row["mechanism"])
    whole(body["answers"], 1, len(questions))
    public = rows(body.get("public", [])) if "public" in body else []
    must("public" not in body or 1 <= len(public) <= MOST_PUBLIC)
    for row in public:
        check_public(row)
    must(prod(len(row["items"]) for row in public) <= MOST_GROUPS)
    names = [row["name"] for row in (*questions, *public)]
    for name in [body["name"], *names]:
        must(len(label(name)) <= LONGEST_NAME and name == name.strip())
    must(not any(":" in name for name in names))
    must(not any(same(x, y) for x, y in combinations(names, 2)))
    plain = {row["name"]: row["mechanism"]["policy"] for row in questions if "of" not in row}
    for row in questions:
        if "of" in row:
            of = rows(row["of"], 2)
            must(all(isinstance(name, str) and name in plain for name in of) and of[0] != of[1])
            check_cross(row["mechanism"]["policy"], *(plain[name] for name in of))
    if "about" in body:
        check_about(body["about"])
    if "translations" in body:
        items = {name: x["items"] for name, x in plain.items()}
        openly = {row["name"]: row["items"] for row in public}
        check_translations(body["translations"], items, openly)
        must(body.get("about", {}).get("language") not in body["translations"])


def check_public(row: Any) -> None:
    table(row, ["name", "text", "items"])
    must(prose(row["text"]) and row["name"] not in RESERVED)
    items = [label(item) for item in rows(row["items"])]
    must(2 <= len(items) <= MOST_ITEMS)
    must(not any(same(x, y) for x, y in combinations(items, 2)))


def check_cross(crossed: Document, first: Document, second: Document) -> None:
    """The items are the pairs; the budget of a pair is the smaller of its two."""
    for one in (crossed, first, second):
        must(one["kind"] == "single" and one["notion"] == first["notion"] and not one["pairs"])
        must(one["notion"] in ("min", "avg"))
    must("last" not in crossed)
    cells = [(i, j) for i in range(len(first["items"])) for j in range(len(second["items"]))]
    labels = [f"{first['items'][i]} × {second['items'][j]}" for i, j in cells]
    must(crossed["items"] == labels)
    for k, (i, j) in enumerate(cells):
        both = budget_of(first, i), budget_of(second, j)
        must(budget_of(crossed, k) == min(both, key=lambda text: exponential(text)[0]))


def budget_of(policy_: Document, item: int) -> str:
    return policy_["levels"][policy_["level_of"][item]]["epsilon"]


PROSE = ("organiser", "contact", "notice", "purpose", "consent")


def check_translations(
    translations: Any, questions: dict[str, list[str]], public: dict[str, list[str]]
) -> None:
    """By language: what is said, and nothing that is not."""
    must(isinstance(translations, dict) and len(translations) > 0)
    for language, raw in translations.items():
        must(TAG.fullmatch(language) is not None)
        must(isinstance(raw, dict) and set(raw) <= {"about", "questions", "public"})
        if "about" in raw:
            must(isinstance(raw["about"], dict) and set(raw["about"]) <= set(PROSE))
            check_about(raw["about"])
        for key, known in (("questions", questions), ("public", public)):
            if key in raw:
                must(isinstance(raw[key], dict) and len(raw[key]) > 0)
                for name, wording in raw[key].items():
                    must(name in known)
                    check_wording(wording, known[name])


def check_wording(wording: Any, items: list[str]) -> None:
    must(isinstance(wording, dict) and set(wording) <= {"text", "items"})
    if "text" in wording:
        must(prose(wording["text"]) and wording["text"] != "")
    if "items" in wording:
        labels = wording["items"]
        must(isinstance(labels, dict) and len(labels) > 0 and set(labels) <= set(items))
        for text in labels.values():
            label(text)
        shown = [labels.get(item, item) for item in items]
        must(not any(same(x, y) for x, y in combinations(shown, 2)))


# ---- good ones -----------------------------------------------------------------------------------


ABOUT = {
    "all": {
        "organiser": "Étude · 健康", "contact": "study@example.org, +32 9 000", "language": "pt-BR",
        "purpose": "To know.\n\nNothing\u00a0else.", "consent": "👩\u200d⚕\ufe0f may count me.",
        "opens": "2026-02-28T23:59:59Z", "closes": "2026-03-01T00:00:00Z", "minimum": 1000,
        "rehearsal": True, "notice": "https://example.org/privacy",
    },
    "notice-plain": {"notice": "http://example.org/%C3%A9?a=b#c"},
    "leap-day": {"opens": "2028-02-29T00:00:00Z"},
    "first": {"closes": "1970-01-01T00:00:00Z", "minimum": 50},
    "last": {"closes": "9999-12-31T23:59:59Z", "language": "gsw"},
    "french-blanks": {"organiser": "Qui\u202f?", "consent": "Oui\u2009!\n\u00a0\nNon."},
    "right-to-left": {"organiser": "بلدية", "language": "ar"},
}  # fmt: skip


def mute(policy_: Document) -> Document:
    """A mechanism whose reports say nothing, so that it keeps all budgets."""
    groups = [0] * len(policy_["levels"])
    part = {"chance": [D], "own": [0], "other": [0]}
    return {
        "format": "discreet-mechanism/3", "policy": policy_, "model": "subset", "prior": "uniform",
        "encoding": {"kind": "bits"}, "padding": 0, "groups": groups, "shares": [D],
        "parts": [part],
    }  # fmt: skip


def of(name: str) -> Document:
    """A good mechanism as a survey holds it."""
    return body_of(good_mechanisms()[name])


AGE = policy([("all", "ln(4)/2", [0, 1])], ["young", "old"], question="How old are you?")
ILL = policy(
    [("serious", "1/3", [1]), ("common", "0.7", [0, 2])], ["flu", "HIV", "none"],
    question="Which illness? 🙂", last=["none"],
)  # fmt: skip


def crossed_policy(first: Document, second: Document) -> Document:
    """The question about the pairs, with a level for every budget."""
    labels = [f"{x} × {y}" for x in first["items"] for y in second["items"]]
    texts = [
        min(budget_of(first, i), budget_of(second, j), key=lambda text: exponential(text)[0])
        for i in range(len(first["items"]))
        for j in range(len(second["items"]))
    ]
    levels = [(text, text, [k for k, x in enumerate(texts) if x == text]) for text in texts]
    return policy([*{row[0]: row for row in levels}.values()], labels,
                  notion=first["notion"])  # fmt: skip


REGION = {"name": "region", "text": "Where do you work?", "items": ["north", "south"]}
SECTOR = {"name": "sector", "text": "", "items": ["care", "education", "other"]}
GERMAN = {
    "about": {"organiser": "Studie", "purpose": "Um es zu wissen.\n\nSonst nichts."},
    "questions": {
        "age": {"text": "Wie alt sind Sie?", "items": {"young": "jung", "old": "alt"}},
        "illness": {"items": {"flu": "Grippe", "none": "keine"}},
    },
    "public": {"region": {"text": "Wo arbeiten Sie?", "items": {"north": "Norden"}}},
}
ARABIC = {"questions": {"illness": {"text": "أي مرض؟"}}}


def survey(questions: list[Document], answers: int = 1, **more: Any) -> Document:
    body = {"format": "discreet-survey/1", "name": "vectors", "answers": answers}
    return sealed({**body, "questions": questions, **more})


def three(**more: Any) -> Document:
    """Two questions and their cross."""
    return survey(
        [
            {"name": "age", "mechanism": mute(AGE)},
            {"name": "illness", "mechanism": mute(ILL)},
            {"name": "both", "mechanism": mute(crossed_policy(AGE, ILL)), "of": ["age", "illness"]},
        ],
        **more,
    )


@cache
def good_surveys() -> dict[str, Document]:
    """By name; every part that there is, alone and with others."""
    lone = [{"name": "question", "mechanism": of("toy-opt0")}]
    pair = [{"name": "a", "mechanism": of("toy-subset")}, {"name": "b", "mechanism": of("toy-grr")}]
    lists = [
        {"name": "ill", "mechanism": of("four-hits")}, {"name": "own", "mechanism": of("toy-each")},
        {"name": "third", "mechanism": of("toy-third-ss")},
    ]  # fmt: skip
    open_ = [{"name": "open", "mechanism": of("seven-open-ticket")}, *pair]
    average = [{"name": "both", "mechanism": mute(crossed_policy(*averages())), "of": ["x", "y"]}]
    average += [{"name": k, "mechanism": mute(x)} for k, x in zip("xy", averages(), strict=True)]
    items = [f"group {k}" for k in range(MOST_ITEMS)]
    eight = [
        {"name": f"p{k}", "text": "", "items": [str(x) for x in range(size)]}
        for k, size in enumerate((5, 5, 5, 5, 2, 2, 2, 2))
    ]
    names = {"one": "Étude · 健康", "digits": "2027: a study", "of-200": "n" * LONGEST_NAME}
    found = {
        "one": survey(lone),
        "two": survey(pair),
        "two-both": survey(pair, 2),
        "lists": survey(lists, 2),
        "each-of-three": survey(lists, 3),
        "one-way": survey(open_),
        "one-way-all": survey(open_, 3),
        "hundred": survey([{"name": f"q{k}", "mechanism": mute(AGE)} for k in range(100)], 100),
        "crossed": three(),
        "crossed-of-averages": survey(average),
        "public": survey(lone, public=[REGION]),
        "public-two": three(public=[REGION, SECTOR], answers=2),
        "public-of-255": survey(lone, public=[{**REGION, "items": items}]),
        "public-of-10000-groups": survey(lone, public=eight),
        "german": three(public=[REGION], translations={"de": GERMAN}),
        "german-and-arabic": three(
            public=[REGION, SECTOR], about={"language": "en"},
            translations={"de": GERMAN, "ar": ARABIC}, answers=3,
        ),
        "translation-empty": three(translations={"de": {}}),
        "translation-of-a-wording-empty": three(translations={"de": {"questions": {"age": {}}}}),
        **{f"name-{key}": survey(lone, name=name) for key, name in names.items()},
        **{f"about-{key}": survey(lone, about=told) for key, told in ABOUT.items()},
    }  # fmt: skip
    for key, told in (("model", "personal"), ("prior", "given"), ("certificate", ...)):
        other = of("toy-opt0") | {key: told}
        body = {k: x for k, x in other.items() if x is not ...}
        found[f"another-{key}"] = {
            **found["one"], "questions": [{"name": "question", "mechanism": body}]
        }  # fmt: skip
    assert {k: survey_verdict(x) for k, x in found.items() if survey_verdict(x) != "ok"} == {}
    assert len({found[f"another-{key}"]["fingerprint"] for key in OUTSIDE}) == 1
    return found


def averages() -> tuple[Document, Document]:
    """Two questions under the notion avg."""
    levels = [("a", "1", [0]), ("b", "2", [1])]
    return (
        policy(levels, ["r", "s"], notion="avg"),
        policy([("a", "1.5", [0]), ("b", "3", [1, 2])], ["t", "u", "v"], notion="avg"),
    )


# ---- bad ones ------------------------------------------------------------------------------------

WRONG_TIMES = {
    "empty": "", "offset": "2026-02-28T23:59:59+00:00", "day": "2026-02-28", "null": None,
    "local": "2026-02-28T23:59:59", "minute": "2026-02-28T23:59Z", "number": 1772323199,
    "fraction": "2026-02-28T23:59:59.0Z", "no-leap-day": "2026-02-29T00:00:00Z",
    "midnight": "2026-02-28T24:00:00Z", "early": "1969-12-31T23:59:59Z",
    "medieval": "1066-10-14T09:00:00Z", "year-zero": "0000-01-01T00:00:00Z",
    "leap-second": "2026-06-30T23:59:60Z", "line": "2026-02-28T23:59:59Z\n",
    "far": "12026-02-28T23:59:59Z", "digits": "٢٠٢٦-02-28T23:59:59Z",
}  # fmt: skip
WRONG_ABOUT = {
    **{f"opens-{name}": {"opens": time} for name, time in WRONG_TIMES.items()},
    "empty": {}, "null": None, "list": [], "text": "us", "unknown": {"organizer": "us"},
    "organiser-empty": {"organiser": ""}, "organiser-blank": {"organiser": " "},
    "organiser-unseen": {"organiser": "\u200d"}, "organiser-padded": {"organiser": "us "},
    "organiser-lines": {"organiser": "u\ns"}, "organiser-bell": {"organiser": "u\x07s"},
    "organiser-number": {"organiser": 1}, "organiser-null": {"organiser": None},
    "organiser-turned": {"organiser": "u\u202es"}, "contact-padded": {"contact": "\u00a0us"},
    "purpose-padded": {"purpose": "us\n"}, "purpose-carriage": {"purpose": "u\r\ns"},
    "purpose-unseen": {"purpose": "\u200d\n\u200d"}, "consent-tab": {"consent": "u\ts"},
    "consent-separator": {"consent": "u\u2028s"}, "consent-list": {"consent": ["us"]},
    "language-empty": {"language": ""}, "language-upper": {"language": "EN"},
    "language-name": {"language": "English"}, "language-line": {"language": "en\n"},
    "language-number": {"language": 1}, "language-list": {"language": ["en"]},
    "opens-list": {"opens": ["2026-02-28T23:59:59Z"]},
    "closes-first": {"opens": "2026-03-01T00:00:00Z", "closes": "2026-02-01T00:00:00Z"},
    "closes-at-once": {"opens": "2026-03-01T00:00:00Z", "closes": "2026-03-01T00:00:00Z"},
    "minimum-zero": {"minimum": 0}, "minimum-text": {"minimum": "50"},
    "minimum-true": {"minimum": True},
    "notice-bare": {"notice": "example.org"}, "notice-script": {"notice": "javascript:alert(1)"},
    "notice-empty": {"notice": ""}, "notice-lines": {"notice": "https://example.org\nx"},
    "notice-long": {"notice": "https://" + "x" * 193}, "notice-number": {"notice": 1},
    "rehearsal-false": {"rehearsal": False}, "rehearsal-one": {"rehearsal": 1},
    "rehearsal-text": {"rehearsal": "true"},
}  # fmt: skip
WRONG_NAMES = {
    "empty": "", "blank": " ", "padded": "a ", "number": 1, "null": None, "long": "n" * 201,
    "lines": "a\nb", "turned": "a\u202eb", "unseen": "\u200d",
}  # fmt: skip
WRONG_PUBLIC = {
    "null": None, "empty": [], "object": REGION,
    "nine": [{**REGION, "name": f"p{k}"} for k in range(9)],
    "groups": [{**REGION, "name": f"p{k}", "items": [*"abcdefghijk"]} for k in range(4)],
    "one-item": [{**REGION, "items": ["north"]}],
    "reserved": [{**REGION, "name": "share"}],
    "many-items": [{**REGION, "items": [f"group {k}" for k in range(MOST_ITEMS + 1)]}],
    "item-twice": [{**REGION, "items": ["north", "north"]}],
    "items-alike": [{**REGION, "items": ["north", "NORTH"]}],
    "item-number": [{**REGION, "items": ["north", 1]}], "items-text": [{**REGION, "items": "ab"}],
    "no-text": [{"name": "region", "items": ["north", "south"]}],
    "text-lines": [{**REGION, "text": "a\nb"}], "text-null": [{**REGION, "text": None}],
    "unknown-key": [{**REGION, "weight": 1}], "name-colon": [{**REGION, "name": "a:b"}],
    "name-of-a-question": [{**REGION, "name": "age"}],
    "name-like-a-question": [{**REGION, "name": "АGE"}],  # its first letter is Cyrillic
    "name-twice": [REGION, REGION],
}  # fmt: skip
WRONG_TRANSLATIONS = {
    "null": None, "empty": {}, "list": [], "language": {"German": {}}, "tag": {"DE": {}},
    "null-inside": {"de": None}, "unknown-key": {"de": {"name": "x"}},
    "about-empty": {"de": {"about": {}}}, "about-minimum": {"de": {"about": {"minimum": 50}}},
    "about-padded": {"de": {"about": {"organiser": "x "}}},
    "questions-empty": {"de": {"questions": {}}},
    "question-unknown": {"de": {"questions": {"region": {"text": "x"}}}},
    "of-a-cross": {"de": {"questions": {"both": {"text": "x"}}}},
    "public-unknown": {"de": {"public": {"age": {"text": "x"}}}},
    "text-empty": {"de": {"questions": {"age": {"text": ""}}}},
    "text-lines": {"de": {"questions": {"age": {"text": "a\nb"}}}},
    "items-empty": {"de": {"questions": {"age": {"items": {}}}}},
    "items-list": {"de": {"questions": {"age": {"items": ["jung", "alt"]}}}},
    "item-unknown": {"de": {"questions": {"age": {"items": {"jung": "young"}}}}},
    "label-empty": {"de": {"questions": {"age": {"items": {"young": ""}}}}},
    "label-of-another": {"de": {"questions": {"age": {"items": {"young": "old"}}}}},
    "labels-alike": {"de": {"questions": {"age": {"items": {"young": "x", "old": "X"}}}}},
    "wording-key": {"de": {"questions": {"age": {"label": "x"}}}},
    "own-language": {"en": {"questions": {"age": {"text": "x"}}}},
}  # fmt: skip


def again(document: Document, path: str, value: Any) -> Document:
    """Changed, and sealed again."""
    return sealed(changed(document, path, value, sign=False))


def bad_surveys() -> dict[str, dict[str, Document]]:
    """By the word of their refusal."""
    good = good_surveys()
    full = sealed(good["german-and-arabic"])
    unsealed = {
        "answers": 2, "name": "other", "about/language": "fr", "questions/0/name": "years",
        "questions/1/mechanism/policy/question": "Which?", "public/0/items/0": "west",
        "translations/de/questions/age/text": "Wie?", "questions/0/mechanism/shares/0": D - 1,
    }  # fmt: skip
    fingerprints = {
        f"changed-{path}": changed(full, path, x, sign=False) for path, x in unsealed.items()
    }
    fingerprints |= {
        "fingerprint-missing": changed(full, "fingerprint", ..., sign=False),
        "fingerprint-null": {**full, "fingerprint": None},
        "fingerprint-of-another": {**full, "fingerprint": good["one"]["fingerprint"]},
        "a-mechanism": good_mechanisms()["toy-opt0"] | {"fingerprint": "0" * 64},
    }
    broken = {
        "own-too-large": again(good["two"], "questions/0/mechanism/parts/0/own/0", D - 1),
        "budget-smaller": again(
            good["two"], "questions/1/mechanism/policy/levels/0/epsilon", "ln(3)"
        ),
        "not-divided": again(
            good["lists"], "questions/2/mechanism/policy/levels/0/epsilon", "1/30"
        ),
    }
    return {"fingerprint": fingerprints, "guarantee": broken, "mechanism": unreadable(good, full)}


def unreadable(good: dict[str, Document], full: Document) -> dict[str, Document]:
    """No surveys, whatever they promise."""
    top = ("format", "name", "answers", "questions")
    found = {f"missing-{key}": again(full, key, ...) for key in top}
    found |= {f"missing-{key}": again(full, f"questions/0/{key}", ...) for key in ("mechanism",)}
    found |= {
        f"extra-{path}": again(full, path, 1)
        for path in ("extra", "questions/0/extra", "questions/0/mechanism/extra", "weight")
    }
    wrong = {
        "format": ["discreet-survey/2", "discreet-mechanism/3", None, 1],
        "answers": [0, 4, -1, "1", True, None, "all", [1]],
        "questions": [[], None, {}, "age", [None], [[]], [{"name": "a"}], [1]],
        "questions/0/mechanism": [None, [], "x", {}, good_mechanisms()["toy-opt0"]],
        "questions/2/of": [None, [], ["age"], "ab", ["age", "age"], ["age", "region"],
                           ["age", "both"], ["illness", "age"], ["age", "illness", "age"], [0, 1],
                           ["age", None]],
        "questions/1/of": [["age", "illness"], ["age", "both"]],
    }  # fmt: skip
    for path, values in wrong.items():
        found |= {f"{path}-{k}": again(full, path, x) for k, x in enumerate(values)}
    for key, name in WRONG_NAMES.items():
        found[f"name-{key}"] = again(full, "name", name)
        found[f"question-name-{key}"] = again(full, "questions/0/name", name)
    cells = "questions/2/mechanism/policy"
    policy_ = full["questions"][2]["mechanism"]["policy"]
    base = {key: x for key, x in full.items() if key != "translations"}
    return found | {
        "question-name-colon": again(base, "questions/2/name", "a:b"),
        "question-name-twice": again(base, "questions/2/name", "age"),
        "question-names-alike": again(base, "questions/2/name", "AGE "[:3]),
        "hundred-and-one": again(
            good["hundred"],
            "questions",
            [{"name": f"q{k}", "mechanism": mute(AGE)} for k in range(101)],
        ),
        "cross-of-other-cells": again(full, f"{cells}/items/0", "young x flu"),
        "cross-turned": again(full, f"{cells}/items", policy_["items"][::-1]),
        "cross-with-a-larger-budget": again(full, f"{cells}/levels/1/epsilon", "0.34"),
        "cross-with-a-smaller-budget": again(full, f"{cells}/levels/0/epsilon", "0.6"),
        "cross-with-last": again(full, f"{cells}/last", [policy_["items"][0]]),
        "cross-of-another-notion": again(full, f"{cells}/notion", "avg"),
        "cross-of-one-way": again(full, "questions/0/mechanism/policy/notion", "one-way"),
        "cross-of-a-list": again(full, "questions/0/mechanism/policy/kind", "each"),
        **{f"about-{key}": again(good["one"], "about", x) for key, x in WRONG_ABOUT.items()},
        **{f"public-{key}": again(base, "public", x) for key, x in WRONG_PUBLIC.items()},
        **{
            f"translations-{key}": again(full, "translations", x)
            for key, x in WRONG_TRANSLATIONS.items()
        },
    }


def cases() -> list[Document]:
    """Documents and what becomes of them."""
    expected: dict[str, dict[str, Document]] = {"ok": good_surveys(), **bad_surveys()}
    for word, documents in expected.items():
        wrong = {k: survey_verdict(x) for k, x in documents.items() if survey_verdict(x) != word}
        assert not wrong, (word, wrong)
    return [
        {"name": name, "expect": word, "document": document}
        for word, documents in expected.items()
        for name, document in documents.items()
    ]
