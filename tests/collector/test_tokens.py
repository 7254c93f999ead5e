"""The organiser's token is replaced while the collector runs: the new one opens, the old one does
not, and no report is lost over it.
"""

import json
import os
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from collecting import TOKEN, frames, posting, serving, survey, web

from discreet.cli import main
from discreet.collector import tokens
from discreet.errors import DataError


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, and no token in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("DISCREET_TOKEN", "DISCREET_TOKEN_FILE"):
        monkeypatch.setenv(name, "")  # so that it is as before afterwards
        monkeypatch.delenv(name)
    return tmp_path


def token(*arguments):
    alone = CliRunner(env={"DISCREET_TOKEN_FILE": None})  # the command names it in the environment
    return alone.invoke(main, ["token", *arguments])


def test_a_new_token_replaces_the_old_one_at_once(here):
    tokens.make(Path("discreet.token"))
    old, place = tokens.read(), os.stat("discreet.token").st_ino
    with open("discreet.token") as reader:  # who reads just now has the old one whole
        told = token("--new")
        assert reader.read().strip() == old
    assert told.stdout == "The organiser's new token is in discreet.token.\n"
    assert tokens.read() != old and old not in told.output and tokens.read() not in told.output
    assert os.stat("discreet.token").st_ino != place
    assert os.stat("discreet.token").st_mode & 0o777 == 0o600
    assert [path.name for path in here.iterdir()] == ["discreet.token"]


def test_it_stays_with_its_owner(here):
    """Root replaces it for the collector's user."""
    tokens.make(Path("mine"))
    if os.geteuid() == 0:
        os.chown("mine", 10001, 10001)
    before = os.stat("mine")
    assert token("--new", "--token-file", "mine").exit_code == 0
    after = os.stat("mine")
    assert (before.st_uid, before.st_gid) == (after.st_uid, after.st_gid)
    assert before.st_ino != after.st_ino and after.st_mode & 0o777 == 0o600


def test_without_new_it_only_says_where_the_token_is(here, monkeypatch):
    told = token("--token-file", "mine")
    assert (told.exit_code, told.stdout) == (2, "") and "mine cannot be read" in told.stderr
    assert token("--new").exit_code == 0  # the first one is new, too
    made = tokens.read()
    assert token().stdout == "The organiser's token is in discreet.token.\n"
    assert json.loads(token("--json").stdout) == {
        "token_file": "discreet.token",
        "new": False,
        "tokens": 1,
    }
    assert tokens.read() == made
    monkeypatch.setenv("DISCREET_TOKEN", TOKEN)
    assert token().stdout == "The organiser's token is in the environment.\n"
    told = token("--new")
    assert told.exit_code == 2 and "change it there and start the collector again" in told.stderr
    for _ in range(2):  # who names a file means it, as with serve
        monkeypatch.setenv("DISCREET_TOKEN", TOKEN)
        told = token("--token-file", "mine", "--new")
        assert told.stdout == "The organiser's new token is in mine.\n" and Path("mine").exists()


def test_a_folder_that_takes_no_file_is_one_sentence(here):
    for path in ("nowhere/token", "discreet.token/token"):
        Path("discreet.token").write_text(TOKEN)
        with pytest.raises(DataError, match=f"the token file {path} cannot be replaced: No"):
            tokens.renew(Path(path))
        with pytest.raises(DataError, match=f"the token file {path} cannot be made: .* instead"):
            tokens.make(Path(path))
    assert [path.name for path in here.iterdir()] == ["discreet.token"]


def test_a_file_that_is_no_token_locks_nobody_out(here):
    path = Path("discreet.token")
    path.write_text(TOKEN)
    lock = tokens.TokenCheck.from_environment()
    assert lock.opens(f"Bearer {TOKEN}")
    for spoil in (lambda: path.write_text("short"), path.unlink):
        spoil()
        assert lock.opens(f"Bearer {TOKEN}") and not lock.opens("Bearer short")
    path.write_text("another-token-than-before")
    assert lock.opens("Bearer another-token-than-before") and not lock.opens(f"Bearer {TOKEN}")


def test_a_token_of_the_environment_does_not_look_at_a_file(here, monkeypatch):
    monkeypatch.setenv("DISCREET_TOKEN", TOKEN)
    lock = tokens.TokenCheck.from_environment()
    Path("discreet.token").write_text("another-token-than-before")
    assert lock.opens(f"Bearer {TOKEN}") and not lock.opens("Bearer another-token-than-before")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_running_collector_takes_the_new_token(here, workers):
    """Every worker, without a restart; uploads go on before and after."""
    made = survey("fixed")
    made.save("m.json")
    arguments = (here / "m.json", "--workers", workers)
    with serving(here, *arguments, token=None) as server:
        path, counted = "/v1/collections/fixed/estimate", 0

        def statuses(secret):
            head = {"Authorization": f"Bearer {secret}", "Connection": "close"}
            return {httpx.get(server.url + path, headers=head).status_code for _ in range(8)}

        def send():
            with web(server) as client:
                return client.post(**posting(made, frames(made, 3))).json()["accepted"]

        for _ in range(2):
            old = Path("discreet.token").read_text().strip()
            counted += send()
            assert statuses(old) == {200}
            assert token("--new").exit_code == 0
            counted += send()
            new = Path("discreet.token").read_text().strip()
            assert statuses(new) == {200} and statuses(old) == {401}
        head = {"Authorization": f"Bearer {new}"}
        assert httpx.get(server.url + path, headers=head).json()["n"] == counted == 12
        assert server.stop() == 0
