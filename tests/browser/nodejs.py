"""Scripts of node/, run by Node."""

import json
import shutil
import subprocess
from pathlib import Path

NODE = shutil.which("node")


def node(script, payload, *args):
    """What a script of node/ prints for this input."""
    done = subprocess.run(
        [NODE, Path(__file__).parent / "node" / script, *args],
        input=json.dumps(payload),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
