"""A mechanism file says what it says: round trips are equal, and nothing in it can be changed."""

import dataclasses
import hashlib
import json
import string
from dataclasses import FrozenInstanceError, replace
from functools import cache

import numpy as np
import pytest
from exhaustive import breaks
from parts import changed, make_part
from strategies import of_kind

import discreet as d
from discreet.check.certificate import Certificate
from discreet.check.document import (
    canonical_json,
    fingerprint,
    is_document,
    read_bytes,
    read_document,
    refuse_strange,
)
from discreet.check.exact import D
from discreet.check.parts import Part
from discreet.designs import MODELS
from discreet.encodings import Bits, Fixed, Ticket
from discreet.errors import (
    DataError,
    DesignError,
    DiscreetError,
    FingerprintError,
    GuaranteeError,
    MechanismError,
)
from discreet.mechanism import Mechanism
from discreet.policy import Budget, Pair, Policy

SINGLE = [model for model in MODELS if model not in ("hits", "each")]
SAMPLED = [model for model in SINGLE if model not in ("grr", "ss")]
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
        ROWS, notion="avg" if kind == "avg" else "min", kind="set" if kind == "set" else "single"
    )


@cache
def designed(kind, model="subset", encoding="fixed", padding=None):
    return of_kind(encoding, example(kind), model, padding=padding)


def signed(body):
    """The document with the fingerprint of its content."""
    body = {key: value for key, value in body.items() if key != "fingerprint"}
    return {**body, "fingerprint": fingerprint(body)}


# ---- save and load ------------------------------------------------------------------------------


def same(mechanism, path):
    mechanism.save(path)
    loaded = Mechanism.load(path)
    written = json.loads(path.read_text(encoding="utf-8"))
    assert loaded.fingerprint == mechanism.fingerprint == written["fingerprint"]
    assert loaded.to_document() == mechanism.to_document() == written
    assert loaded.parts == mechanism.parts and loaded.shares == mechanism.shares
    assert loaded.encoding == mechanism.encoding and loaded.groups == mechanism.groups
    assert loaded.policy.to_canonical() == mechanism.policy.to_canonical()
    assert loaded.expected_mse() == mechanism.expected_mse()
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing is left beside it
    assert is_document(path)


@pytest.mark.parametrize("kind", ["min", "avg", "pairs"])
@pytest.mark.parametrize("model", SINGLE)
def test_round_trip(tmp_path, kind, model):
    same(designed(kind, model), tmp_path / "größe.json")


