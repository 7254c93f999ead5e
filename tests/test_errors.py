"""One base exception; the children's sentences and attributes."""

import inspect

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
    children = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    assert len(children) == 8 and all(issubclass(cls, DiscreetError) for cls in children)
    assert {cls.__mro__[1] for cls in children} == {Exception, DiscreetError, MechanismError}
    assert FingerprintError.__mro__[1] is MechanismError and DiscreetError.__mro__[1] is Exception


def test_a_wrong_fingerprint_names_both():
    error = FingerprintError("a" * 16 + "b" * 48, "c" * 16 + "d" * 48)
    assert str(error) == (
        "the content has fingerprint cccccccccccccccc… but the file says aaaaaaaaaaaaaaaa…: it was "
        "changed after it was made; get it again from the organiser"
    )
    assert error.expected == "a" * 16 + "b" * 48 and error.got == "c" * 16 + "d" * 48


def test_a_broken_guarantee_says_where():
    error = GuaranteeError("it is broken", ("a", "b"), 3)
    assert (str(error), error.levels, error.part) == ("it is broken", ("a", "b"), 3)
    error = GuaranteeError("it is broken")
    assert (str(error), error.levels, error.part) == ("it is broken", (), None)


@pytest.mark.parametrize("extra", ["plot", "solver"])
def test_what_is_missing_can_be_pasted(extra):
    error = MissingExtra("a thing", extra)
    assert str(error) == f'a thing needs the extra "{extra}": pip install "discreet[{extra}]"'
    assert error.extra == extra
