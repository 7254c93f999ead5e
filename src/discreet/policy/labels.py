"""Texts that people read: which characters may stand in them, and which labels look the same.

The same rules and tables as in discreet.js, held together by tests/vectors. They are written out
where the categories of Unicode depend on its version.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Show nothing, and are needed: Persian, Indic scripts and emoji are spelled with the two joiners,
# Mongolian, CJK and emoji with the selectors of a variant.
_SILENT = "\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Show nothing or a blank, and are needed by nobody; their categories are those of letters, marks
# and symbols, or they are not assigned.
_EMPTY = (
    "\u034f\u115f\u1160\u17b4\u17b5\u2065\u2800\u3164\uffa0\ufff0-\ufff8\U00016fe4\U0001d159"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_FORMATS = (  # of the category Cf, and default-ignorable: refused by the category
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_silent, _empty = re.compile(f"[{_SILENT}]"), re.compile(f"[{_EMPTY}]")
_unseen = re.compile(f"[{_SILENT}{_EMPTY}{_FORMATS}]")
_blanks = re.compile("[\\s\x1c-\x1f\x85]+")
# Greek and Cyrillic letters, small capitals, a few of the rest of Latin, and punctuation: a
# character, then those that look like it.
TWINS = (
    "A\u0391\u0410 B\u0392\u0412 C\u03f9\u0421 E\u0395\u0415 G\u050c H\u0397\u041d\u04ba "
    "I\u0399\u0406\u04c0 J\u037f\u0408 K\u039a\u041a M\u039c\u041c\u03fa N\u039d "
    "O\u039f\u041e P\u03a1\u0420 Q\u051a S\u0405 T\u03a4\u0422 V\u0474 W\u051c "
    "X\u03a7\u0425 Y\u03a5\u0423\u04ae Z\u0396 a\u03b1\u0430\u0251\u1d00 "
    "b\u0432\u0299\u044c c\u03f2\u0441\u1d04 d\u0501\u1d05 e\u03b5\u0435\u1d07 "
    "g\u0261\u0262 h\u04bb\u029c\u043d i\u03b9\u0456\u0131\u026a "
    "j\u03f3\u0458\u0237\u1d0a k\u03ba\u043a\u1d0b l\u04cf\u029f m\u043c\u1d0d "
    "n\u03b7\u0274 o\u03bf\u043e\u1d0f p\u03c1\u0440\u1d18 q\u051b\ua7af r\u0433\u0280 "
    "s\u0455\ua731 t\u03c4\u0442\u1d1b u\u03c5\u1d1c v\u03bd\u0475\u1d20 w\u051d\u1d21 "
    "x\u03c7\u0445 y\u03b3\u0443\u028f\u04af 3\u0417\u0437 6\u0431 \u0413\u0393 "
    "\u041f\u03a0 \u0424\u03a6 \u0444\u03c6 f\ua730 z\u1d22 "
    "-\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\u05be\u2796\u30fc\u2500\u2e3a "
    "\u0027\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u02c8\u2032\u055a\ua78c\u00b4\u05f3"
    "\u0060\u1ffd \u0022\u201c\u201d\u201e\u201f\u02ba\u02ee\u2033 /\u2044\u2215\u29f8\u2571\u27cb "
    ":\u2236\ua789\u02d0\u0589\u05c3\ua4fd ,\u201a ~\u223c\u2053 |\u2223\u01c0 !\u01c3 "
    "*\u2217\u204e =\ua78a <\u2039\u02c2 >\u203a\u02c3 \u00b7\u2022\u2219\u22c5\u2027 "
    "F\u03dc (\u2768 )\u2769 +\u2795"
)
_LETTER_OF = str.maketrans({twin: all_[0] for all_ in TWINS.split() for twin in all_})
_LONGEST_SAID = 300  # characters of what a stranger says


def is_label(text: str) -> bool:
    """Something to see, without control characters."""
    return is_visible(text) and is_text(text)


def is_visible(text: str) -> bool:
    """Whether there is something to see in it."""
    return bool(_seen(text).strip())


def is_text(text: str) -> bool:
    """One line without control and formatting characters, and without those that nobody sees but
    the joiners and selectors that scripts need. By categories, as browsers know them, and without
    the format controls of Egyptian hieroglyphs, whose category depends on the version of Unicode.
    """
    plain = _seen(text)
    return (plain.isascii() and plain.isprintable()) or not any(
        _is_hidden(c) or _is_strange_blank(c) for c in plain
    )


def is_prose(text: str) -> bool:
    """The same with blanks of any width, as French and Japanese have them between words."""
    plain = _seen(text)
    return (plain.isascii() and plain.isprintable()) or not any(map(_is_hidden, plain))


def cleaned(text: str) -> str:
    """What a stranger says, fit for a terminal: one line of at most 300 characters, U+FFFD in the
    place of whatever `is_prose` refuses.
    """
    text = _blanks.sub(" ", text).strip()
    text = "".join("\ufffd" if not is_prose(c) else c for c in text[: _LONGEST_SAID + 1])
    return text if len(text) <= _LONGEST_SAID else text[: _LONGEST_SAID - 1] + "…"


def looks(label: str) -> tuple[str, str]:
    """Two labels that share one of these are the same to people: without what nobody sees, width
    and form of letters, case, and how many blanks there are; in the second, letters and
    punctuation are replaced by the plain ones they look like.
    """
    if label.isascii() and "`" not in label:
        return (plain := " ".join(label.lower().split())), plain
    text = _unseen.sub("", label)
    shown = unicodedata.normalize("NFKD", text.translate(_LETTER_OF)).translate(_LETTER_OF)
    return _folded(unicodedata.normalize("NFKD", text)), _folded(shown)


def _folded(text: str) -> str:
    # as casefold, by steps that browsers have too: "ß" is "ss"
    text = text.lower().upper().lower().replace("ς", "σ")
    return _blanks.sub(" ", unicodedata.normalize("NFKD", text)).strip()


@lru_cache(20_000)
def _is_hidden(c: str) -> bool:
    code = ord(c)
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF or 0x13430 <= code <= 0x1345F:
        return True
    kind = unicodedata.category(c)
    return kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or bool(_empty.match(c))


@lru_cache(20_000)
def _is_strange_blank(c: str) -> bool:
    return c != " " and unicodedata.category(c) == "Zs"


def _seen(text: str) -> str:
    """Without the characters that show nothing and that scripts need."""
    return text if text.isascii() else _silent.sub("", text)


def how_many(n: int) -> str:
    """A number of reports, for people.

    >>> how_many(1), how_many(1200)
    ('1 report', '1,200 reports')
    """
    return f"{n:,} report" + "s" * (n != 1)


def quoted(value: object) -> str:
    """A value as the user wrote it, short."""
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
        text = text.lower() if isinstance(value, bool) else text  # as TOML and JSON have it
    except ValueError:
        text = "a number of thousands of digits"
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:100])
    return text if len(text) <= 80 else text[:77] + "…"