@pytest.mark.parametrize("encoding", ["fixed", "bits", "ticket"])
@pytest.mark.parametrize("model", SAMPLED)
def test_round_trip_of_encodings_and_padding(tmp_path, model, encoding):
    same(designed("min", model, encoding), tmp_path / "m.json")
    same(designed("set", model, encoding, 3), tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json").padding == 3


def test_round_trip_of_hits_and_each(tmp_path):
    same(d.design(example("set"), padding=3), tmp_path / "m.json")
    same(d.design(replace(example("set"), strict=True), padding=2), tmp_path / "m.json")
    same(d.design(replace(example("set"), kind="each")), tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json").padding is None


def test_weights_are_not_in_the_file(tmp_path):
    """They decide the design; nobody who reads it needs them."""
    rows = [(*row, weight) for row, weight in zip(ROWS, (3, 0.5))]
    mechanism = d.design(Policy.from_levels(rows))
    assert '"weight"' not in json.dumps(mechanism.to_document())
    same(mechanism, tmp_path / "m.json")


def test_people_can_read_the_labels_in_the_file(tmp_path):
    designed("min").save(tmp_path / "m.json")
    raw = (tmp_path / "m.json").read_bytes()
    assert "HIV ☣".encode() in raw and b"\\u" not in raw and raw.endswith(b"}\n")


def test_the_file_holds_strings_and_integers_only():
    def leaves(value):
        if isinstance(value, dict):
            value = [*value, *value.values()]
        if isinstance(value, list):
            return [leaf for part in value for leaf in leaves(part)]
        return [value]

    for kind, encoding, padding in (("pairs", "fixed", None), ("set", "ticket", 2)):
        document = designed(kind, "subset", encoding, padding).to_document()
        found = {type(leaf) for leaf in leaves(document)}
        assert found == {str, int} | ({bool} if kind == "set" else set())  # strict


# ---- the fingerprint ----------------------------------------------------------------------------

VECTOR = (
    b'{"encoding":{"kind":"bits"},"format":"discreet-mechanism/3","groups":[0],"model":"rappor",'
    b'"padding":0,"parts":[{"chance":[4294967296],"other":[1431655766],"own":[2863311530]}],'
    b'"policy":{"items":["HIV","gr\xc3\xbcn"],"kind":"single","level_of":[0,0],'
    b'"levels":[{"epsilon":"ln(4)","name":"all"}],"notion":"min","pairs":[],'
    b'"question":""},"prior":"uniform","shares":[4294967296]}'
)
VECTOR_SHA256 = "3d01b48a72c0046e28230dcfd257decc5f513b49a82fb481abd978e87d76ddcc"


def test_the_fingerprints_test_vector():
    """Sorted keys, no blanks, UTF-8 unescaped; RAPPOR at ln(4) has a = 2/3, b = 1/3."""
    policy = Policy.from_levels([("all", "ln(4)", ["HIV", "grün"])])
    part = make_part((D,), (2863311530,), (1431655766,), None, (D,), (0,))
    mechanism = Mechanism(policy, "rappor", Bits(), (0,), (part,), (D,))
    assert canonical_json(mechanism.to_canonical()) == VECTOR
    covered = VECTOR.replace(b'"model":"rappor",', b"").replace(b'"prior":"uniform",', b"")
    assert hashlib.sha256(covered).hexdigest() == VECTOR_SHA256
    assert mechanism.fingerprint == VECTOR_SHA256 == mechanism.to_document()["fingerprint"]
    shuffled = json.dumps(
        {"fingerprint": VECTOR_SHA256, **dict(reversed(json.loads(VECTOR).items()))}, indent=3
    )
    assert Mechanism.from_document(json.loads(shuffled)) == mechanism
    found = d.design(policy, "rappor").parts[0]
    assert found.ints.own[0] == 2863311530 and abs(found.ints.other[0] - 1431655766) <= 1


# ---- nothing can be changed ---------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["fixed", "bits", "ticket"])
def test_no_attribute_can_be_set(encoding):
    mechanism = designed("min", "subset", encoding)
    for thing, names in (
        (mechanism, ("policy", "parts", "groups", "shares", "padding", "encoding", "new")),
        (mechanism.parts[0], ("ints", "denominators", "groups")),
        (mechanism.certificate, ("value", "lower_bound")),
        (mechanism.encoding, ("q", "kind")),
        (mechanism.policy, ("levels", "items", "notion")),
        (mechanism.policy.levels[0], ("budget",)),
    ):
        for name in names:
            with pytest.raises(FrozenInstanceError):
                setattr(thing, name, 1)
    with pytest.raises(FrozenInstanceError):
        del mechanism.parts


@pytest.mark.parametrize("kind", ["min", "set"])
@pytest.mark.parametrize("encoding", ["fixed", "bits", "ticket"])
def test_no_array_can_be_written(kind, encoding):
    mechanism = designed(kind, "subset", encoding, 2 if kind == "set" else None)
    part = mechanism.parts[0]
    names = ("chance", "own", "other", "difference", "level_of", "group_of", "level_sizes")
    for name in (*names, "group_sizes"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(mechanism.arrays, name)[0] = 0
    for numbers in (
        part.ints.chance,
        part.ints.own,
        part.ints.other,
        mechanism.groups,
        mechanism.shares,
    ):
        assert type(numbers) is tuple


def test_what_is_passed_in_is_copied():
    """Lists that are changed after construction change nothing: the check would not see it."""
    good = designed("min", "opt0", "bits")
    rows = [list(getattr(good.parts[0].ints, key)) for key in ("chance", "own", "other")]
    groups, shares, over = list(good.groups), list(good.shares), list(good.parts[0].denominators)
    parts = [make_part(*rows, None, over, groups)]
    mechanism = Mechanism(good.policy, "opt0", Bits(), groups, parts, shares)
    before = mechanism.fingerprint
    for row in (*rows, groups, shares, over):
        row[0] = 0
    parts.clear()
    again = replace(mechanism)
    assert again.fingerprint == before and again.guarantee().holds
    assert mechanism.parts[0].ints.own == good.parts[0].ints.own


def test_a_document_is_a_copy():
    mechanism = designed("min")
    before = mechanism.fingerprint
    mechanism.to_document()["parts"][0]["chance"][0] = 0
    mechanism.to_canonical()["groups"][0] = 7
    assert fingerprint(mechanism.to_canonical()) == before


# ---- tampering ----------------------------------------------------------------------------------


def leaves(value, path=()):
    """The path of every number and text of a document."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def altered(document, path, change):
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return copy


def others(old):
    """Other values for a leaf: neighbours, extremes, wrong types."""
    if isinstance(old, int):
        return [old + 1, old - 1, -old, 0, 1, D, D + old, old + 0.5, str(old), None, [old], True]
    return [
        old + "x", "x", "", "ln(400)", "0.5", "common", "set", "avg", "bits", "ticket", "fixed",
        7, None, [old],
    ]  # fmt: skip


SUBJECTS = [
    ("min", "opt0", "bits", None),
    ("min", "subset", "ticket", None),
    ("avg", "subset", "fixed", None),
    ("pairs", "subset", "bits", None),
    ("pairs", "opt0", "bits", None),
    ("set", "subset", "fixed", 2),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_any_change_is_seen(subject):
    document = designed(*subject).to_document()
    story = ("fingerprint", "model", "prior", "certificate")
    paths = [path for path in leaves(document) if path[0] not in story]
    assert len(paths) > 15
    for path in paths:
        for other in (0, 1, "x"):
            tampered = altered(
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


def _at(document, path):
    for key in path:
        document = document[key]
    return document


WORDS = ("model", "prior", "certificate", "shares")  # nothing that a report depends on


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_a_change_with_a_new_fingerprint_breaks_no_guarantee(subject):
    """Refused, or another mechanism whose guarantee holds for every report (by enumeration)."""
    original = designed(*subject)
    document = original.to_document()
    refused = 0
    for path in leaves(document):
        if path[0] == "fingerprint":
            continue
        for other in others(_at(document, path)):
            loaded = outcome(signed(altered(document, path, lambda _, other=other: other)))
            refused += loaded is None
            if loaded is None or loaded == original:
                continue
            assert loaded.guarantee().holds
            if path[0] not in WORDS and path[1:2] not in (("items",), ("name",), ("question",)):
                assert not breaks(loaded.to_document()), (path, other)
    assert refused > 50


def test_the_enumeration_sees_a_broken_mechanism():
    """The twin: past the check, the enumeration used above does find a violation."""
    good = designed("min", "opt0", "bits")
    part = good.parts[0]
    own = (part.ints.own[0], part.ints.own[1] + D // 20)
    with pytest.raises(GuaranteeError, match="told apart"):
        replace(good, parts=[changed(part, own=own)])
    document = good.to_document()
    document["parts"][0]["own"] = list(own)
    assert breaks(document)


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        (("min", "opt0", "bits"), {"padding": 1}),
        (("set", "opt0", "bits", 2), {"padding": 0}),
        (("min", "opt0", "bits"), {"parts": []}),
        (("min", "opt0", "bits"), {"encoding": {"kind": "fixed"}}),
        (("min",), {"encoding": {"kind": "bits"}}),
        (("min",), {"encoding": {"kind": "ticket", "q": 2, "t": 2}}),
        (("min",), {"groups": [1, 0]}),
        (("min",), {"shares": [D, D]}),
        (("min",), {"shares": [D]}),
        (("min",), {"format": "discreet-mechanism/1"}),
    ],
    ids=str,
)
def test_pieces_that_do_not_go_together(subject, changes):
    with pytest.raises((GuaranteeError, MechanismError)):
        Mechanism.from_document(signed({**designed(*subject).to_canonical(), **changes}))


@pytest.mark.parametrize("padding", [-1, 65_537, 2.5, "2", True, [2], None, 10**400])
def test_bad_padding_in_a_file(padding):
    document = designed("set", "opt0", "bits", 2).to_canonical()
    with pytest.raises(MechanismError):
        Mechanism.from_document(signed({**document, "padding": padding}))


@pytest.mark.parametrize("padding", [False, 0.0, None, "", []])
def test_a_file_that_discreet_would_not_write_is_refused(padding):
    document = signed({**designed("min").to_canonical(), "padding": padding})
    with pytest.raises(MechanismError):
        Mechanism.from_document(document)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", 5),
        ("model", "Mixed"),
        ("model", "a" * 21),
        ("model", "opt0\n"),
        ("model", ""),
        ("prior", 5),
        ("prior", {}),
        ("prior", "best"),
    ],
)
def test_models_without_a_name_and_unknown_priors_are_refused(key, value):
    with pytest.raises(MechanismError):
        Mechanism.from_document(signed({**designed("min").to_canonical(), key: value}))


def test_extra_and_missing_keys():
    document = designed("min").to_canonical()
    with pytest.raises(MechanismError, match="would not write"):
        Mechanism.from_document(signed({**document, "note": "hello"}))
    for key in document:
        short = signed({k: v for k, v in document.items() if k != key})
        if key == "certificate":  # without it the mechanism is complete
            assert Mechanism.from_document(short).certificate is None
        else:
            with pytest.raises(MechanismError):
                Mechanism.from_document(short)
    first, *rest = document["parts"]
    for part in ({"chance": first["chance"]}, {**first, "share": 1}, [], None, "x"):
        with pytest.raises(MechanismError):
            Mechanism.from_document(signed({**document, "parts": [part, *rest]}))
    with pytest.raises(FingerprintError):
        Mechanism.from_document(document)


def test_too_many_parts():
    document = designed("min", "opt0", "bits").to_canonical()
    part = document["parts"][0]

    def split(count):
        return {**document, "parts": [{**part, "chance": [D // count] * 2}] * count}

    with pytest.raises(MechanismError, match="1 to 256 parts, got 512"):
        Mechanism.from_document(signed(split(512)))
    assert Mechanism.from_document(signed(split(256))).guarantee().holds


# ---- the certificate ----------------------------------------------------------------------------


def test_a_certificate_comes_back():
    for certificate in (
        Certificate(3.5682656927, 3.56826469),
        Certificate(3.5, None, "not proved – why"),
        Certificate(0.0, 0.0),
        Certificate(123456789012.0, 1e-7),
    ):
        raw = certificate.to_canonical()
        assert all(type(x) is str for x in raw.values())
        assert Certificate.from_canonical(raw) == certificate


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("value", ""), ("value", "1.50"), ("value", "01"), ("value", "-1"), ("value", "1e3"),
        ("value", "inf"), ("value", "1."), ("value", ".5"), ("value", 3),
        ("value", "1.2345678901234"), ("value", True),
        ("lower_bound", "nan"), ("lower_bound", None), ("note", None), ("note", "x" * 401),
        ("note", "a\nb"), ("value", "9" * 31), ("more", "x"),
    ],
)  # fmt: skip
def test_bad_certificates_are_refused(key, text):
    document = designed("min").to_canonical()
    document["certificate"] = {**document["certificate"], key: text}
    with pytest.raises(MechanismError):
        Mechanism.from_document(signed(document))


def test_a_certificate_is_three_texts():
    """Refused by its own reader, too, whatever else looks at the file."""
    good = {"value": "2", "lower_bound": "", "note": ""}
    assert Certificate.from_canonical(good) == Certificate(2.0, None)
    for bad in ({**good, "more": "x"}, {**good, "value": 2}, {"value": "2", "note": ""}, {}):
        with pytest.raises(ValueError, match="^certificate$"):
            Certificate.from_canonical(bad)


def test_what_a_certificate_says():
    assert Certificate(1.0, 1.0).sentence == "the best possible for this guarantee and prior"
    told = Certificate(1.02, 1.0, "up to 14").sentence
    assert told == "2 % above the best possible for this guarantee and prior (up to 14)"
    assert Certificate(1.0, None, "too many").sentence == "not certified (too many)"
    assert Certificate(1.0, None).gap is None
    assert Certificate(0.0, 0.0).gap == 0.0
    assert Certificate(1.0, 1.1).gap == 0.0
    assert Certificate(1.5, 1.0).sentence.startswith("50.0 % above")


@pytest.mark.parametrize(
    ("certificate", "gap", "told"),
    [
        (Certificate(5e-13, 0.0), 0.0, "the best possible"),  # no error but the floats'
        (Certificate(2e-12, 0.0), None, "not certified"),  # a bound of 0 says nothing
        (Certificate(1.0, -1.0), None, "not certified"),
        (Certificate(1 + 4e-7, 1.0), 4e-7, "the best possible"),
        (Certificate(1 + 6e-7, 1.0), 6e-7, "less than 0.001 % above the best possible"),
        (Certificate(2 + 18e-6, 2.0), 9e-6, "less than 0.001 % above the best possible"),
        (Certificate(1 + 1.1e-5, 1.0), 1.1e-5, "0.0011 % above the best possible"),
        (Certificate(0.1099, 0.1), 0.099, "9.9 % above the best possible"),
        (Certificate(2.22, 2.0), 0.11, "11.0 % above the best possible"),
    ],
)
def test_how_far_a_certificate_says_it_is(certificate, gap, told):
    assert certificate.gap == (None if gap is None else pytest.approx(gap, rel=1e-6))
    assert certificate.sentence == told + (
        " for this guarantee and prior" if gap is not None else ""
    )


def test_a_story_gives_nobody_a_fingerprint_of_her_own():
    """How a mechanism was found is not covered, so it cannot tell invitees apart; all that promise
    and counts depend on is.
    """
    mechanism = designed("min")
    other = mechanism.certified(Certificate(1.0, None, "for Ann"))
    assert other.fingerprint == mechanism.fingerprint and other != mechanism
    document = mechanism.to_document()
    for key, told in (("model", "ann"), ("prior", "given"), ("certificate", None)):
        another = {**document, key: told}
        if told is None:
            del another[key]
        assert Mechanism.from_document(another).fingerprint == mechanism.fingerprint
        assert another != document
    for key in set(document) - {"fingerprint", "model", "prior", "certificate"}:
        with pytest.raises(FingerprintError):
            Mechanism.from_document({**document, key: [document[key]]})


# ---- the contract of parts, a and b -------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["fixed", "bits", "ticket"])
def test_floats_of_parts(encoding):
    for model in ("subset", "opt0", "oue") if encoding != "fixed" else ("subset", "grr", "ss"):
        mechanism = designed("min", model, encoding)
        groups = np.array(mechanism.groups)
        assert np.sum([part.chance for part in mechanism.parts], axis=0) == pytest.approx(
            [1, 1], abs=1e-15
        )
        for part in mechanism.parts:
            over = np.array(mechanism.denominators, dtype=float)
            assert list(part.chance) == (np.array(part.ints.chance) / D)[groups].tolist()
            assert list(part.own) == (np.array(part.ints.own) / D)[groups].tolist()
            assert list(part.other) == (np.array(part.ints.other) / over)[groups].tolist()
            gap = np.subtract(part.by_group.own, part.by_group.other)
            assert part.by_group.difference == pytest.approx(gap, abs=1e-15)


def test_denominators():
    for encoding, expected in ((Fixed(), (2, 2)), (Bits(), (D, D)), (Ticket(5, 2), (5, 5))):
        mechanism = designed("min", "subset", encoding.kind)
        assert mechanism.encoding == encoding and mechanism.denominators == expected
    plain = designed("min", "ss")
    assert plain.groups == (0, 0) and plain.denominators == plain.group_sizes == (4,)
    arrays = plain.arrays
    assert arrays.group_of.tolist() == [0] * 4 and arrays.level_of.tolist() == [0, 0, 1, 1]


def test_a_and_b_of_one_part(toy):
    one = d.design(toy, "opt0")
    assert tuple(one.a) == one.parts[0].own and tuple(one.b) == one.parts[0].other
    grr = d.design(toy, "grr")
    assert grr.a == pytest.approx([4 / 8] * 2, abs=1e-7) and grr.b.tolist() == [1 / 5] * 2


@pytest.mark.parametrize("name", ["a", "b"])
def test_errors_that_say_what_to_use(toy, name):
    mechanism = d.design(toy)
    assert len(mechanism.parts) > 1
    with pytest.raises(
        DesignError, match=rf"has {len(mechanism.parts)} parts.*use mechanism\.parts\[k\]\.chance"
    ):
        getattr(mechanism, name)


@pytest.mark.parametrize(("m", "size"), [(1, 1), (7, 1), (8, 1), (9, 2), (16, 2), (17, 3), (26, 4)])
def test_report_size(m, size):
    policy = Policy.from_levels([("a", 1, list(string.ascii_letters[:m]))])
    assert d.design(policy, "opt0").report_size == d.design(policy, "grr").report_size == size
    assert d.design(policy, "opt0", encoding="ticket").report_size == 4


def test_several_parts_need_one_byte_more(toy):
    assert d.design(toy).report_size == 2
    assert of_kind("ticket", toy).report_size == 4


def test_what_a_large_set_is_counted_with():
    """1 up to the padding, then padding / (number of items); single answers are never cut."""
    sets, one = designed("set", padding=3), designed("min")
    assert sets.arrays.counted(np.array([0, 1, 2, 3, 4, 6, 30])).tolist() == [
        1,
        1,
        1,
        1,
        0.75,
        0.5,
        0.1,
    ]
    first = designed("set", padding=1).arrays.counted(np.array([0, 1, 2, 4])).tolist()
    assert first == [1, 1, 0.5, 0.25]
    assert (
        one.arrays.counted(np.array([0, 1, 5])).tolist() == [1, 1, 1] and one.arrays.counted(1) == 1
    )
    assert (sets.scale, one.scale) == (3, 1)
    assert d.design(example("set"), "hits", padding=3).scale == 1  # nothing is sampled


def test_what_a_mechanism_does_by_itself():
    mechanism = designed("min")
    assert mechanism.coder.refusal(mechanism.perturb("x")) is None
    rows = mechanism.perturb_many([0, 3])
    assert rows.shape == (2, mechanism.report_size)
    assert mechanism.tally(rows).n == 2 and mechanism.tally().n == 0
    assert mechanism.tally(rows, [2, 5]).n == 7
    assert mechanism.guarantee().holds and mechanism.coder is mechanism.coder
    assert mechanism.worst_case_mse == mechanism.expected_mse("worst") > mechanism.expected_mse()
    assert "model subset" in mechanism._repr_html_()


def test_whole_numbers_are_places_only_if_that_is_said_where_labels_look_like_them():
    mechanism = d.design(Policy.from_levels([("a", 1, ["1", "2"])]))
    with pytest.raises(DataError, match="1 may be a label or an index"):
        mechanism.perturb_many([1, 0])
    assert mechanism.tally(mechanism.perturb_many([1, 0], indices=True)).n == 2


# ---- what cannot be constructed, what cannot be read --------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"padding": 3}, {"parts": ()}, {"model": "no name"}, {"prior": "best"}, {"shares": (D,)},
        {"shares": (D - 1, 0)}, {"shares": (D + 1, -1)}, {"shares": (D / 2, D / 2)},
        {"shares": (True, D - 1)}, {"encoding": Ticket(2, 2)}, {"groups": (0,)}, {"groups": (0, 0)},
    ],
    ids=str,
)  # fmt: skip
def test_shapes_that_do_not_go_together(changes):
    with pytest.raises(DesignError):
        replace(designed("min", "opt0", "bits"), **changes)


def test_shares_of_nobody_are_allowed():
    """Only the estimates use them; a share of 0 says that nobody is expected there."""
    mechanism = replace(designed("min"), shares=(0, D))
    assert np.isfinite(mechanism.expected_mse())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a mechanism file"),
        (b"\xff\xfe{", "not a mechanism file"),
        (b'{"policy": ', "not a mechanism file"),
        (b"[" * 200_000, "not a mechanism file"),
        (b'[[level]]\nname = "all"\n', "is a policy; make a mechanism of it with: discreet design"),
        (b"[]", "JSON object"),
        (b"null", "JSON object"),
        (b'{"levels": []}', "discreet design"),
        (b'{"policy": NaN}', "not a mechanism file"),
        (b'{"policy": 1.5}', "holds 1.5"),
        (b'{"policy": 1e400}', "holds inf"),
        (b'{"policy": 9007199254740992}', "holds 9007199254740992"),
        (b'{"policy": "\\ud800"}', "no mechanism has"),
        (b'{"policy": 1}', "fingerprint"),
        (b'{"policy": true}', "fingerprint"),
    ],
)
def test_unreadable_files(tmp_path, content, sentence):
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(MechanismError, match=sentence) as caught:
        Mechanism.load(path)
    assert "\n" not in str(caught.value)
    assert is_document(path) is False


def test_numbers_are_doubles():
    assert read_bytes(b'\xef\xbb\xbf{"a": [2.0, 2e0, -0, -0.0, 200e-2]}') == {"a": [2, 2, 0, 0, 2]}
    found = read_bytes(b'{"a": [9007199254740991, -9007199254740991, 9007199254740992, 1e300]}')
    assert found == {"a": [2**53 - 1, 1 - 2**53, 2.0**53, 1e300]}
    assert [type(x) for x in found["a"]] == [int, int, float, float]  # not whole beyond 2^53


@pytest.mark.parametrize("strange", [1.5, 2**53, -(2**53), b"x", ("x",)], ids=str)
def test_nothing_strange_hides_in_lists_and_objects(strange):
    for place in (strange, [1, strange], [[strange]], {"a": strange}, [{"a": [strange]}]):
        with pytest.raises(MechanismError, match="which no mechanism does"):
            refuse_strange({"policy": place})
    with pytest.raises(MechanismError, match="which no mechanism does"):
        refuse_strange({strange: "a key"})
    refuse_strange({"policy": ["x", None, True, 0, 2**53 - 1, 1 - 2**53, {"a": [1]}]})


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_a_hundred_deep_and_no_deeper(wrap):
    deep = 1
    for _ in range(100):
        deep = wrap(deep)
    refuse_strange(deep)
    with pytest.raises(MechanismError, match="nested more than 100 deep"):
        refuse_strange(wrap(deep))


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(MechanismError, match=r"m\.json does not exist"):
        Mechanism.load(tmp_path / "m.json")
    with pytest.raises(MechanismError, match="cannot be read"):
        read_document(tmp_path)
    with pytest.raises(DiscreetError, match="cannot be written"):
        designed("min").save(tmp_path / "missing" / "m.json")
    with pytest.raises(DiscreetError, match="cannot be written"):
        designed("min").save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_number_too_long_for_python(tmp_path):
    (tmp_path / "m.json").write_text('{"policy": ' + "9" * 5000 + "}")
    with pytest.raises(MechanismError):
        Mechanism.load(tmp_path / "m.json")


@pytest.mark.parametrize("depth", [300, 700, 900, 950, 980, 1000, 5000])
def test_deep_documents_are_one_sentence(depth):
    with pytest.raises(MechanismError):
        Mechanism.from_document(read_bytes(b'{"policy":' + b"[" * depth + b"]" * depth + b"}"))


def test_a_part_cannot_bring_its_own_bases():
    """1,000 items, one of them named: with a lying base of 2 the check saw a factor of 1."""
    items = [f"i{k}" for k in range(1000)]
    policy = Policy.from_levels([("a", 1, items)])
    honest = d.design(policy, "grr")
    lying = make_part((D,), (D // 2,), (1,), None, (2,), (0,))
    with pytest.raises(DesignError, match="is not one of this policy and the encoding"):
        replace(honest, parts=(lying,))
    with pytest.raises(GuaranteeError):
        replace(honest, parts=(replace(lying, denominators=(1000,)),))


@pytest.mark.parametrize("change", [{"denominators": (3, 4)}, {"groups": (1, 0)}, {"groups": (0,)}])
def test_a_part_is_of_its_mechanism(change):
    honest = designed("min")
    assert honest.parts[0].groups == honest.groups
    with pytest.raises(DesignError, match="of another mechanism"):
        replace(honest, parts=(replace(honest.parts[0], **change), *honest.parts[1:]))


def test_a_part_of_hits_cannot_bring_its_own_prime():
    policy = Policy.from_levels([("a", 1, ["x", "y", "z"])], kind="set")
    honest = d.design(policy, "hits", padding=2)
    lying = replace(honest.parts[0], prime=honest.encoding.prime + 6)
    for part in (lying, replace(honest.parts[0], groups=(1,)), "no part", designed("min").parts[0]):
        with pytest.raises(DesignError, match="of another mechanism"):
            replace(honest, parts=(part,))


def test_a_part_cannot_say_one_thing_to_the_check_and_do_another():
    honest = designed("min")

    class Lying(Part):
        @property
        def chances(self):
            return honest.parts[0].ints

    fields = (getattr(honest.parts[0], f.name) for f in dataclasses.fields(Part))
    with pytest.raises(DesignError, match="of another mechanism"):
        replace(honest, parts=(Lying(*fields), *honest.parts[1:]))


def test_no_certificate_is_below_its_own_bound():
    below = Certificate(1.0, 1.0 + 1e-9)
    with pytest.raises(ValueError, match="less error than its own lower bound"):
        Certificate.from_canonical({"value": "1", "lower_bound": "1.00000000001", "note": ""})
    assert Certificate.from_canonical(below.to_canonical()) == Certificate(1.0, 1.0)


def test_a_padding_that_was_named_is_part_of_the_policy():
    policy = Policy.from_levels([("a", 1, ["x", "y", "z"])], kind="set", padding=2)
    assert d.design(policy).differences(policy) == []
    assert d.design(policy, padding=3).differences(policy) == ["padding is 3, not 2"]
    assert d.design(policy, padding=3).differences(replace(policy, padding=None)) == []
    assert d.design(policy, padding=3).differences(replace(policy, padding=3)) == []
    assert d.design(policy).differences(replace(policy, padding=5)) == ["padding is 2, not 5"]
    named = replace(d.design(policy, padding=3), policy=policy)  # its policy still names another
    assert named.differences(replace(policy, padding=3)) == []
    assert named.differences(replace(policy, padding=5)) == ["padding is 3, not 5"]


@pytest.mark.parametrize("padding", [-3, 0, True, 2.5, 10**9])
def test_a_padding_is_one_however_a_mechanism_is_made(padding):
    policy = Policy.from_levels([("a", 1, ["x", "y", "z"])], kind="set")
    with pytest.raises(DiscreetError, match="padding = .* must be a whole number"):
        replace(d.design(policy, "opt0", padding=2), padding=padding)


def test_what_a_mechanism_is_made_of_is_discreets_own():
    """Nothing that says one thing to the check and another to the file."""
    honest = designed("min")

    class Silent(Fixed):
        def check(self, policy, groups, parts):
            return None

    class Other(Policy):
        pass

    with pytest.raises(DesignError, match="must be one of discreet's own"):
        replace(honest, encoding=Silent())
    fields = {f.name: getattr(honest.policy, f.name) for f in dataclasses.fields(Policy)}
    with pytest.raises(DesignError, match="a mechanism needs a Policy, got Other"):
        replace(honest, policy=Other(**fields))


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.int32, float, bool])
def test_parameters_of_an_encoding_are_plain_integers(kind):
    """numpy's would overflow in silence where the check multiplies."""
    good = d.design(d.Policy.from_budgets({"a": 1, "b": 2}), "opt0", encoding="ticket")
    wrong = replace(good.encoding, q=kind(good.encoding.q))
    with pytest.raises(DesignError, match="whole numbers of Python's own kind"):
        replace(good, encoding=wrong)


def test_nobody_changes_a_policy_through_what_it_returns():
    policy = d.Policy.from_budgets({"a": 1, "b": 2, "c": 2})
    weak = d.design(d.Policy.from_budgets({"a": 9, "b": 8, "c": 8}), "opt1")
    policy.explicit.update({(i, j): None for i in (0, 1) for j in (0, 1)})
    with pytest.raises(GuaranteeError):
        replace(weak, policy=policy)
