"""What a process writes to a terminal."""

import os
import pty
import subprocess
import sys
from contextlib import suppress


def seen_at_a_terminal(script):
    """What a script writes to a terminal, both of its outputs together."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, script], stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        with suppress(OSError):  # the terminal is gone when the script ends
            while more := os.read(ours, 4096):
                seen += more
    os.close(ours)
    assert process.returncode == 0, seen
    return seen.decode()
