"""A mechanism file says what it says: round trips are equal, and nothing in it can be changed unseen."""

import hashlib
import json
import string
from functools import cache

import numpy as np
import pytest
from exhaustive import violations

import discreet as d
from discreet.designs import MODELS
from discreet.errors import (
    DesignError,
    DiscreetError,
    FingerprintError,
    GuaranteeError,
    MechanismError,
)
from discreet.exact import D, P
from discreet.mechanism import Matrix, Mechanism, Part, canonical_json, fingerprint, read_document
from discreet.policy import Budget, Pair, Policy

UNARY = ("mixed", "opt0", "opt1", "opt2", "rappor", "oue")
ROWS = [("ernst – HIV…", "ln(4)", ["HIV ☣", "naïve"]), ("common", 1.9, ["日本", "x"])]


@cache
def example(kind):
    if kind == "pairs":
        pairs = (
            Pair("common", "common", None),
            Pair("common", "ernst – HIV…", Budget.parse("0.7")),
        )
        return Policy.from_levels(ROWS, pairs=pairs, question="Qu’est-ce?")
    return Policy.from_levels(
        ROWS, notion="avg" if kind == "avg" else "min", input="set" if kind == "set" else "single"
    )


@cache
def designed(kind, model, encoding=None, padding=None):
    return d.design(example(kind), model, encoding=encoding, padding=padding)


def signed(body):
    """The document with the fingerprint of its content."""
    body = {key: value for key, value in body.items() if key != "fingerprint"}
    return {**body, "fingerprint": fingerprint(body)}


# ---- save and load -------------------------------------------------------------------------------


def same(mechanism, path):
    mechanism.save(path)
    loaded = Mechanism.load(path)
    assert loaded == mechanism
    assert (
        loaded.fingerprint
        == mechanism.fingerprint
        == json.loads(path.read_text(encoding="utf-8"))["fingerprint"]
    )
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing is left beside it


@pytest.mark.parametrize("kind", ["min", "avg", "pairs"])
@pytest.mark.parametrize("model", MODELS)
def test_round_trip(tmp_path, kind, model):
    same(designed(kind, model), tmp_path / "größe.json")


