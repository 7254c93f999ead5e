"""A full disk (a small tmpfs) under a SQLite store: 503 while it is full, nothing acknowledged
lost, and it goes on with room.
"""

import subprocess
import sys

import pytest

from faults.harness import Load, assert_exactly_once, look_into, problems, running, seed

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


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("killed", [False, True])
def test_disk_full_again_and_again(tmp_path, disk, workers, killed):
    fill_and_grow(tmp_path, disk, workers, ["3m", "4m", "1g"], killed)
