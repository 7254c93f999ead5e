"""Tallies by group: added up, and written into a folder with a file for each."""

import pytest
from small import small

from discreet.arrays.grouped_tallies import add_by_group, save_groups
from discreet.arrays.tally import Tally
from discreet.errors import DataError


def test_tallies_are_added_to_those_of_the_same_group():
    mechanism = small("bits")
    one, two = (mechanism.tally(mechanism.perturb_many([k] * 20)) for k in (0, 1))
    tallies = {"a": one, "b": two}
    add_by_group(tallies, {"b": one, "c": two})
    assert tallies == {"a": one, "b": one + two, "c": two}


def test_groups_are_files_of_their_names(tmp_path):
    mechanism = small("bits")
    one, two = (mechanism.tally(mechanism.perturb_many([k] * 20)) for k in (0, 1))
    folder = tmp_path / "by" / "city"
    save_groups({"a/b": one, 7: two}, folder)
    save_groups({"a/b": one, 7: two}, folder)  # again, into the same folder
    assert sorted(path.name for path in folder.iterdir()) == ["7.json", "a_b.json"]
    assert Tally.load(folder / "a_b.json", mechanism) == one
    assert Tally.load(folder / "7.json", mechanism) == two
    with pytest.raises(DataError, match='groups "a/b" and "a_b" would have the same file name'):
        save_groups({"a/b": one, "a_b": two}, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(DataError, match="holds the tally of another group, a_b.json"):
        save_groups({7: two}, folder)
