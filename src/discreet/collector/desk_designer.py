"""Designs drafts in a process of its own, which is ended when one takes too long: a thread could
not be, and would hold up everything else.

`python -m discreet.collector.desk_designer` is that process: a line with a survey file in, a line
with the designed survey or with what is wrong out.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tomllib
from decimal import Decimal
from functools import lru_cache

from discreet.collector import limits
from discreet.errors import DiscreetError, PolicyError
from discreet.survey import Survey

_KEPT = 16  # designs that are remembered: the next request mostly asks for the same
_TOKENS = ("DISCREET_TOKEN", "DISCREET_TOKEN_FILE")


class Designer:
    """Designs one survey after the other; call it from one thread at a time."""

    def __init__(self, seconds: float = limits.DESIGN_SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        # the same file gives the same survey, so what was shown is what is published
        self.design = lru_cache(_KEPT)(self._design)

    def _design(self, toml: str) -> Survey:
        """The survey of a file; DiscreetError says what is wrong with it."""
        process = self._started()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(toml) + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], self._seconds)[0]:
                self.close()
                raise DiscreetError(
                    f"the design takes more than {self._seconds:.0f} seconds; choose how many "
                    "questions each person answers, ask fewer questions, or use discreet design "
                    "in a terminal and serve the file that it writes"
                )
            answer = process.stdout.readline()
        except (OSError, ValueError):
            answer = ""
        if not answer:
            self.close()
            raise DiscreetError("the design was stopped; try again")
        read = json.loads(answer)
        if "problem" in read:
            raise PolicyError(read["problem"])
        return Survey.from_document(read)

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            known = {key: value for key, value in os.environ.items() if key not in _TOKENS}
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=known,
            )
        return self._process

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def answer(line: str) -> str:
    """The designed survey of a file, or what is wrong with it."""
    from discreet.designs.surveys import design_survey
    from discreet.survey.reading import from_document

    try:
        table = tomllib.loads(json.loads(line), parse_float=Decimal)
        return json.dumps(design_survey(from_document(table)).to_document())
    except DiscreetError as error:
        return json.dumps({"problem": str(error)})


if __name__ == "__main__":
    for line in sys.stdin:
        print(answer(line), flush=True)
