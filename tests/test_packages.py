"""What strangers install: the wheel, the sdist, the npm package and the image, each made from a
copy of the files and used outside of the repository.
"""

import fnmatch
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from checks import must_fail
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import discreet as d
from discreet.device import Ledger

ROOT = Path(__file__).parent.parent
MODULE = ROOT / "src" / "discreet" / "collector" / "static" / "discreet.js"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NODE, NPM = shutil.which("node"), shutil.which("npm")
IMAGE = 10001  # the user of the image
# what tools leave in a folder, and what a collector keeps
LITTER = ("*.pyc", "__pycache__", "*.sqlite*", "*.token", "*.csv", "*.parquet", "*.egg-info",
          "node_modules", ".*_cache", ".hypothesis", ".venv", "_build", "*.tgz")  # fmt: skip

pytestmark = pytest.mark.xdist_group("packages")  # they share what is built
needs_npm = pytest.mark.skipif(
    NODE is None or NPM is None, reason="node and npm are not installed: no JavaScript package"
)


def run(command, timeout=120, **options):
    """What a command prints; it must succeed."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=timeout,
        **options,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def clean(**more):
    """The environment without what would lead Python back to the repository."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1", **more}


# ---- the wheel and the sdist ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, the wheel made from it, and the wheel made from the repository."""
    folder = tmp_path_factory.mktemp("built")
    tool = [sys.executable, "-m", "build", "--no-isolation", "--outdir"]
    run([*tool, folder / "both", ROOT], env=clean())
    run([*tool, folder / "wheel", "--wheel", ROOT], env=clean())
    ((sdist,), (wheel,)) = (list((folder / "both").glob(f"*.{x}")) for x in ("tar.gz", "whl"))
    (direct,) = (folder / "wheel").iterdir()
    return sdist, wheel, direct


def litter(names):
    """Which of these files should not be in a package."""
    return [
        x for x in names if any(fnmatch.fnmatch(part, p) for part in x.split("/") for p in LITTER)
    ]


def test_the_sdist_builds_into_the_same_wheel(built):
    _, wheel, direct = built
    assert wheel.name == direct.name == f"discreet-{d.__version__}-py3-none-any.whl"
    assert wheel.read_bytes() == direct.read_bytes()


def test_the_wheel_holds_the_package_and_nothing_else(built):
    source = ROOT / "src" / "discreet"
    kept = {
        f"discreet/{path.relative_to(source).as_posix()}": path
        for path in source.rglob("*")
        if path.is_file() and not litter([path.relative_to(source).as_posix()])
    }
    del kept["discreet/conftest.py"]  # for the examples in docstrings
    with zipfile.ZipFile(built[1]) as wheel:
        inside = {x for x in wheel.namelist() if not x.startswith("discreet-")}
        assert inside == set(kept)
        assert wheel.read("discreet/collector/static/discreet.js") == MODULE.read_bytes()
    assert {"discreet/py.typed", "discreet/data/toy.toml"} <= inside


def test_the_sdist_holds_what_is_needed_and_no_litter(built):
    with tarfile.open(built[0]) as sdist:
        names = {x.name.partition("/")[2] for x in sdist.getmembers()}
    needed = ["pyproject.toml", "constraints.txt", "Makefile", "README.md", "LICENSE", "Dockerfile",
              "js/package.json", "js/discreet.d.ts", "tests/conftest.py", "docs/policy.md",
              "src/discreet/collector/static/discreet.js"]  # fmt: skip
    assert set(needed) <= names and litter(names) == []
    assert {x.split("/")[0] for x in names if "/" in x} == {
        "src",
        "tests",
        "docs",
        "deploy",
        "js",
        "benchmarks",
    }
    assert not {"js/discreet.js", "js/LICENSE"} & names  # copies


def test_litter_is_noticed():
    found = ["tests/discreet.sqlite-wal", "docs/organiser.token", "src/__pycache__/a.nbi"]
    assert litter(["src/a.py", *found, "docs/policy.md"]) == found


