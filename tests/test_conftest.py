"""A test that did not run is said at the end, and with CI=true it is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = "import pytest\ndef test_it():\n    pytest.skip('no browser here')\ndef test_ok(): pass\n"


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "with workers"])
@pytest.mark.parametrize(
    ("text", "ci", "code", "told"),
    [
        (MISSING, "true", 1, "NOT RUN: 1 (no browser here)"),
        (MISSING, "", 0, "NOT RUN: 1 (no browser here)"),
        (MISSING.replace("no browser here", "DISCREET_DATA names a folder"), "true", 0, "NOT RUN"),
        ("def test_ok(): pass\n", "true", 0, ""),
    ],
)
def test_what_did_not_run_is_said(tmp_path, text, ci, code, told, workers):
    (tmp_path / "test_some.py").write_text(text)
    (tmp_path / "conftest.py").write_text("from conftest_of_discreet import *\n")
    here = Path(__file__).parent
    (tmp_path / "conftest_of_discreet.py").write_text(
        f"import sys; sys.path.append({str(here)!r})\n" + (here / "conftest.py").read_text()
    )
    without = ("no:cacheprovider", "no:schemathesis")  # the second takes a second to import
    options = [word for name in without for word in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", *options, *workers, "."]
    environment = {**os.environ, "CI": ci, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stdout and ("NOT RUN" in done.stdout) == bool(told)
