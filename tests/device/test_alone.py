"""`pip install discreet` and nothing else: what a participant and an auditor have."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest
from checks import must_fail
from collecting import TOKEN, mechanism, serving, survey
from test_packages import ROOT, built, check_origin, clean, environment, install, needed, run

import discreet as d

pytestmark = pytest.mark.xdist_group("packages")  # they share what is built
VECTORS = ROOT / "tests" / "vectors" / "v2"
NEEDS = {
    "count": 'work on designs, files and counts needs the extra "count"',
    "serve": 'the collector needs the extra "serve"',
}
OWNER = {"Authorization": f"Bearer {TOKEN}"}
assert built  # a fixture

LOAD = """
import json, sys
from pathlib import Path
from discreet import Mechanism
from discreet.errors import DiscreetError

def vectors(name):
    return json.loads((Path(sys.argv[1]) / name).read_text(encoding="utf-8"))

cases = [case for case in vectors("mechanisms.json") if case["expect"] == "ok"]
made = {case["name"]: Mechanism.from_document(case["document"]) for case in cases}
"""


@pytest.fixture(scope="module")
def alone(built, tmp_path_factory):
    python = environment(tmp_path_factory.mktemp("alone"), [])
    install(python, built[1])
    check_origin(python)
    return python


def said(python, code, *arguments):
    """The JSON that a program prints, run by an interpreter that has discreet and click."""
    return json.loads(run([python, "-c", LOAD + code, VECTORS, *arguments], env=clean()))


def discreet(python, *arguments, typed="", **more):
    command = [python.parent / "discreet", *arguments]
    done = subprocess.run(
        command, input=typed, env=clean(**more), capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def test_click_is_all_that_it_needs(built):
    assert needed() == {"click"}
    assert built[1].stat().st_size < 1_000_000


def test_nothing_else_is_there(alone):
    for name in ("numpy", "scipy", "numba", "pyarrow", "cryptography", "rich", "starlette"):
        must_fail(run, [alone, "-c", f"import {name}"], env=clean())


def test_reports_are_refused_and_read_as_the_vectors_say(alone):
    code = """
wrong = []
for case in vectors("reports.json"):
    coder, raw = made[case["mechanism"]].coder, bytes.fromhex(case["report"])
    found = coder.refusal(raw)
    if found != case.get("refused") or (found is None and coder.named(raw) != case["named"]):
        wrong.append(case)
print(json.dumps([len(vectors("reports.json")), wrong]))
"""
    count, wrong = said(alone, code)
    assert count > 100 and wrong == []


def test_every_mechanism_of_the_vectors_promises_the_same_as_here(alone):
    code = """
print(json.dumps({name: [m.fingerprint, m.guarantee().sentences(), m.guarantee().caution]
                  for name, m in made.items()}))
"""
    cases = json.loads((VECTORS / "mechanisms.json").read_text(encoding="utf-8"))
    good = [case for case in cases if case["expect"] == "ok"]
    here = {case["name"]: d.Mechanism.from_document(case["document"]) for case in good}
    told = said(alone, code)
    assert len(told) > 10
    for name, (fingerprint, sentences, caution) in told.items():
        guarantee = here[name].guarantee()
        assert here[name].fingerprint == fingerprint
        assert (sentences, caution) == (guarantee.sentences(), guarantee.caution)


def test_a_notebook_shows_policies_mechanisms_and_promises(alone):
    code = """
print(json.dumps({name: [x._repr_html_() for x in (m.policy, m.guarantee(), m)]
                  for name, m in made.items()}))
"""
    cases = json.loads((VECTORS / "mechanisms.json").read_text(encoding="utf-8"))
    good = [case for case in cases if case["expect"] == "ok"]
    here = {case["name"]: d.Mechanism.from_document(case["document"]) for case in good}
    shown = said(alone, code)
    assert len(shown) > 10
    for name, (policy, guarantee, page) in shown.items():
        mechanism = here[name]
        assert policy == mechanism.policy._repr_html_()
        assert guarantee == mechanism.guarantee()._repr_html_()
        # only the noise is missing, and the page says what to install
        assert "promised factor" in page and "[count]&quot;" in page
        assert "[count]" not in mechanism._repr_html_()


AUDIT = """
import hashlib, os
from discreet.device import perturb

drawn = []
def recorded(size, key=b"first"):
    drawn.append(size)
    return hashlib.shake_128(key + str(len(drawn)).encode()).digest(size)

def answer(mechanism):
    items = mechanism.policy.items
    return set(items[:2]) if mechanism.policy.kind.lists else items[0]

