"""The command as a module, for whoever has no scripts on the path."""

import subprocess
import sys

import discreet


def discreet_module(*arguments):
    command = [sys.executable, "-m", "discreet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_module_is_the_command():
    said = discreet_module("--version").stdout
    assert said.startswith(f"discreet, version {discreet.__version__}\nformats: discreet-survey/1")
    assert discreet_module("-h").stdout.startswith("Usage: discreet [OPTIONS] COMMAND")
    wrong = discreet_module("check", "nosuch.json")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ")
