"""Invitations that people can scan, send and print (extra `serve`)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import DataError, MissingExtra

if TYPE_CHECKING:
    from segno import QRCode

KINDS = (".png", ".svg", ".html")


def make_code(link: str) -> QRCode:
    """Make the QR code of a link. It is readable even if a seventh of it is covered."""
    try:
        import segno
    except ImportError:
        raise MissingExtra("a QR code", "serve") from None
    return segno.make(link, error="m", micro=False)


def terminal(link: str) -> str:
    """The code for a terminal, two rows of it in one line."""
    out = io.StringIO()
    make_code(link).terminal(out=out, compact=True)
    return out.getvalue()


def save(
    link: str,
    path: str | Path,
    question: str,
    lead: str,
    promises: Sequence[str],
    about: Sequence[tuple[str, str]] = (),
    translations: Mapping[str, tuple[str, Sequence[str]]] | None = None,
) -> None:
    """Save the code as PNG or SVG, or as a page to print (HTML) that also names the organiser."""
    from discreet.policy.files import write_text, written_aside

    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        raise DataError(f"{path}: an invitation is written as {', '.join(KINDS)}")
    if kind == ".html":
        write_text(path, poster(link, question, lead, promises, about, translations))
        return
    with written_aside(path) as aside, aside.open("wb") as file:
        make_code(link).save(file, kind=kind[1:], scale=10, border=4)


def link_button(link: str, title: str) -> str:
    """HTML of a link that looks like a button, for somebody's own page. It has no script, and tells
    the collector nothing about the page.

    >>> print(link_button("https://a.example/c/b#0", "Fish & chips?"))
    <a href="https://a.example/c/b#0" rel="noreferrer noopener" target="_blank"
     style="display:inline-block;padding:.7em 1.3em;border-radius:9px;background:#0f766e;color:#fff;
     font:600 1em/1.3 system-ui,sans-serif;text-decoration:none">Fish &amp; chips?</a>
    """
    return f"""<a href="{escape(link)}" rel="noreferrer noopener" target="_blank"
 style="display:inline-block;padding:.7em 1.3em;border-radius:9px;background:#0f766e;color:#fff;
 font:600 1em/1.3 system-ui,sans-serif;text-decoration:none">{escape(title)}</a>"""


def poster(
    link: str,
    question: str,
    lead: str,
    promises: Sequence[str],
    about: Sequence[tuple[str, str]] = (),
    translations: Mapping[str, tuple[str, Sequence[str]]] | None = None,
) -> str:
    """A page to print: the question, the organiser, what happens to an answer, the code, the link
    and the promises. It loads nothing. `translations` have the question and lines about the
    organiser, by language: paper does not know who reads it, so it shows all of them.
    """
    organiser = "".join(f"<p>{escape(key.capitalize())}: {escape(line)}</p>" for key, line in about)
    others = "".join(
        f'<div lang="{escape(language)}" dir="auto"><h2>{escape(words)}</h2>'
        + "".join(f"<p>{escape(line)}</p>" for line in lines)
        + "</div>"
        for language, (words, lines) in (translations or {}).items()
    )
    drawn = make_code(link).svg_inline(scale=6, border=4)
    listed = "".join(f"<li>{escape(promise)}</li>" for promise in promises)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(question)}</title>
<style>
@page {{ margin: 18mm }}
body {{ font: 12pt/1.45 system-ui, sans-serif; max-width: 42em; margin: 2em auto; padding: 0 1em;
  color: #111; background: #fff }}
h1 {{ font-size: 24pt; line-height: 1.2 }}
svg {{ display: block; margin: 1em auto; max-width: 100% }}
code {{ overflow-wrap: anywhere; font-size: 9pt }}
li {{ margin: .4em 0 }}
</style>
</head>
<body>
<h1>{escape(question)}</h1>
{organiser}
{others}
<p>{escape(lead)}</p>
{drawn}
<p>Scan the code, or open:<br><code>{escape(link)}</code></p>
<p>The whole link is the same for everybody. Compare yours with somebody else's, character by
character. The part after the # is the fingerprint of the question.</p>
<h2>What we promise</h2>
<ul>{listed}</ul>
</body>
</html>
"""