# ---- what it needs -------------------------------------------------------------------------------


def needed(*extras):
    """The distributions that discreet with these extras needs, by what is installed here."""
    found, optional = set(), PROJECT["optional-dependencies"]
    waiting = [(x, "") for x in PROJECT["dependencies"]]
    waiting += [(x, "") for extra in extras for x in optional[extra]]
    seen = set()
    while waiting:
        text, extra = waiting.pop()
        want = Requirement(text)
        name = canonicalize_name(want.name)
        if (text, extra) in seen or (want.marker and not want.marker.evaluate({"extra": extra})):
            continue
        seen.add((text, extra))
        if name == "discreet":
            waiting += [(x, "") for more in want.extras for x in optional[more]]
            continue
        found.add(name)
        requires = importlib.metadata.distribution(name).requires or []
        waiting += [(x, more) for x in requires for more in ("", *want.extras)]
    return found


def test_all_that_the_tests_need_is_pinned():
    """So that a fresh clone gets the same versions tomorrow."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines}
    assert needed("dev") - pinned == set()


def test_the_demonstration_needs_no_tools():
    command = run(["make", "--dry-run", "--always-make", "demo"], cwd=ROOT, env=clean())
    assert '-e ".[serve]"' in command and "[dev]" not in command
    heavy = {"pyspark", "playwright", "mypy", "cvxpy", "matplotlib", "pytest", "sphinx", "duckdb"}
    assert not heavy & needed("serve") and heavy <= needed("dev")


def site_of(python):
    """Where an environment keeps what is installed."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(python.parents[1])}))


def environment(folder, extras, without=()):
    """A virtual environment that sees what discreet says it needs, and nothing else: links to what
    is installed here, so that nothing is downloaded.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    for name in needed(*extras) - set(without):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            place, target = site_of(python) / top, Path(distribution.locate_file(top))
            if not place.exists():
                place.symlink_to(target.resolve())
    return python


def install(python, package):
    pip = [sys.executable, "-m", "pip", "--python", python]
    run([*pip, "install", "--no-deps", package], env=clean())


def check_origin(python, **more):
    """Python finds the discreet that is installed there."""
    code = "import discreet; print(discreet.__file__)"
    found = run([python, "-c", code], cwd="/", env=clean(**more)).strip()
    assert Path(found).is_relative_to(site_of(python)), found


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The wheel in an environment of its own, without any extra."""
    python = environment(tmp_path_factory.mktemp("installed"), [])
    install(python, built[1])
    return python


@pytest.mark.slow
def test_the_demonstration_runs_without_the_repository(built, tmp_path_factory, tmp_path):
    installed = environment(tmp_path_factory.mktemp("count"), ["count"])
    install(installed, built[1])
    check_origin(installed)
    must_fail(check_origin, installed, PYTHONPATH=str(ROOT / "src"))
    story = run([installed.parent / "discreet", "demo", "--no-serve"], cwd=tmp_path, env=clean())
    assert "intervals hold the truth" in story and "toy-survey: 5 items in 2 levels" in story
    assert list(tmp_path.iterdir()) == []


def test_a_missing_dependency_would_be_noticed(built, tmp_path):
    python = environment(tmp_path, [], without=["click"])
    install(python, built[1])
    must_fail(run, [python.parent / "discreet", "--help"], env=clean())


