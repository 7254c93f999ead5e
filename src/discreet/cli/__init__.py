"""The command line: parse, call, print. Exit code 0, 1 (a check failed) or 2 (bad input, one
sentence).
"""

from discreet.cli import (  # noqa: F401  # commands
    answer,
    demo,
    design,
    estimates,
    invite,
    new,
    paper,
    reports,
    serve,
    store,
)
from discreet.cli.group import main as main
