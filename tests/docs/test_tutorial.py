"""The tutorial is true, and so is the way on the statistician's page: what they tell to type is
typed, in an empty folder and in order, and what they show is what is printed.
"""

import csv
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from collecting import DEADLINE, DISCREET, serving

import discreet as d

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = DOCS / "tutorial.md"
BLOCK = re.compile(r"^```(toml|sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RANDOM = re.compile(
    r"[0-9a-f]{64}|([0-9a-f]{4} ){7}[0-9a-f]{4}(?=…)|(?<=will be sent: )[0-9a-f]+"
    r"|(?<=Answers go to http://127.0.0.1:)\d+"
)
PROMPT = re.compile(r"^(Your answer, .*: |Send it\? .*: )(.*)$", re.MULTILINE)
TRUTH = {
    "addiction": 400, "violence at home": 700, "depression": 1900, "money": 3500,
    "noise": 6501, "commuting": 2500, "a job": 5000, "nothing": 9500,
}  # fmt: skip


def blocks(page):
    """What is saved and typed, in order: ("save", name, text), ("sh", script) and
    ("type", command, what it shows).
    """
    for found in BLOCK.finditer(page):
        kind, text = found.groups()
        if kind == "toml":
            name = re.findall(r"`([\w.]+)`", page[: found.start()])[-1]
            yield "save", name, text
        elif kind == "sh":
            yield "sh", text, ""
        else:
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                yield "type", command, shown


def tidy(text):
    """Lines without what cannot be seen."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def assert_shows(shown, printed):
    """… stands for anything, and so does what is drawn or depends on the last bit."""
    parts = re.split("…", RANDOM.sub("…", tidy(shown)))
    assert re.fullmatch(".*?".join(map(re.escape, parts)), tidy(printed), re.DOTALL), printed


def at_a_terminal(command, folder, environment, shown):
    """What a person sees who types what is shown after every prompt; and the exit code."""
    prompts, seen, end = PROMPT.findall(shown), "", time.monotonic() + DEADLINE
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            while True:
                assert time.monotonic() < end, seen
                if not select.select([ours], [], [], 0.1)[0]:
                    continue
                try:
                    seen += os.read(ours, 4096).decode()
                except OSError:  # nobody is there any more
                    break
                if prompts and seen.endswith(prompts[0][0]):
                    os.write(ours, prompts.pop(0)[1].encode() + b"\n")
        finally:
            process.kill()
            os.close(ours)
    assert not prompts, seen
    return seen.replace("\r\n", "\n"), process.returncode


class Reader:
    """Somebody who follows the tutorial in an empty folder; the collector gets a free port."""

    def __init__(self, folder):
        self.folder, self.fingerprint, self.port = folder, "", ""
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("DISCREET_")
        }
        self.environment["PATH"] = f"{Path(DISCREET).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment["DISCREET_LEDGER"] = str(folder / "ledger.json")

    def run(self, command):
        """What it prints, and its exit code."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
        )
        return done.stdout, done.returncode

    def follow(self, command, shown):
        """Type a command, with the invitation that this reader has got."""
        command = command.replace("FINGERPRINT", self.fingerprint).replace(":8000", self.port)
        if command.startswith("discreet answer"):
            words = shlex.split(command)
            printed, code = at_a_terminal(words, self.folder, self.environment, shown)
        else:
            printed, code = self.run(command)
        assert code == ("FAILED" in shown), printed
        assert_shows(shown, printed)

    def invited(self, server):
        self.port = f":{server.port}"
        self.fingerprint = re.search(r"#(\w+)", server.output)[1]
        return server.output.replace(self.port, ":8000")


def test_the_tutorial_is_followed_to_the_end(tmp_path):
    """The collector is stopped at the end, by Ctrl-C, as the tutorial says."""
    pytest.importorskip("uvicorn")
    steps, reader = list(blocks(TUTORIAL.read_text(encoding="utf-8"))), Reader(tmp_path)
    (served,) = [k for k, step in enumerate(steps) if step[1].startswith("discreet serve")]
    follow(reader, steps[:served])
    with serving(tmp_path, *shlex.split(steps[served][1])[2:], token="") as server:
        assert_shows(steps[served][2], reader.invited(server))
        follow(reader, steps[served + 1 :])
        assert server.stop(signal.SIGINT) == 130  # as the shell would say of Ctrl-C
    assert (tmp_path / "discreet.token").stat().st_mode & 0o077 == 0
    assert (tmp_path / "result.png").stat().st_size > 5_000
    check_result(tmp_path)


def test_the_statisticians_way_is_followed_to_its_end(tmp_path):
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    follow(Reader(tmp_path), blocks(page))
    shares = {row["item"]: row for row in read(tmp_path / "shares.csv")}
    for item, count in {"nothing": 8_000, "flu": 4_100, "depression": 900}.items():
        assert abs(float(shares[item]["count"]) - count) < 6 * float(shares[item]["stderr"])
    cold = next(row for row in read(tmp_path / "weighted.csv") if row["item"] == "cold")
    expected = 0.3 * 3_500 / 12_000 + 0.7 * 1_500 / 8_000  # 22 %, and 25 % without weights
    error = float(cold["stderr"]) / 20_000
    assert abs(float(cold["share"]) - expected) < 6 * error < 0.25 - expected
    assert {path.stem for path in (tmp_path / "regions").iterdir()} == {"north", "south"}
    assert pq.read_metadata(tmp_path / "scores.parquet").num_rows == 20_000


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def follow(reader, steps):
    for kind, first, second in steps:
        if kind == "save":
            (reader.folder / first).write_text(second, encoding="utf-8")
        elif kind == "sh":
            printed, code = reader.run(first)
            assert (printed, code) == ("", 0)
        else:
            reader.follow(first, second)


def check_result(folder):
    """What is published is the truth, within its errors."""
    rows = {row["item"]: row for row in read(folder / "result.csv")}
    assert rows.keys() == TRUTH.keys()
    for item, row in rows.items():  # 6 standard errors: 8 false alarms in 10^9 for eight items
        assert abs(float(row["count"]) - TRUTH[item]) < 6 * float(row["stderr"]), row
    policy = d.Policy.load(folder / "term.toml")
    assert d.Survey.load(folder / "survey.json").mechanism.policy == policy
    assert policy == in_python()


def in_python():
    """The policy of the tutorial's part in Python, which pytest runs as a doctest."""
    found = re.search(
        r"^>>> (policy = .*?^\.\.\. \))$",
        TUTORIAL.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    names = {"d": d}
    exec(found[1].replace("\n... ", "\n"), names)
    return names["policy"]


# ---- the helpers see what is wrong ---------------------------------------------------------------


def test_what_is_shown_and_not_printed_is_seen():
    printed = "Counted 30,001 reports.\nThis report will be sent: 0b07\n"
    assert_shows("Counted 30,001 reports.\nThis report will be sent: 0330\n", printed)
    assert_shows("Counted…\n", printed)
    for wrong in ("Counted 30,000 reports.\n…", "Counted 30,001 reports.\n", "…sent: 0330 now"):
        with pytest.raises(AssertionError):
            assert_shows(wrong, printed)


def test_blocks_are_found_in_order():
    page = (
        "Save this as `a.toml`:\n\n```toml\nx = 1\n```\n\n```text\nnot this\n```\n"
        "```sh\necho 1\n```\n```console\n$ one\n1\n\n2\n$ two\n```\n"
    )
    assert list(blocks(page)) == [
        ("save", "a.toml", "x = 1\n"),
        ("sh", "echo 1\n", ""),
        ("type", "one", "1\n\n2\n"),
        ("type", "two", ""),
    ]