def test_without_the_extra_the_collector_says_what_to_install(installed, tmp_path):
    done = subprocess.run(
        [installed.parent / "discreet", "serve", ROOT / "src/discreet/data/toy.toml"],
        cwd=tmp_path,
        env=clean(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and '.whl[serve]"' in done.stderr


# ---- the JavaScript package ----------------------------------------------------------------------

PROGRAM = """
import { readFile } from "node:fs/promises";
import { DiscreetError, Mechanism } from "@discreet-ldp/client";

const [file, fingerprint, answer, many] = process.argv.slice(2);
try {
  const mechanism = await Mechanism.read(await readFile(file), { fingerprint });
  const reports = Array.from({ length: Number(many) }, () => mechanism.perturb(answer));
  console.log(JSON.stringify(reports.map((report) => Buffer.from(report).toString("hex"))));
} catch (error) {
  console.log(JSON.stringify(error instanceof DiscreetError ? error.code : String(error.stack)));
}
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A folder where the tarball of a clean clone was installed, and the tarball."""
    clone, place = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("project")
    for file in [MODULE, ROOT / "LICENSE", *(ROOT / "js").iterdir()]:
        if file.parent == ROOT / "js" and file.name in ("discreet.js", "LICENSE"):
            continue  # left there by someone's `npm pack`
        copy = clone / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    run([NPM, "pack", "--pack-destination", place], cwd=clone / "js")
    (tarball,) = place.glob("*.tgz")
    run([NPM, "install", "--offline", "--no-audit", "--no-fund", tarball], cwd=place)
    (place / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    return place, tarball


def reports_of(place, file, fingerprint, answer, many):
    """What the program in Node says: reports in hexadecimal, or why there are none."""
    command = [NODE, "program.mjs", file, fingerprint, answer, str(many)]
    return json.loads(run(command, cwd=place))


@needs_npm
def test_the_npm_package_is_the_pages_own_module(packed):
    _, tarball = packed
    with tarfile.open(tarball) as tar:
        files = {
            x.name.removeprefix("package/"): tar.extractfile(x).read() for x in tar.getmembers()
        }
    assert set(files) == {"package.json", "README.md", "LICENSE", "discreet.js", "discreet.d.ts"}
    assert files["discreet.js"] == MODULE.read_bytes()
    about = json.loads(files["package.json"])
    assert about["version"] == d.__version__ and about["license"] == PROJECT["license"]
    assert re.fullmatch(r"@[a-z-]+/[a-z-]+", about["name"])  # npm refuses scopes it keeps private
    assert about["publishConfig"] == {"access": "public"}
    assert not {"dependencies", "devDependencies", "peerDependencies"} & set(about)


def check_counts(estimate, truth):
    assert (abs(estimate.counts - truth) < 6 * estimate.stderr).all()  # false alarm 1e-8


@needs_npm
def test_node_perturbs_with_it_and_python_counts(packed, tmp_path, toy):
    place, _ = packed
    mechanism = d.design(toy)
    mechanism.save(tmp_path / "survey.json")
    many = 2_000
    found = reports_of(place, tmp_path / "survey.json", mechanism.fingerprint, "HIV", many)
    estimate = mechanism.tally([bytes.fromhex(x) for x in found]).estimate()
    check_counts(estimate, [many, 0, 0, 0, 0])
    must_fail(check_counts, estimate, [0, many, 0, 0, 0])


@needs_npm
def test_node_refuses_what_was_changed(packed, tmp_path, toy):
    place, _ = packed
    mechanism = d.design(toy)
    mechanism.save(tmp_path / "survey.json")
    other = "0" * 64
    assert reports_of(place, tmp_path / "survey.json", other, "HIV", 1) == "pinned"
    text = (tmp_path / "survey.json").read_text(encoding="utf-8")
    (tmp_path / "changed.json").write_text(text.replace("HIV", "HPV"), encoding="utf-8")
    changed = reports_of(place, tmp_path / "changed.json", mechanism.fingerprint, "HPV", 1)
    assert changed == "fingerprint"


# ---- its types -----------------------------------------------------------------------------------

NAMES = """
import { readFile } from "node:fs/promises";
const module = await import(process.argv[2]);
const { Mechanism, Survey, Client, Ledger } = module;
const survey = await Survey.read(await readFile(process.argv[3]));
const made = {
  Mechanism: survey.mechanism, Survey: survey,
  Client: new Client("http://localhost"), Ledger: new Ledger(),
  DiscreetError: new module.DiscreetError("answer", "no"),
};
const found = {};
for (const [name, value] of Object.entries(module)) {
  const own = Object.getOwnPropertyNames(value.prototype ?? {}).filter((x) => x !== "constructor");
  const fixed = Object.getOwnPropertyNames(value).filter((x) => typeof value[x] === "function");
  found[name] = [...own, ...fixed, ...Object.keys(made[name] ?? {})].sort();
}
console.log(JSON.stringify(found));
"""


def declared(text):
    """The values that a declaration file exports, with the members that its classes always have."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    found = {
        name: []
        for name in re.findall(r"^export (?:function|const) (\w+)", text, flags=re.MULTILINE)
    }
    for name, body in re.findall(
        r"^export class (\w+)[^{]*\{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL
    ):
        member = r"^  (?:static |readonly )*(\w+)(?:<\w+>)?[(:]"
        members = re.findall(member, body, flags=re.MULTILINE)
        found[name] = sorted({*members} - {"constructor"})
    return found


@needs_npm
def test_the_types_name_what_the_module_exports(tmp_path, toy):
    d.Survey("toy", [d.design(toy)]).save(tmp_path / "survey.json")
    (tmp_path / "names.mjs").write_text(NAMES, encoding="utf-8")
    found = json.loads(run([NODE, "names.mjs", MODULE, "survey.json"], cwd=tmp_path))
    text = (ROOT / "js" / "discreet.d.ts").read_text(encoding="utf-8")
    assert declared(text) == found
    assert len(found) >= 8 and {"perturb", "from", "policy", "m"} <= set(found["Mechanism"])
    for old, new in [
        ("  perturb(", "  perturbed("),
        ("export function cleaned", "function cleaned"),
    ]:
        assert declared(text.replace(old, new)) != found


def test_the_types_know_every_code():
    text = (ROOT / "js" / "discreet.d.ts").read_text(encoding="utf-8")
    told = re.findall(r'"(\w+)"', re.search(r"export type Code =(.*?);", text, re.DOTALL)[1])
    thrown = re.findall(r'new DiscreetError\(\s*"(\w+)"', MODULE.read_text(encoding="utf-8"))
    assert told == sorted(set(thrown))


# ---- the image -----------------------------------------------------------------------------------
# No engine is needed: its steps are done one by one in a folder that stands for the root.


def stages():
    """The stages of the Dockerfile: lists of instructions."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    found = []
    for word, _, rest in (line.partition(" ") for line in lines if line):
        if word == "FROM":
            found.append([])
        elif found:
            found[-1].append((word, rest))
    return found


def the(stage, word):
    """What an instruction says that a stage has once."""
    (rest,) = (rest for found, rest in stage if found == word)
    return rest


def unprivileged():
    """What makes a command the image's user. Root's own Python may lie where others cannot look, so
    it may read everything; it can write nothing that is not its own.
    """
    if os.geteuid() != 0:
        return []  # an ordinary user as it is
    sets = [f"--{x}=-all,+dac_read_search" for x in ("inh-caps", "ambient-caps", "bounding-set")]
    return ["setpriv", f"--reuid={IMAGE}", f"--regid={IMAGE}", "--clear-groups", *sets]


@pytest.fixture(scope="module")
def image():
    """The folder in which the steps were done, and the last stage."""
    build, last = stages()
    root = Path(tempfile.mkdtemp(prefix="discreet-image-"))
    try:
        root.chmod(0o755)
        environment(root / "opt" / "discreet", ["serve"])  # pip finds them installed
        home = root / the(build, "WORKDIR").lstrip("/")
        home.mkdir()
        for word, rest in build:
            if word == "COPY":
                *sources, target = rest.split()
                for source in sources:
                    if (ROOT / source).is_dir():
                        skip = shutil.ignore_patterns("__pycache__")
                        shutil.copytree(ROOT / source, home / target, ignore=skip)
                    else:
                        shutil.copy(ROOT / source, home / target)
            elif word == "RUN":
                done_in(root, home, rest)
        step = the(last, "RUN")
        assert f"useradd --uid {IMAGE} --gid {IMAGE}" in step
        if os.geteuid() == 0:
            done_in(root, root, step.split("&&")[-1])
        else:
            (root / "data").mkdir(mode=0o700)
        yield root, last
    finally:
        shutil.rmtree(root)


def within(root, text):
    """A step's text with the paths of the image in the folder."""
    return re.sub(r"(?<![\w.])/(?=wheels|opt/|data|survey)", f"{root}/", text)


def done_in(root, cwd, step):
    """Run a step: with this Python, and with what is installed here instead of downloads."""
    step = re.sub(r"^python ", f"{sys.executable} ", within(root, step))
    step = re.sub(r"^pip wheel ", f"{sys.executable} -m pip wheel --no-build-isolation ", step)
    return run(["sh", "-ec", step], cwd=cwd, env=clean())


def test_the_image_is_given_what_it_copies_and_no_more():
    build, last = stages()
    copied = {x for word, rest in build if word == "COPY" for x in rest.split()[:-1]}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*" and {x[1:] for x in rules if x.startswith("!")} == copied
    assert all((ROOT / x).exists() for x in copied)
    assert the(last, "COPY").startswith("--from=build ")


def test_the_image_runs_the_collector_as_an_ordinary_user(image, tmp_path):
    root, last = image
    words = [word for word, _ in last]
    assert the(last, "USER") == f"{IMAGE}:{IMAGE}" and words.index("USER") > words.index("COPY")
    data = root / the(last, "WORKDIR").lstrip("/")
    assert data == root / the(last, "VOLUME").lstrip("/") and list(data.iterdir()) == []
    shutil.copy(ROOT / "src" / "discreet" / "data" / "toy.toml", root / "survey.toml")
    variables = dict(x.split("=", 1) for x in shlex.split(within(root, the(last, "ENV"))))
    variables["PATH"] = variables["PATH"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = [*json.loads(the(last, "ENTRYPOINT")), *json.loads(within(root, the(last, "CMD")))]
    health = the(last, "HEALTHCHECK").partition("CMD ")[2]
    assert f":{the(last, 'EXPOSE')}/healthz" in health
    health = json.loads(health.replace(f":{the(last, 'EXPOSE')}/", f":{port}/"))
    options = {"cwd": data, "env": variables}
    must_fail(run, [*unprivileged(), *health], **options)  # nobody is there yet
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*unprivileged(), *start, "--port", str(port)], stdout=log, stderr=log, **options
        )
    try:
        wait_for(process, [*unprivileged(), *health], options, tmp_path / "log")
        client = d.Client(f"http://127.0.0.1:{port}", Ledger(tmp_path / "ledger.json"))
        assert client.answer("toy-survey", "HIV").accepted == 1
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code == 0, (tmp_path / "log").read_text(encoding="utf-8")
    left = {x.name: x.stat() for x in data.iterdir()}
    assert {"discreet.sqlite", "discreet.token"} <= set(left)
    assert left["discreet.token"].st_mode & 0o777 == 0o600
    if os.geteuid() == 0:
        assert {x.st_uid for x in left.values()} == {IMAGE}
        others = [x for x in root.rglob("*") if x.lstat().st_uid == IMAGE]
        assert [x for x in others if not x.is_relative_to(data)] == []


def wait_for(process, health, options, log):
    """Until the image is healthy."""
    end = time.monotonic() + 60
    while subprocess.run(health, stderr=subprocess.DEVNULL, **options).returncode:
        assert process.poll() is None and time.monotonic() < end, log.read_text(encoding="utf-8")
        time.sleep(0.1)
