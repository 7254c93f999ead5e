"""What both sides say to each other."""

import re
from pathlib import Path

import discreet
from discreet.device import wire


def test_a_path_holds_any_name():
    assert wire.collection_path("a b/ü?") == "/v1/collections/a%20b%2F%C3%BC%3F"
    assert wire.upload_headers("f") == {
        "Content-Type": "application/octet-stream",
        "Discreet-Survey": "f",
    }


def test_nobody_else_spells_them():
    """But where a sentence names them for people, and in the documentation of an endpoint."""
    for path in Path(discreet.__file__).parent.rglob("*.py"):
        text = re.sub(r'"""(.|\n)*?"""', "", path.read_text(encoding="utf-8"))
        if path.name != "wire.py":
            assert not re.search(r"Discreet-Survey|/v1/coll|octet-stream|token_bytes\(16", text), (
                path
            )
