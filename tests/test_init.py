"""The public names: each from its room, loaded when it is first used."""

import ast
import subprocess
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import discreet

NAMES = {
    "Policy": "policy",
    "design": "designs",
    "Mechanism": "mechanism",
    "Guarantee": "promises.guarantee",
    "Survey": "survey",
    "compose": "promises.compose",
    "Tally": "arrays.tally",
    "Estimate": "estimates.estimate",
    "simulate": "estimates.simulation",
    "choose_padding": "estimates.padding",
    "Client": "device.client",
    "DiscreetError": "errors",
}


@pytest.mark.parametrize(("name", "room"), NAMES.items())
def test_a_name_is_what_its_room_defines(name, room):
    found = getattr(discreet, name)
    assert found is getattr(import_module(f"discreet.{room}"), name)
    assert found.__module__.startswith(f"discreet.{room}")
    assert vars(discreet)[name] is found  # looked up once


def test_these_are_all():
    assert sorted(discreet.__all__) == dir(discreet) == sorted(NAMES)
    with pytest.raises(AttributeError, match="^module 'discreet' has no attribute 'desing'$"):
        _ = discreet.desing


def test_type_checkers_are_told_the_same():
    tree = ast.parse(Path(discreet.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    told = {alias.asname: line.module for line in block.body for alias in line.names}
    assert told == {name: f"discreet.{room}" for name, room in NAMES.items()}


def test_importing_the_package_loads_none_of_its_rooms():
    """What takes long (numpy, numba) is for those who use it."""
    seen = "[x for x in sys.modules if x.startswith(('discreet.', 'numpy'))]"
    code = f"import sys, discreet; print({seen})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ---- examples ------------------------------------------------------------------------------------


def without_example(owner):
    """The public methods and properties of a class that have no example in their docstring."""
    kinds = (classmethod, staticmethod, property, cached_property, FunctionType)
    members = {name: value for name, value in vars(owner).items() if name[0] != "_"}
    return [
        name
        for name, value in members.items()
        if isinstance(value, kinds) and ">>>" not in (getattr(value, "__doc__", None) or "")
    ]


@pytest.mark.parametrize(
    "name", ["Policy", "Mechanism", "Tally", "Estimate", "Guarantee", "Client"]
)
def test_every_method_of_the_main_classes_has_an_example(name):
    owner = getattr(discreet, name)
    assert ">>>" in owner.__doc__ and without_example(owner) == []


def test_a_missing_example_is_seen():
    class Bare:
        def verb(self):
            "Does it."

        @property
        def figure(self):
            ">>> 1"

        @classmethod
        def make(cls):
            pass

        def _inner(self):
            pass

    assert without_example(Bare) == ["verb", "make"]
