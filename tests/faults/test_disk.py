"""A full disk (a small tmpfs) under a SQLite store: 503 while it is full, nothing acknowledged
lost, and it goes on with room.
"""

import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress

import pytest

from discreet.collector.store import StoreDown, open_store
from faults.harness import (
    PATH,
    POOL,
    Load,
    assert_exactly_once,
    look_into,
    problems,
    running,
    seed,
    wait_for,
)

pytestmark = pytest.mark.xdist_group("faults")


class Disk:
    def __init__(self, folder, size):
        self.folder = folder
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "discreet", folder],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()[:100]}")

    def grow(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], check=True)

    def fill(self):
        """Leave no room; the file that takes it."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 10))
        return filler


@pytest.fixture
def disk(tmp_path):
    if sys.platform != "linux":
        pytest.skip("a tmpfs is mounted on Linux only")
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        yield Disk(folder, "2m")
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)


def fill_and_grow(folder, disk, workers, sizes, killed):
    with (
        running(folder, str(disk.folder / "store.sqlite"), workers) as service,
        Load(service, seed()) as load,
    ):
        for size in sizes:
            load.wait_for_answers()
            load.wait_for_refusals(20)
            if killed:  # and it comes up again on a full disk
                service.kill()
                service.start()
                load.wait_for_refusals(5)
            assert service.alive()
            disk.grow(size)
            load.wait_for_answers(5)
        assert_exactly_once(service, load.finish())
        assert service.stop() == 0
    assert problems(look_into(service.store), load.book) == []


def test_disk_full(tmp_path, disk):
    fill_and_grow(tmp_path, disk, 1, ["1g"], killed=False)


def test_a_full_disk_is_said_by_readyz(tmp_path, disk):
    """Also if the write-ahead log has room left from before, and nobody sends anything."""
    with running(tmp_path, str(disk.folder / "store.sqlite")) as service:
        wait_for("it answers", service.healthy)
        log, size = disk.folder / "store.sqlite-wal", -1
        while log.stat().st_size != size:  # until it is written again from its beginning
            size = log.stat().st_size
            body = b"".join(secrets.token_bytes(16) + report for report in POOL[:100])
            assert service.request("POST", PATH, body)[0] == 200
        for _ in range(3):
            assert service.request("GET", "/readyz")[0] == 200
        filler = disk.fill()
        for _ in range(3):
            assert service.request("GET", "/readyz")[0] == 503
        assert service.healthy()  # it can still be read
        assert b"discreet_ready 0\n" in service.request("GET", "/metrics")[2]
        filler.unlink()
        assert service.request("GET", "/readyz")[0] == 200
        assert service.stop() == 0
    assert {path.name for path in disk.folder.iterdir()} <= {"store.sqlite", "store.sqlite-lock"}


@pytest.mark.xdist_group("postgres")
def test_a_full_disk_of_postgresql_is_noticed(disk, postgres):
    """A database in a tablespace on the small disk."""
    disk.grow("32m")
    disk.folder.chmod(0o700)
    for folder in disk.folder.parents:
        if folder.owner() == disk.folder.owner() and folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o011)  # the server's user must get there
    shutil.chown(disk.folder, postgres.folder.owner(), postgres.folder.group())
    postgres.execute(f"CREATE TABLESPACE small LOCATION '{disk.folder}'")
    try:
        postgres.execute("CREATE DATABASE small TABLESPACE small")
        store = open_store(postgres.url("small"))
        try:
            store.can_write()
            filler = disk.fill()
            with pytest.raises(StoreDown):
                store.can_write()
            store.ping()
            filler.unlink()
            store.can_write()
        finally:
            store.close()
    finally:
        postgres.execute("DROP DATABASE IF EXISTS small WITH (FORCE)")
        postgres.execute("DROP TABLESPACE small")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("killed", [False, True])
def test_disk_full_again_and_again(tmp_path, disk, workers, killed):
    fill_and_grow(tmp_path, disk, workers, ["3m", "4m", "1g"], killed)
