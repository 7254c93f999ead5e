import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

import discreet as d

HERE = Path(__file__).parent
MEMORY, ROOM = Path("/dev/shm"), 2 << 30


def in_memory():
    """Whether temporary files can be in memory: thousands of tests wait for a disk otherwise. Only
    a machine that fails would need one, and none fails here. Programs are started there too, so
    it must allow that. `TMPDIR=/tmp make test` uses the disk.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(MEMORY)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC


if in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)  # also of the processes that are started
sys.path[:0] = map(str, (HERE, HERE / "collector", HERE / "estimates"))  # what tests share
from postgres import database, postgres  # noqa: E402, F401  # fixtures

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def compiled_loops(monkeypatch):
    """Small jobs use them too, or what is tested would depend on which test ran before."""
    monkeypatch.setattr("discreet.arrays.coders.SMALL", 0)


@pytest.fixture(scope="session")
def toy():
    return d.Policy.from_levels(
        [
            ("serious", "ln(4)", ["HIV"]),
            ("common", "ln(6)", ["anemia", "headache", "stomachache", "toothache"]),
        ]
    )


# ---- every worker finds the same tests -----------------------------------------------------------


def pytest_make_parametrize_id(val, argname):
    """Bytes are numbered, not spelled: a packed file's date would make each run's names its own."""
    return argname if isinstance(val, bytes) else None


# ---- nothing is skipped in silence ---------------------------------------------------------------

# what is not missing: data that nobody asked to test with, and examples that are only to be read
CHOSEN = ("DISCREET_DATA names a folder", "+SKIP option")


def not_run(reporter):
    """How many tests did not run, by why; a folder of tests that was left out counts as one."""
    found = Counter(report.longrepr[2] for report in reporter.stats.get("skipped", []))
    return {why.removeprefix("Skipped: "): many for why, many in found.items()}


def pytest_terminal_summary(terminalreporter):
    for why, many in sorted(not_run(terminalreporter).items()):
        terminalreporter.write_line(f"NOT RUN: {many} ({why})", yellow=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """With CI=true, whatever could not run has failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None:
        return
    missing = [why for why in not_run(reporter) if not any(word in why for word in CHOSEN)]
    if missing and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