def law(mechanism):
    held = list(range(2 if mechanism.policy.kind.lists else 1))[: mechanism.m]
    return mechanism.coder.law(perturb(mechanism, answer(mechanism)), held)

# not those of one item, or of budgets so large that hardly anything is drawn
drawing = {name: m for name, m in made.items() if max(law(m) for _ in range(20)) < 0.5}

def reports(source):
    os.urandom, found = source, {}
    drawn.clear()
    for name, mechanism in drawing.items():
        found[name] = [perturb(mechanism, answer(mechanism)).hex() for _ in range(40)]
    return found

real = os.urandom
first, again = reports(recorded), reports(recorded)
other = reports(lambda size: recorded(size, b"other"))
secure = reports(real)
print(json.dumps({
    "modules": sorted(name for name in ("random", "secrets", "numpy") if name in sys.modules),
    "same": first == again, "kinds": sorted({m.encoding.kind for m in drawing.values()}),
    "other": [name for name in first if first[name] == other[name]],
    "stuck": [name for name, rows in secure.items() if len(set(rows)) == 1],
}))
"""


def test_all_randomness_is_the_systems(alone):
    """With the same bytes of the system every report is the same, with others another: there is no
    other source. And it is asked anew for every report.
    """
    told = said(alone, AUDIT)
    assert told["modules"] == []  # no other generator is even loaded
    assert told["same"] and told["other"] == [] and told["stuck"] == []
    assert told["kinds"] == ["bits", "each", "fixed", "hits", "picks", "ticket"]


def test_it_answers_at_a_real_collector(alone, tmp_path):
    names = ("bits", "ticket", "set", "each")
    for name in names:
        survey(name).save(tmp_path / f"{name}.json")
    files = [str(tmp_path / f"{name}.json") for name in names]
    home = str(tmp_path / "home")
    with serving(tmp_path, *files) as server:
        for name in names:
            made = survey(name)
            link = f"{server.url}/c/{name}#{made.fingerprint}"
            code, out, err = discreet(alone, "invite", link)
            assert code == 0 and link in out and "[serve]" in err
            policy = made.mechanism.policy
            items = policy.items[: 2 if policy.kind.lists else 1]
            for _ in range(2):
                code, out, err = discreet(
                    alone, "answer", link, "--yes", "--agree", typed="\n".join(items),
                    XDG_DATA_HOME=home,
                )  # fmt: skip
                assert code == 0, (out, err)
            told = httpx.get(f"{server.url}/v1/collections/{name}/estimate", headers=OWNER).json()
            assert told["n"] == 1  # the second time the ledger sent the same report


def test_it_checks_files(alone, tmp_path):
    made = mechanism("ticket")
    made.save(tmp_path / "m.json")
    code, out, _ = discreet(alone, "check", tmp_path / "m.json")
    assert code == 0 and f"OK: the guarantee holds exactly; fingerprint {made.fingerprint}" in out
    document = json.loads((tmp_path / "m.json").read_text())
    document["parts"][0]["own"][0] += 2**28
    (tmp_path / "bad.json").write_text(json.dumps(document))
    code, out, _ = discreet(alone, "check", tmp_path / "bad.json")
    assert code == 1 and "FAILED" in out


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["design", "toy.toml"], "count"),
        (["plan", "toy.toml", "--users", "100"], "count"),
        (["perturb", "m.json", "answers.csv", "-o", "r.parquet"], "count"),
        (["tally", "m.json", "r.parquet", "-o", "t.json"], "count"),
        (["serve", "toy.toml"], "serve"),
        (["demo"], "count"),
    ],
    ids=lambda x: x[0] if isinstance(x, list) else x,
)
def test_what_is_missing_is_one_sentence(alone, tmp_path, command, extra):
    toy = Path(d.__file__).parent / "data" / "toy.toml"
    (tmp_path / "toy.toml").write_text(toy.read_text(encoding="utf-8"))
    mechanism("ticket").save(tmp_path / "m.json")
    done = subprocess.run(
        [alone.parent / "discreet", *command],
        cwd=tmp_path,
        env=clean(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert f'{NEEDS[extra]}: pip install "' in done.stderr and f'[{extra}]"' in done.stderr


def test_the_python_names_say_it_too(alone):
    for name in ("design", "Tally", "Estimate", "simulate", "choose_padding"):
        code = ["import discreet", "try:", f"    discreet.{name}", "except ImportError as error:"]
        told = run([alone, "-c", "\n".join([*code, "    print(error)"])], env=clean())
        assert NEEDS["count"] in told and '[count]"' in told
