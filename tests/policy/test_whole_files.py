"""Outputs are written whole or not at all."""

import os
import stat

import pytest

from discreet.errors import DataError
from discreet.policy import files


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "out.txt"
    with files.written_aside(path) as aside:
        assert (
            aside.parent == tmp_path
            and aside.name.startswith(".out.txt.")
            and aside.name.endswith(".part")
        )
        aside.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize(
    "error", [ValueError, KeyboardInterrupt, SystemExit, DataError, MemoryError]
)
@pytest.mark.parametrize("old", [None, "old"])
def test_an_exception_leaves_no_file_and_keeps_the_old_one(tmp_path, error, old):
    path = tmp_path / "out.txt"
    if old:
        path.write_text(old)

    def interrupted():
        with files.written_aside(path) as aside:
            aside.write_text("half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert os.listdir(tmp_path) == (["out.txt"] if old else [])
    assert not old or path.read_text() == old


def test_a_failing_disk_is_one_sentence(tmp_path):
    path = tmp_path / "out.txt"
    with (
        pytest.raises(DataError, match=r"out\.txt cannot be written: No space left"),
        files.written_aside(path),
    ):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path):
    for path in (tmp_path / "none" / "out.txt", tmp_path / ("x" * 300)):
        with pytest.raises(DataError, match="cannot be written"):
            files.write_text(path, "text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        files.write_text(tmp_path / "folder", "text")
    assert os.listdir(tmp_path) == ["folder"]


def test_special_files_are_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(DataError, match="cannot be written"):
        files.write_text(path, "text")
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002, 0o027])
def test_permissions_follow_the_umask(tmp_path, umask):
    old = os.umask(umask)
    try:
        files.write_text(tmp_path / "out.txt", "text")
        assert os.umask(umask) == umask
    finally:
        os.umask(old)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_text_is_utf_8_whatever_the_locale(tmp_path):
    files.write_text(tmp_path / "a.txt", "größe 🙂\n")
    assert (tmp_path / "a.txt").read_bytes() == "größe 🙂\n".encode()
