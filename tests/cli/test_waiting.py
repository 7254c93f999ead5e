"""Long work says what it does, on a terminal only."""

import subprocess
import sys

import pytest
from terminals import seen_at_a_terminal

WORK = """
import time
from discreet.cli.group import working

with working("Searching for something …"):
    time.sleep({seconds})
print("done")
"""


@pytest.mark.parametrize(("seconds", "said"), [(3, True), (0.1, False)])
def test_long_work_says_what_it_does_on_a_terminal(tmp_path, seconds, said):
    script = tmp_path / "work.py"
    script.write_text(WORK.format(seconds=seconds), encoding="utf-8")
    seen = seen_at_a_terminal(script)
    assert ("Searching for something" in seen) == said and "done" in seen


def test_nothing_is_said_elsewhere(tmp_path):
    script = tmp_path / "work.py"
    script.write_text(WORK.format(seconds=2.5), encoding="utf-8")
    piped = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (piped.stdout, piped.stderr) == ("done\n", "")
