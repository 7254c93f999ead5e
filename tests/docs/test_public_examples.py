"""Every public name has an example that runs: what the reference shows has a doctest of its own, or
one on its page or in the docstring of its class names it.
"""

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest
from checks import must_fail

import discreet

API = Path(__file__).parents[2] / "docs" / "api"
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: (\S+)\n((?:   :.*\n)*)", re.MULTILINE)


# A session of Spark takes seconds: tests/data/test_engines.py runs these instead.
ELSEWHERE = {"spark.md"}


def named(path):
    """The function or class that a page names by its full path."""
    module, _, last = path.rpartition(".")
    return getattr(importlib.import_module(module), last)


def shown():
    """(name, docstring, other examples that may name it) of everything in the reference."""
    for page in sorted(page for page in API.glob("*.md") if page.name not in ELSEWHERE):
        text = page.read_text(encoding="utf-8")
        for kind, path, options in DIRECTIVE.findall(text):
            thing = named(path)
            if kind == "data" or (inspect.isclass(thing) and issubclass(thing, Exception)):
                continue  # an error's example is where it is raised
            yield path, thing.__doc__ or "", text
            if kind == "class" and ":members:" in options:
                left_out = re.search(r":exclude-members: (.*)", options)
                hidden = set(left_out[1].split(", ")) if left_out else set()
                yield from members(path, thing, hidden, text)


def members(path, thing, hidden, page):
    fields = {x.name for x in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else ()
    for name, member in vars(thing).items():
        if name.startswith("_") or name in hidden or name in fields or not documented(member):
            continue
        yield f"{path}.{name}", documented(member), (thing.__doc__ or "") + page


def documented(member):
    """The docstring of a method, a property or a cached property."""
    inner = getattr(member, "func", getattr(member, "__func__", member))
    is_member = callable(inner) or isinstance(inner, property)
    return (inner.__doc__ or "") if is_member and not inspect.isclass(inner) else ""


def has_example(path, own, others):
    called = rf">>>.*[.\s(]{re.escape(path.rpartition('.')[2])}\b"
    return ">>> " in own or bool(re.search(called, others))


def check(entries):
    missing = [path for path, own, others in entries if not has_example(path, own, others)]
    assert missing == []


def test_every_public_name_has_an_example():
    entries = [*shown()]
    assert {f"discreet.{name}" for name in discreet.__all__} - {"discreet.DiscreetError"} <= {
        path for path, *_ in entries
    }
    check(entries)


def test_a_missing_example_is_seen():
    must_fail(check, [("discreet.Tally.add", "Adds.", "Counted reports.")])
    check([("discreet.Tally.add", "Adds.", ">>> tally.add(1)")])
    with pytest.raises(AttributeError):
        named("discreet.nothing_of_this_name")
