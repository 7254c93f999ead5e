"""The pages: server-rendered HTML and scripts, and no request to another host. `make js` joins the
scripts from their modules.

The participant's page is one static file that contains its style, `discreet.js` and `answer.js`. It
is the same for every collection and every server: its SHA-256 can be published, and the file can be
hosted elsewhere.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, TypeAlias
from urllib.parse import quote

from starlette.responses import Response

from discreet.device.wire import collection_path, page_path

Texts: TypeAlias = dict[str, Any]  # a text is a string, or a form per plural category

_FOLDER = files("discreet.collector") / "static"
RESULTS_TEXTS = "results/texts"  # the folder of the texts of the results page
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_SERVED = ("style.css", "results.css", "results.js", "desk.css", "desk.js", "icon.svg")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# the results page draws a picture of its chart, which it has made itself
RESULTS_POLICY = POLICY.replace("img-src 'self'", "img-src 'self' blob:")


def read(name: str) -> str:
    """Read a file of the folder `static`."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def static(name: str) -> tuple[bytes, str] | None:
    """The content and media type of a file that pages load; None if there is no such file."""
    if name not in _SERVED:
        return None
    content = _results_script() if name == "results.js" else read(name)
    return content.encode(), _KINDS[name.rsplit(".", 1)[1]]


def html(text: str) -> Response:
    """Answer with a page."""
    return Response(text, media_type="text/html")


# ---- the participant's page ----------------------------------------------------------------------


@lru_cache(maxsize=1)
def answer_file() -> bytes:
    """The whole page. It contains its own security policy: wherever it is hosted, only its own
    script and style run.
    """
    return answer_with(answer_policy_with("", "connect-src https: http:"))


def answer_with(policy: str, before: str = "") -> bytes:
    """The page with this security policy, and with this before its script."""
    style, script = _style_and_script()
    pieces = {
        "policy": policy,
        "icon": _icon(),
        "style": style,
        "script": script,
        "watch": read("watch.js"),
        "noScript": _in_every_language("noScript"),
        "old": _in_every_language("old"),
    }
    whole = re.sub(r"/\*(\w+)\*/", lambda mark: pieces[mark[1]], _in_english())
    return whole.replace('<script type="module">', f'{before}<script type="module">', 1).encode()


@lru_cache(maxsize=1)
def answer_policy(frame_ancestors: Sequence[str] = ()) -> str:
    """The stricter policy with which we serve the page: it may talk to its own server only, and
    only these origins may show it in a frame.
    """
    ancestors = " ".join(frame_ancestors) or "'none'"
    return answer_policy_with("", "connect-src 'self'") + f"; frame-ancestors {ancestors}"


def _in_english() -> str:
    """The page with the English texts; its script replaces them by those of another language."""
    return _filled(read("answer.html"), translations()[0])


def _filled(page: str, texts: Texts) -> str:
    """A page with these texts at their places."""
    return re.sub(
        r'data-text="(\w+)"[^>]*>(?=</)',
        lambda place: place[0] + escape(str(texts[place[1]]), quote=False),
        page,
    )


def _in_every_language(key: str) -> str:
    """A text that stands there before, or without, a script that knows the reader's language."""
    return "\n".join(
        f'<p lang="{texts["language"]}" dir="{texts["direction"]}">{escape(texts[key])}</p>'
        for texts in translations()
    )


@lru_cache(maxsize=2)
def translations(folder: str = "texts") -> list[Texts]:
    """The texts of the participant's page, or of another one, by key: in every language, English
    first.
    """
    loaded = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in _FOLDER.joinpath(*folder.split("/")).iterdir()
    ]
    return sorted(loaded, key=lambda texts: (texts["language"] != "en", texts["language"]))


def _with_texts(script: str, folder: str = "texts") -> str:
    """A script with the texts of all languages where it leaves room for them."""
    before, empty, after = script.partition("const TEXTS = [];")
    assert empty
    texts = json.dumps(translations(folder), ensure_ascii=False)
    return f"{before}const TEXTS = {texts};{after}"