@pytest.mark.parametrize("encoding", ["bits", "compact"])
@pytest.mark.parametrize("model", UNARY)
def test_round_trip_of_encodings_and_padding(tmp_path, model, encoding):
    same(designed("min", model, encoding), tmp_path / "m.json")
    same(designed("set", model, encoding, 3), tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json").padding == 3


def test_the_file_holds_strings_and_integers_only():
    def leaves(value):
        if isinstance(value, dict):
            value = [*value, *value.values()]
        return (
            [leaf for part in value for leaf in leaves(part)]
            if isinstance(value, list)
            else [value]
        )

    for model in ("mixed", "direct"):
        assert {type(leaf) for leaf in leaves(designed("pairs", model).to_canonical())} == {
            str,
            int,
        }


# ---- the fingerprint -----------------------------------------------------------------------------

VECTOR = (
    b'{"encoding":"bits","format":"discreet-mechanism/1","model":"rappor","padding":0,'
    b'"parts":[{"a":[2863311530],"b":[1431655766],"share":4294967296}],'
    b'"policy":{"input":"single","items":["HIV","gr\xc3\xbcn"],"level_of":[0,0],'
    b'"levels":[{"epsilon":"ln(4)","name":"all","weight":"1"}],"name":"tiny","notion":"min","pairs":[],"question":""},'
    b'"prior":"uniform"}'
)
VECTOR_SHA256 = "8bc0182db92aa71d9c31f23cccc81a929900c3231f49edc9911d97bc1c0cf3f6"


def test_the_fingerprints_test_vector():
    """The canonical JSON, byte by byte: sorted keys, no blanks, UTF-8 unescaped; RAPPOR at ln(4) has a = 2/3, b = 1/3."""
    policy = Policy.from_levels([("all", "ln(4)", ["HIV", "grün"])], name="tiny")
    mechanism = Mechanism(policy, "rappor", "bits", (Part(D, (2863311530,), (1431655766,)),))
    assert canonical_json(mechanism.to_canonical()) == VECTOR
    assert hashlib.sha256(VECTOR).hexdigest() == VECTOR_SHA256
    assert mechanism.fingerprint == VECTOR_SHA256
    shuffled = json.dumps(
        {"fingerprint": VECTOR_SHA256, **dict(reversed(json.loads(VECTOR).items()))}, indent=3
    )
    assert Mechanism.from_document(json.loads(shuffled)) == mechanism
    assert mechanism == d.design(policy, "rappor")


# ---- tampering -----------------------------------------------------------------------------------


def leaves(value, path=()):
    """The path of every number and text of a document."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def changed(document, path, change):
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return copy


def others(old):
    """Other values for a leaf: neighbours, extremes, wrong types."""
    if isinstance(old, int):
        return [old + 1, old - 1, -old, 0, 1, D, D + old, float(old), str(old), None, [old]]
    return [
        old + "x",
        "x",
        "",
        "ln(400)",
        "0.5",
        "common",
        "set",
        "avg",
        "bits",
        "compact",
        "item",
        7,
        None,
        [old],
    ]


SUBJECTS = [
    ("min", "opt0", None, None),
    ("min", "mixed", "compact", None),
    ("avg", "mixed", None, None),
    ("min", "direct", None, None),
    ("pairs", "direct", None, None),
    ("pairs", "opt0", None, None),
    ("set", "mixed", None, 2),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_any_change_is_seen(subject):
    document = signed(designed(*subject).to_canonical())
    paths = [path for path in leaves(document) if path != ("fingerprint",)]
    assert len(paths) > 20
    for path in paths:
        for other in others(0 if isinstance(path[-1], int) else "")[:3]:
            tampered = changed(
                document, path, lambda old, other=other: other if other != old else "else"
            )
            with pytest.raises(FingerprintError) as caught:
                Mechanism.from_document(tampered)
            assert caught.value.expected == document["fingerprint"] != caught.value.got


def outcome(document):
    """The mechanism, or None if it is refused as it should be."""
    try:
        return Mechanism.from_document(document)
    except (GuaranteeError, MechanismError):
        return None


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_a_change_with_a_new_fingerprint_breaks_no_guarantee(subject):
    """Refused, or a different mechanism whose guarantee holds for every report (by enumeration)."""
    original = designed(*subject)
    document = signed(original.to_canonical())
    refused = 0
    for path in leaves(document):
        if path[0] in ("fingerprint", "padding", "encoding") or path == ("policy", "input"):
            continue  # the shape of the whole: below
        old = changed(document, path, lambda old: old)
        for other in others(_at(document, path)):
            loaded = outcome(signed(changed(old, path, lambda _, other=other: other)))
            refused += loaded is None
            if loaded is None or loaded == original:
                continue
            assert loaded.guarantee().holds
            if path[0] not in ("model", "prior", "certificate") and path[:2] != ("policy", "items"):
                assert violations(loaded) == [], (path, other)
    assert refused > 50


def _at(document, path):
    for key in path:
        document = document[key]
    return document


def test_the_enumeration_sees_a_broken_mechanism():
    """The twin: past the check, the enumeration used above does find a violation."""
    good = designed("min", "opt0")
    part = good.parts[0]
    bad = Part(D, (part.A[0], part.A[1] + D // 20), part.B)
    with pytest.raises(GuaranteeError, match="told apart"):
        Mechanism(good.policy, "opt0", "bits", (bad,))
    broken = Mechanism.__new__(Mechanism)
    broken.__dict__.update(good.__dict__, parts_=(bad,))
    assert violations(broken) != []


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        (("min", "opt0"), {"padding": 1}),
        (("set", "opt0", None, 2), {"padding": 0}),
        (("min", "opt0"), {"parts": []}),
        (("min", "direct"), {"encoding": "bits"}),
        (("min", "direct"), {"parts": designed("min", "opt0").to_canonical()["parts"]}),
    ],
    ids=str,
)
def test_pieces_that_do_not_go_together(subject, changes):
    with pytest.raises((GuaranteeError, MechanismError)):
        Mechanism.from_document(signed({**designed(*subject).to_canonical(), **changes}))


@pytest.mark.parametrize("padding", [-1, 65_537, 2.0, "2", True, [2]])
def test_bad_padding_in_a_file(padding):
    document = designed("set", "opt0", None, 2).to_canonical()
    with pytest.raises(MechanismError):
        Mechanism.from_document(signed({**document, "padding": padding}))


@pytest.mark.parametrize("padding", [False, 0.0])
def test_a_file_that_discreet_would_not_write_is_refused(padding):
    document = signed({**designed("min", "opt0").to_canonical(), "padding": padding})
    loaded = outcome(document)
    assert loaded is None or loaded.fingerprint == document["fingerprint"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("model", 5), ("model", "grr"), ("model", "nonsense"), ("prior", 5), ("prior", {})],
)
def test_unknown_models_and_priors_are_refused(key, value):
    """A unary mechanism that calls itself grr, or by a number."""
    with pytest.raises(MechanismError):
        Mechanism.from_document(signed({**designed("min", "opt0").to_canonical(), key: value}))


def test_a_negative_entry_of_a_lone_item_is_refused(toy):
    """No other item of HIV's group exists, so the entry is never used to send, but the estimator subtracts it."""
    good = d.design(toy, "direct").matrix
    off = ((-(2**31), *good.off[0][1:]), *good.off[1:])
    with pytest.raises(GuaranteeError, match="must be 0"):
        Mechanism(toy, "direct", "item", (), Matrix(good.groups, good.diagonal, off))


def test_extra_and_missing_keys():
    document = designed("min", "mixed").to_canonical()
    with pytest.raises(MechanismError, match="would not write"):
        Mechanism.from_document(signed({**document, "note": "hello"}))
    for key in document.keys() - {
        "certificate",
        "parts",
    }:  # without certificate it is complete; parts: above
        with pytest.raises(MechanismError):
            Mechanism.from_document(signed({k: v for k, v in document.items() if k != key}))
    with pytest.raises(FingerprintError):
        Mechanism.from_document(document)


def test_too_many_parts():
    document = designed("min", "opt0").to_canonical()
    part = document["parts"][0]
    many = [{**part, "share": D // 512}] * 512
    with pytest.raises(MechanismError, match="at most 256 parts, got 512"):
        Mechanism.from_document(signed({**document, "parts": many}))
    few = [{**part, "share": D // 256}] * 256
    assert Mechanism.from_document(signed({**document, "parts": few})).guarantee().holds


def test_b_over_another_base_is_refused():
    good = designed("min", "opt0").parts[0]
    with pytest.raises(GuaranteeError, match=f"over {P}"):
        Mechanism(example("min"), "opt0", "compact", (good,))


# ---- the contract of parts, a and b --------------------------------------------------------------


def test_parts_of_unary_mechanisms():
    for model in UNARY:
        for encoding, base in (("bits", D), ("compact", P)):
            mechanism = designed("min", model, encoding)
            assert sum(part.share for part in mechanism.parts) == 1
            for part in mechanism.parts:
                assert part.a == pytest.approx([x / D for x in part.A], rel=0, abs=0)
                assert part.b == pytest.approx([x / base for x in part.B], rel=0, abs=0)
                assert (
                    part.a.dtype == part.b.dtype == np.float64
                    and part.a.shape == part.b.shape == (2,)
                )
                assert part.difference == pytest.approx(part.a - part.b, abs=1e-15)


def test_a_and_b_of_one_part_and_of_grr(toy):
    one = d.design(toy, "opt0")
    assert one.a is one.parts[0].a and one.b is one.parts[0].b
    grr = d.design(toy, "grr")
    assert (grr.a, grr.b) == pytest.approx((4 / 8, 1 / 8), abs=2**-29)
    assert type(grr.a) is type(grr.b) is float


@pytest.mark.parametrize("name", ["a", "b"])
def test_errors_that_say_what_to_use(toy, name):
    mixed = d.design(toy, "mixed")
    assert len(mixed.parts) > 1
    with pytest.raises(
        DesignError, match=rf"has {len(mixed.parts)} parts; use mechanism\.parts\[k\]\.{name}"
    ):
        getattr(mixed, name)
    with pytest.raises(DesignError, match=r"use mechanism\.matrix\.D and \.O"):
        getattr(d.design(toy, "direct"), name)


@pytest.mark.parametrize("model", ["direct", "grr"])
def test_direct_mechanisms_have_no_parts(toy, model):
    with pytest.raises(
        DesignError, match=rf"a {model} mechanism has no parts; use mechanism\.matrix"
    ):
        _ = d.design(toy, model).parts


@pytest.mark.parametrize(("m", "size"), [(1, 1), (7, 1), (8, 1), (9, 2), (16, 2), (17, 3), (26, 4)])
def test_report_size(m, size):
    policy = Policy.from_levels([("a", 1, list(string.ascii_letters[:m]))])
    assert d.design(policy, "opt0").report_size == size
    assert d.design(policy, "opt0", encoding="compact").report_size == 12
    assert d.design(policy, "grr").report_size == d.design(policy, "direct").report_size == 4


def test_several_parts_need_one_byte_more(toy):
    assert d.design(toy, "mixed").report_size == 2
    assert d.design(toy, "mixed", encoding="compact").report_size == 13


# ---- what cannot be constructed, what cannot be read ---------------------------------------------


def test_shapes_that_do_not_go_together(toy):
    part, matrix = d.design(toy, "opt0").parts_, d.design(toy, "grr").matrix
    for arguments in (
        ("opt0", "item", part, None),
        ("opt0", "bits", (), None),
        ("opt0", "bits", part, matrix),
        ("grr", "bits", (), matrix),
        ("opt0", "bits", part, None, 3),
    ):
        with pytest.raises(DesignError):
            Mechanism(toy, *arguments)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"[]", "discreet design"),
        (b"null", "discreet design"),
        (b'{"levels": []}', "discreet design"),
        (b'{"policy": NaN}', "no mechanism has"),
        (b'{"policy": "\\ud800"}', "no mechanism has"),
        (b'{"policy": 1}', "fingerprint"),
    ],
)
def test_unreadable_files(tmp_path, content, sentence):
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(MechanismError, match=sentence):
        Mechanism.load(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(MechanismError, match=r"m\.json does not exist"):
        Mechanism.load(tmp_path / "m.json")
    with pytest.raises(MechanismError, match="cannot be read"):
        read_document(tmp_path)
    with pytest.raises(DiscreetError, match="cannot be written"):
        designed("min", "opt0").save(tmp_path / "missing" / "m.json")
    with pytest.raises(DiscreetError, match="cannot be written"):
        designed("min", "opt0").save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_number_too_long_for_python(tmp_path):
    (tmp_path / "m.json").write_text('{"policy": ' + "9" * 5000 + "}")
    with pytest.raises(MechanismError):
        Mechanism.load(tmp_path / "m.json")


@pytest.mark.parametrize("place", ["weight", "value", "lower_bound"])
def test_a_number_too_large_for_a_float(place):
    document = designed("min", "opt0").to_canonical()
    table = document["policy"]["levels"][0] if place == "weight" else document["certificate"]
    table[place] = 10**400
    with pytest.raises(MechanismError):
        Mechanism.from_document(signed(document))
