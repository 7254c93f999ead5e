"""One base exception; the children's sentences and attributes."""

import inspect
import json
from importlib import metadata
from types import SimpleNamespace

import pytest

from discreet import errors
from discreet.errors import (
    DiscreetError,
    FingerprintError,
    GuaranteeError,
    MechanismError,
    MissingExtra,
)


def test_every_error_is_a_discreet_error():
    """Who catches the base catches them all, and nothing that Python raises by itself."""
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    children = [cls for cls in found if cls.__module__ == "discreet.errors"]
    assert len(children) == 9 and all(issubclass(cls, DiscreetError) for cls in children)
    assert {cls.__mro__[1] for cls in children} == {Exception, DiscreetError, MechanismError}
    assert FingerprintError.__mro__[1] is MechanismError and DiscreetError.__mro__[1] is Exception


def test_a_wrong_fingerprint_names_both():
    error = FingerprintError("a" * 16 + "b" * 48, "c" * 16 + "d" * 48)
    assert str(error) == (
        "the content has fingerprint cccc cccc cccc cccc dddd dddd dddd dddd… but the file says "
        "aaaa aaaa aaaa aaaa bbbb bbbb bbbb bbbb…: it was changed after it was made; get it again "
        "from the organiser"
    )
    assert error.expected == "a" * 16 + "b" * 48 and error.got == "c" * 16 + "d" * 48


def test_a_broken_guarantee_says_where():
    error = GuaranteeError("it is broken", ("a", "b"), 3)
    assert (str(error), error.levels, error.part) == ("it is broken", ("a", "b"), 3)
    error = GuaranteeError("it is broken")
    assert (str(error), error.levels, error.part) == ("it is broken", (), None)


@pytest.mark.parametrize("extra", ["plot", "solver"])
def test_what_is_missing_can_be_pasted(extra, monkeypatch, tmp_path):
    """From where this very package was installed: pip knows no other by this name."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    wheel = tmp_path / "discreet-1-py3-none-any.whl"
    wheel.touch()

    def said(url, folder=tmp_path):
        recorded = None if url is None else json.dumps({"url": url, "dir_info": {}})
        found = SimpleNamespace(read_text=lambda name: name == "direct_url.json" and recorded)
        monkeypatch.setattr(metadata, "distribution", lambda name: found)
        monkeypatch.chdir(folder)
        error = MissingExtra("a thing", extra)
        assert error.extra == extra
        start = f'a thing needs the extra "{extra}": pip install '
        assert str(error).startswith(start)
        return str(error).removeprefix(start)

    assert said(None) == f'"discreet[{extra}]"'
    assert said(clone.as_uri()) == f'"{clone}[{extra}]"'
    assert said(clone.as_uri(), clone) == f'".[{extra}]"'
    assert said(wheel.as_uri()) == f'"{wheel}[{extra}]"'
    assert said((tmp_path / "gone").as_uri()) == f'"discreet[{extra}]"'
    assert said("https://example.org/discreet.git") == f'"discreet[{extra}]"'


def test_what_is_missing_can_be_said_of_a_package_that_was_never_installed(monkeypatch):
    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", unknown)
    assert 'pip install "discreet[plot]"' in str(MissingExtra("a thing", "plot"))