@lru_cache(maxsize=1)
def _style_and_script() -> tuple[str, str]:
    """The style and the script of the page: both modules in one, with the texts."""
    first, rest = read("answer.js").split("\n", 1)
    assert first.startswith("import ") and first.endswith('"./discreet.js";')
    page = f"{{{_with_texts(rest)}}}\n"  # a block has its own names
    return read("style.css"), read("discreet.js") + page


def answer_policy_with(more: str, connect: str) -> str:
    """The policy of the page: its own style and script, these more scripts, and where it may
    connect to.
    """
    style, script, watch = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in (*_style_and_script(), read("watch.js"))
    )
    scripts = f"{script} {watch} {more}".strip()
    return (
        f"default-src 'none'; script-src {scripts}; style-src {style}; {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@lru_cache(maxsize=1)
def answer_compressed() -> bytes:
    """The page, compressed with gzip: a third of the bytes, for slow connections."""
    return gzip.compress(answer_file(), 9, mtime=0)


def answer_hash() -> str:
    """The SHA-256 of the page, as published."""
    return hashlib.sha256(answer_file()).hexdigest()


def _icon() -> str:
    return "data:image/svg+xml," + quote(read("icon.svg"))


# ---- the other pages -----------------------------------------------------------------------------


def _page(title: str, body: str, name: str = "", more: str = "") -> str:
    """A page; `name` is that of its own style and script."""
    module = ""
    if name:
        module = (
            f'\n<link rel="stylesheet" href="/static/{name}.css">'
            f'\n<script type="module" src="/static/{name}.js"></script>'
        )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/style.css">{module}{more}
</head>
<body>
{body}
</body>
</html>
"""


def index(collections: Iterable[tuple[str, str, bool, str]], unreadable: Iterable[str] = ()) -> str:
    """The list of collections (name, title, whether it is a rehearsal, state), then the names of
    unreadable ones.
    """
    cards = []
    for name, title, rehearsal, state in collections:
        mark = '<span class="chip">rehearsal</span>' if rehearsal else ""
        link = page_path(name)
        answer = (
            f'<a class="button" href="{link}">Answer</a>'
            if state == "open"
            else f'<span class="chip">{state}</span>'
        )
        cards.append(
            f'<li class="card"><h2>{escape(title)}</h2><p '
            f'class="quiet">{escape(name)}</p>'
            f'<p class="row">{answer}{mark}<a class="button plain" '
            f'href="{link}/results">Results</a></p></li>'
        )
    cards += [
        f'<li class="card"><h2>{escape(name)}</h2><p class="row"><span class="chip">unreadable'
        "</span></p></li>"
        for name in unreadable
    ]
    listing = (
        f'<ul class="cards">{"".join(cards)}</ul>'
        if cards
        else '<p class="card">There is no collection yet.</p>'
    )
    return _page(
        "discreet",
        '<main class="narrow"><header><h1>discreet</h1><p class="lead">Counts without knowing '
        "who. Your device changes your "
        "answer at random before it is sent; only the counts of many people mean "
        f"something.</p></header>{listing}"
        '<p class="quiet"><a href="/desk">For organisers</a></p></main>',
    )


def desk() -> str:
    """The organiser's desk; desk.js fetches the rest."""
    return _page("Desk · discreet", read("desk.html"), "desk")


def results(name: str, title: str, open_results: bool, tags: str = "", desk_link: str = "") -> str:
    """The results page of a collection; results.js fetches the numbers, on the desk from
    `desk_link`. `tags` are for the head.
    """
    body = Template(_filled(read("results.html"), translations(RESULTS_TEXTS)[0])).substitute(
        link=escape(desk_link or f"{collection_path(name)}/estimate"),
        name=escape(name),
        question=escape(title),
        home='<a href="/desk">discreet desk</a>' if desk_link else '<a href="/">discreet</a>',
        whom=" data-desk" if desk_link else "" if open_results else " data-token",
    )
    return _page(f"Results: {title}", body, "results", tags)


@lru_cache(maxsize=1)
def _results_script() -> str:
    return _with_texts(read("results.js"), RESULTS_TEXTS)
