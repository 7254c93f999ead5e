"""Writes the test vectors of `v2/`, which the Python and the JavaScript sides share.

Run `python tests/vectors/make.py`. Nothing of discreet is used: what the cases mean is computed by
`reference.py`, a second implementation of the contract. The same input gives the same bytes.

`mechanisms.json`, `surveys.json`: documents and what becomes of them: ok, guarantee, fingerprint or
mechanism.
`files.json`: the same for the bytes of a file (`text`, or `hex` where it is none).
`reports.json`: the part and the items that a report names, or why it is refused.
`tallies.json`: counts and estimates of many reports. `canonical.json`: the canonical JSON.
`texts.json`: whether a text may be a label, and whether a question. `pairs.json`: two labels, and
whether people take them for the same; then a policy has one of them, and the ledger sees it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import bad
import picks
import surveys
from building import HALF, changed
from good import good_mechanisms
from reference import (
    SAFE,
    TWINS,
    D,
    Document,
    Refused,
    body_of,
    canonical,
    estimate,
    groups_of,
    label,
    meaning,
    plain,
    prose,
    read,
    report_size,
    residue_size,
    same,
    sha256,
    tally,
    verdict,
)

FOLDER = Path(__file__).parent / "v2"


# ---- mechanisms ----------------------------------------------------------------------------------


def mechanisms() -> list[Document]:
    good = good_mechanisms()
    expected = {
        "ok": good | bad.still_good(good),
        "guarantee": bad.broken_guarantees(good),
        "fingerprint": bad.wrong_fingerprints(good),
        "mechanism": bad.unreadable(good),
    }
    for name, document in bad.at_the_bound(good).items():
        beyond = "-one-too-" in name or name.endswith("-one-more")
        expected["guarantee" if beyond else "ok"][name] = document
    for word, documents in expected.items():
        wrong = {name: verdict(x) for name, x in documents.items() if verdict(x) != word}
        assert not wrong, wrong
    return [
        {"name": name, "expect": word, "document": document}
        for word, documents in expected.items()
        for name, document in documents.items()
    ]


# ---- files ---------------------------------------------------------------------------------------


def files() -> list[Document]:
    """Spellings of one small mechanism, the same to both languages, and what is no file of one."""
    grr = good_mechanisms()["toy-grr"]
    text = json.dumps(grr, ensure_ascii=False)
    own, padding = f'"own": [{HALF}]', '"padding": 0'
    assert own in text and padding in text
    turned = dict(reversed(grr.items()))
    good = {
        "plain": text,
        "canonical": canonical(grr),
        "indented": json.dumps(grr, indent=4),
        "keys-turned": json.dumps(turned),
        "blanks-around": f" \t\r\n{text}\n\n",
        "byte-order-mark": "\ufeff" + text,
        "escapes": text.replace("HIV", "\\u0048I\\u0056").replace("format", "f\\u006frmat"),
        "decimal-point": text.replace(own, f'"own": [{HALF}.0]'),
        "exponent": text.replace(own, f'"own": [{HALF // 2**10 * 1024}e0]'),
        "large-exponent": text.replace(own, '"own": [0.2147483648E+10]'),
        "negative-exponent": text.replace(own, f'"own": [{HALF}00e-2]'),
        "rounded-by-doubles": text.replace(own, f'"own": [{HALF}.00000000000000000001]'),
        "minus-zero": text.replace(padding, '"padding": -0'),
        "minus-zero-point": text.replace(padding, '"padding": -0.0'),
        "tiny-is-zero": text.replace(padding, '"padding": 1e-400'),
    }
    numbers = {
        "nan": "NaN", "infinity": "Infinity", "minus-infinity": "-Infinity", "overflow": "1e400",
        "rounded-beyond": str(2**53 + 1), "thousands-of-digits": "9" * 5000, "plus": f"+{HALF}",
        "leading-zero": f"0{HALF}", "no-digit-before-the-point": ".5", "hexadecimal": "0x1",
        "no-digit-after-the-point": f"{HALF}.", "underscore": "2_147_483_648", "half": "0.5",
    }  # fmt: skip
    wrong: dict[str, str | bytes] = {
        name: text.replace(own, f'"own": [{value}]') for name, value in numbers.items()
    }
    surrogate = changed(grr, "policy/items/0", "\ud800")
    wrong |= {
        "empty": "", "blank": " \n", "null": "null", "number": "1", "text": '"mechanism"',
        "list": f"[{text}]", "cut": text[:-1], "twice": text + text, "comma": text[:-1] + ",}",
        "comment": text + "// a comment", "apostrophes": text.replace('"', "'"),
        "two-byte-order-marks": "\ufeff\ufeff" + text, "no-break-space": "\u00a0" + text,
        "raw-line-break-in-a-label": text.replace("HIV", "H\nV"), "deep": "[" * 5000 + "]" * 5000,
        "key-twice": text.replace(padding, '"padding": 7, "padding": 0'),
        "key-twice-alike": text.replace(padding, f"{padding}, {padding}"),
        "key-twice-escaped": text.replace(padding, f'"p\\u0061dding": 0, {padding}'),
        "part-key-twice": text.replace(own, f'"own": [1.5e1], {own}'),
        "level-key-twice": text.replace('"epsilon": ', '"epsilon": "9", "epsilon": ', 1),
        "fingerprint-twice": text.replace('"fingerprint"', '"fingerprint": "", "fingerprint"'),
        "key-twice-changed": text.replace(own, f'"own": [{HALF}], "own": [{HALF + 1}]'),
        "half-a-surrogate-pair": json.dumps(surrogate), "utf-16": text.encode("utf-16"),
        "invalid-byte": text.replace("HIV", "H?V").encode().replace(b"?", b"\xff"),
        "latin-1": text.replace("HIV", "größe").encode("latin-1"),
        "overlong": text.encode().replace(b"HIV", b"H\xc0\xa2V"),
        "surrogate-bytes": text.encode().replace(b"HIV", b"\xed\xa0\x80"),
        "cut-inside-a-character": text.encode() + "é".encode()[:1],
    }  # fmt: skip
    changed_ = {
        "changed": text.replace("HIV", "flu"),
        "changed-by-an-escape": text.replace("HIV", "HI\\u0057"),
    }  # fmt: skip
    found = []
    for expect, cases in (("ok", good), ("mechanism", wrong), ("fingerprint", changed_)):
        for name, content in cases.items():
            raw = content if isinstance(content, bytes) else content.encode()
            assert file_verdict(raw) == expect, (name, file_verdict(raw))
            how = {"hex": raw.hex()} if isinstance(content, bytes) else {"text": content}
            found.append({"name": name, "expect": expect, **how})
    return found


def file_verdict(raw: bytes) -> str:
    try:
        return verdict(read(raw))
    except Refused as refused:
        return str(refused)


# ---- reports -------------------------------------------------------------------------------------


def stream(seed: str, size: int) -> bytes:
    """Bytes that look random and are always the same."""
    blocks = (hashlib.sha256(f"{seed}/{k}".encode()).digest() for k in range(-(-size // 32)))
    return b"".join(blocks)[:size]


def integer(seed: str, below: int) -> int:
    return int.from_bytes(stream(seed, 16), "little") % below


def packed(document: Document, part: int, named: Sequence[int]) -> bytes:
    """A report of bits that names these items, whether it may or not."""
    several = len(document["parts"]) > 1
    size = report_size(document) - several
    return bytes([part] * several) + sum(1 << k for k in named).to_bytes(size, "little")


def polynomial(document: Document, part: int, coefficients: Sequence[int]) -> bytes:
    """A report of hits, whether it may be sent or not."""
    size = residue_size(document)
    return bytes([part]) + b"".join(x.to_bytes(size, "little") for x in coefficients)


def some_report(document: Document, seed: str) -> bytes:
    """A report that is acceptable."""
    parts, kind = document["parts"], document["encoding"]["kind"]
    o = integer(f"{seed}/part", len(parts))
    if kind == "hits":
        p, d = document["encoding"]["prime"], document["padding"] + 2
        return polynomial(document, o, [integer(f"{seed}/{k}", p) for k in range(d)])
    if kind == "picks":
        chosen = []
        for b, m in enumerate(picks.counts(document, parts[o])):
            ranks = sorted(range(m), key=lambda k: stream(f"{seed}/{k}", 16))
            chosen.append(sorted(ranks[: parts[o]["sizes"][b]]))
        return picks.write(document, o, chosen)
    if kind == "ticket":
        all_ = document["encoding"]["q"] ** (document["encoding"]["t"] + 1)
        tickets = plain_items(document) if plain(parts[o]) else range(all_)
        y = tickets[integer(f"{seed}/y", len(tickets))]
        return (o * all_ + y).to_bytes(4, "little")
    named: list[int] = []
    of = groups_of(document)
    for g, other in enumerate(parts[o]["other"]):
        members = [k for k, x in enumerate(of) if x == g]
        members.sort(key=lambda k: stream(f"{seed}/{k}", 16))
        free = integer(f"{seed}/{g}", len(members) + 1) if other else 0
        named += members[: other if kind == "fixed" else free]
    return packed(document, o, named)


def plain_items(document: Document) -> list[int]:
    """The items that the last part of tickets sends as they are."""
    chance = document["parts"][-1]["chance"]
    return [i for i, g in enumerate(groups_of(document)) if chance[g]]


def some_reports(document: Document, seed: str, count: int) -> list[bytes]:
    return [some_report(document, f"{seed}/{k}") for k in range(count)]


def edge_reports(document: Document) -> list[bytes]:
    """The first and the last of everything, and what lies one beyond."""
    size = report_size(document)
    found = [stream("length", k) for k in (0, 1, size - 1, size + 1, 2 * size, 64) if k != size]
    if document["encoding"]["kind"] == "ticket":
        return found + edge_tickets(document)
    if document["encoding"]["kind"] == "hits":
        return found + edge_polynomials(document)
    if document["encoding"]["kind"] == "picks":
        return found + edge_picks(document)
    m, parts = len(document["policy"]["items"]), len(document["parts"])
    some = [0, 1, parts - 1] if parts > 1 else [0]
    rows = [[], [0], [1], [m - 1], range(m), range(0, m, 3), range(m // 2)]
    found += [packed(document, o, row) for o in some for row in rows if max(row, default=0) < m]
    for o in some:
        found += near(document, o)
    inner = 8 * (size - (parts > 1))
    found += [packed(document, 0, [k]) for k in range(m, inner)]
    if inner > m:  # with the right sizes, and one bit too many behind
        right = meaning_of_some(document, 0)
        found += [packed(document, 0, [*right, k]) for k in (m, inner - 1)]
        found += [packed(document, 0, range(inner))]
    beyond = [k for k in (parts, 254, 255) if parts <= k < 256] if parts > 1 else []
    rows = [meaning_of_some(document, 0), [], [inner - 1]]
    return found + [packed(document, k, row) for k in beyond for row in rows]


def meaning_of_some(document: Document, part: int) -> list[int]:
    """The items that some acceptable report of the part names."""
    for k in range(100_000):
        reason, o, named = meaning(document, some_report(document, f"some/{k}"))
        if not reason and o == part:
            return named
    raise AssertionError("no report of this part")


def near(document: Document, part: int) -> list[bytes]:
    """A good report of the part, and those with one item of every group more, less or moved."""
    of, named = groups_of(document), meaning_of_some(document, part)
    rows = [named]
    for g in range(max(of) + 1):
        inside = [k for k in named if of[k] == g]
        outside = [k for k, x in enumerate(of) if x == g and k not in named]
        rows += [[k for k in named if k != inside[-1]]] if inside else []
        rows += [[*named, outside[-1]]] if outside else []
        if inside and outside:
            rows.append([*(k for k in named if k != inside[-1]), outside[-1]])
    return [packed(document, part, row) for row in rows]


def edge_tickets(document: Document) -> list[bytes]:
    q, t = document["encoding"]["q"], document["encoding"]["t"]
    all_, parts = q ** (t + 1), len(document["parts"])
    values = {0, 1, q - 1, q, all_ - 1, all_, parts * all_ - 1, parts * all_, parts * all_ + 1}
    values |= {(parts - 1) * all_, 255, 256, 65535, 65536, 2**31 - 1, 2**31, D - 1}
    for other in {x for part in document["parts"][:3] for x in part["other"] if x}:
        values |= {other * q**t - 1, other * q**t, (other - 1) * q**t}  # y_0 around the threshold
    if plain(document["parts"][-1]):  # every item, and the first number that is none
        values |= {(parts - 1) * all_ + k for k in range(len(document["policy"]["items"]) + 1)}
    return [value.to_bytes(4, "little") for value in sorted(values) if value < D]


def edge_polynomials(document: Document) -> list[bytes]:
    """Coefficients up to the last and beyond, and values on both sides of the threshold."""
    p, d, parts = document["encoding"]["prime"], document["padding"] + 2, document["parts"]
    most, zeros = 256 ** residue_size(document) - 1, [0] * d
    found = []
    for o in {0, len(parts) // 2, len(parts) - 1}:
        limit = parts[o]["limit"]
        rows = [zeros, [p - 1] * d, [*zeros[:-1], p - 1], [p - 1, *zeros[:-1]]]
        rows += [[value, *zeros[:-1]] for value in (limit - 1, limit, limit + 1)]
        rows += [[limit - 2, 1, *zeros[:-2]], [limit, p - 1, *zeros[:-2]]]  # limit at 2, 0 at limit
        rows += [[p, *zeros[:-1]], [*zeros[:-1], p], [*zeros[:-1], most], [most] * d]
        found += [polynomial(document, o, [x % (most + 1) for x in row]) for row in rows]
    beyond = [k for k in (len(parts), 254, 255) if len(parts) <= k < 256]
    return found + [polynomial(document, k, row) for k in beyond for row in (zeros, [most] * d)]


def edge_picks(document: Document) -> list[bytes]:
    """The first and the last items, one more and one less, turned and twice, and bits behind."""
    found, parts = [], document["parts"]
    room = 8 * (document["encoding"]["size"] - 1)
    for o, part in enumerate(parts):
        m, k = picks.counts(document, part), part["sizes"]
        usual = [list(range(x)) for x in k]
        for b, (size, many) in enumerate(zip(m, k, strict=True)):
            rows = [list(range(x)) for x in (many, many + 1, max(0, many - 1))]
            rows += [list(range(size - many, size)), list(range(many))[::-1], [0] * many]
            rows += [[*range(many - 1), size], [*range(many - 1), size + 1]]
            found += [
                picks.write(document, o, [*usual[:b], row, *usual[b + 1 :]])
                for row in rows
                if max(row, default=0) < room
            ]
        good = picks.write(document, o, usual)
        used = list(accumulate(picks.bits(document, part)))
        for bit in sorted({0, *used, *(x - 1 for x in used), room - 1}):
            if 0 <= bit < room:
                value = int.from_bytes(good[1:], "little") ^ 1 << bit
                found.append(bytes([o]) + value.to_bytes(room // 8, "little"))
    beyond = [k for k in (len(parts), 254, 255) if k >= len(parts)]
    return found + [bytes([k]) + bytes(room // 8) for k in beyond]


def reports() -> list[Document]:
    found = []
    for name, document in good_mechanisms().items():
        rows = edge_reports(document) + some_reports(document, f"report/{name}", 6)
        for report in dict.fromkeys(rows):
            reason, part, named = meaning(document, report)
            means = {"refused": reason} if reason else {"part": part, "named": named}
            found.append({"mechanism": name, "report": report.hex(), **means})
    return found


# ---- tallies -------------------------------------------------------------------------------------

BLIND = ("three-set-ss", "five-strict-ss")  # one part: it is not told how many hold nothing


def tallies() -> list[Document]:
    good = good_mechanisms()
    count = dict.fromkeys(good, 40) | {"nine-avg-opt1": 2100, "toy-subset": 900, "toy-ticket": 900}
    count |= {"four-hits": 700, "seventy-hits": 90, "toy-each": 300, "three-hits-256-parts": 300}
    count |= {"five-picks": 500, "seventy-picks": 300, "four-picks": 400}
    count |= {"seven-open-ticket": 2500, "six-mixed-subset": 300, "five-scale-subset": 300}
    count |= {"seventy-ticket": 1030, "seventy-subset": 90, "three-256-parts": 600}
    cases = [(name, some_reports(good[name], f"tally/{name}", n)) for name, n in count.items()]
    for name in ("toy-grr", "toy-bits-parts", "seventy-subset", "three-set-ticket", "four-hits",
                 "seventy-hits-wide", "five-picks", "nine-avg-each"):  # fmt: skip
        both = zip(edge_reports(good[name]), some_reports(good[name], f"mixed/{name}", 99))
        cases.append((name, [report for two in both for report in two]))  # good and bad in turn
    alone = [x for x in some_reports(good["toy-subset"], "alone", 30) if x[0] == 1]
    cases += [("toy-subset", alone), ("toy-opt0", [b"\x01"]), ("toy-opt0", []), ("toy-ticket", [])]
    found = []
    for name, rows in cases:
        expect = tally(good[name], rows)
        if name not in BLIND:
            counts = estimate(good[name], expect["part_n"], expect["counts"])
            numbers = [None if x is None else float(x) for x in counts]
            expect["estimate"] = numbers if sum(expect["part_n"]) else None
        found.append({"mechanism": name, "reports": [row.hex() for row in rows], **expect})
    return found


# ---- canonical JSON vectors ----------------------------------------------------------------------


def canonicals() -> list[Document]:
    documents: list[Document] = [
        {},
        {"b": 1, "a": 2, "B": 3, "": 4, "a ": 5, "aa": 6, "_": 7, "10": 8, "9": 9},
        {"list": [], "nested": [[], [1], [[2, [3, "x"]]], {}], "object": {"z": {"y": {"x": []}}}},
        {"numbers": [0, -1, 1, 4294967296, 2147483647, SAFE, -SAFE]},
        {"quotes": 'a "b" c', "backslash": "a\\b\\\\c", "slash": "a/b", "apostrophe": "it's"},
        {"umlaut": "äöüß", "größe": "é", "combining": "e\u0301", "日本語": "日本語", "кот": "سلام"},
        {"astral": "🙂🧪𝒳", "joined": "👩‍⚕️", "private": "\ue000", "last": "\uffff\U0010ffff"},
        {"separators": "\u2028\u2029\u00a0\u00ad\u200b\ufeff", "delete": "\x7f", "c1": "\x80\x9f"},
        {"blanks": " a  b ", "empty": "", "lines": "one\ntwo\r\n\tthree", "html": "<a>&amp;</a>"},
        {"order": ["b", "a", 10, 9, "", "Ä"], "Z": 1, "z": 2, "Ä": 3, "~": 4},
        {"__proto__": {"a": 1}, "constructor": 2, "toString": [3]},
    ]
    good = good_mechanisms()
    documents += [body_of(good[name]) for name in ("nine-avg-opt1", "toy-subset", "toy-ticket",
                                                   "four-hits", "nine-avg-each")]  # fmt: skip
    return [{"document": x, "canonical": canonical(x), "sha256": sha256(x)} for x in documents]


# ---- texts that people read ----------------------------------------------------------------------

INVISIBLE = [
    0xFE0F, 0x34F, 0x3164, 0xFFA0, 0x115F, 0x1160, 0x2800, 0x180B, 0x180F, 0xE0100, 0xE01EF, 0x17B4,
    0x17B5, 0x200C, 0x200D, 0xFE00, 0x200B, 0x2060, 0xAD, 0x61C, 0x202E, 0x2066, 0xFEFF, 0xE0041,
    0xE0000, 0xE0FFF, 0x2065, 0xFFF8, 0x16FE4, 0x1D159, 0x1D173, 0x180E,
]  # fmt: skip
OTHERS = [
    0, 7, 9, 10, 13, 0x1B, 0x1F, 0x20, 0x7F, 0x80, 0x85, 0x9B, 0x9F, 0xA0, 0x2003, 0x202F, 0x3000,
    0x2028, 0x2029, 0xE000, 0xF8FF, 0xFDD0, 0xFFFE, 0x1FFFF, 0xF0000, 0x10FFFD, 0x13430, 0x1345F,
    0x13460, 0x301, 0x378, 0xFFFD, 0x1F642, 0x4E00, 0x5D0, 0x627, 0x915, 0xAC00, 0x2603,
]  # fmt: skip


def texts() -> list[Document]:
    """Alone, at the end and inside."""
    points = [chr(k) for k in (*INVISIBLE, *OTHERS)]
    every = ["", " ", "a", " a ", "  ", *points, *(x for c in points for x in (f"a{c}", f"a{c}b"))]
    return [{"text": x, "label": is_label(x), "question": prose(x)} for x in every]


def is_label(text: str) -> bool:
    try:
        return bool(label(text))
    except Refused:
        return False


def pairs() -> list[Document]:
    """Spellings of one label; of every twin one; and neighbours that are different."""
    one, hidden = "Sexual assault", [chr(k) for k in INVISIBLE if is_label(f"a{chr(k)}")]
    spelled = (
        "sexual assault |SEXUAL  ASSAULT| sexual assault|Ｓexual assault|sexual assаult|"
        "Sехual аssault|ѕexuаl aѕѕault|Sεxυαl αssαυlτ|𝐒exual 𝑎ssault|"
        "sexualassault|sexual assaults|sexual-assault|sexuel assault|séxual assault|"
        "sexua1 assault|5exual assault|s e x u a l assault|assault sexual"
    )
    found = [(one, other) for other in spelled.split("|")]
    found += [(one, x) for c in hidden for x in (f"{one[:3]}{c}{one[3:]}", one + c, c + one)]
    others = (
        "straße|STRASSE;ΟΔΟΣ|οδος;ﬁt|FIT;é|e\u0301;É|\u0415\u0301;HIV|НІV;hiv|НІV;HIV|hіν;"
        "HIV|ΗΙV;вич|ВИЧ;Нет|НЕТ;НЕТ|HET;Нет|HET;ус|үс;Ус|Үс;αβγ|ΑΒΓ;ГОД|ΓΟΔ;ГП|ΓΠ;ёлка|ЁЛКА;"
        "ёлка|елка;İl|i\u0307l;Il|ıl;Il|ll;I|1;l|1;0|O;AI|AL;rn|m;3|З;6|б;①|1;½|1⁄2;"
        "한|\u1112\u1161\u11ab;㎏|KG;カ|ｶ;か|が;می\u200cخواهم|میخواهم;⚕|⚕\ufe0f;ᏸ|Ᏸ;日本|日木;a|ạ;"
        "a b|ab;a  b|a b;ſ|s;ß|ẞ;ǆ|Ǆ;ﬅ|st;\u00b5|\u03bc;\u212a|k;\u212b|å;ᾳ|αι;"
        "ΐ|ι\u0308\u0301;ა|Ა;Ꭰ|ꭰ;ϲat|cat;c|σ;ı|i;\u1680a|a"
    )
    found += [(x, y) for x, _, y in (row.partition("|") for row in others.split(";"))]
    twins = [(letter, twin) for letter, all_ in TWINS.items() for twin in all_]
    found += [*twins, *((f"{x}\u0301x", f"{y}\u0301X") for x, y in twins)]
    good = [(x, y) for x, y in dict.fromkeys(found) if is_label(x) and is_label(y) and x != y]
    return [{"first": x, "second": y, "same": same(x, y)} for x, y in good]


# ---- writing -------------------------------------------------------------------------------------


def rendered() -> dict[str, str]:
    """The text of every file, by its name: a list with one case per line."""
    cases = {
        "mechanisms": mechanisms(), "files": files(), "reports": reports(), "tallies": tallies(),
        "canonical": canonicals(), "texts": texts(), "pairs": pairs(), "surveys": surveys.cases(),
    }  # fmt: skip
    return {
        f"{name}.json": "[\n"
        + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        + "\n]\n"
        for name, rows in cases.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
