"""Temporary folders that are removed even after a crash.

A process that is killed cannot remove its folder, so the next one does: a folder is locked while it
is in use, and before a new one is made, all unlocked ones are removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def folder(kind: str) -> Iterator[str]:
    """Make a folder for this kind of content and remove it at the end. First remove older ones that
    a crash left behind.
    """
    _remove_stale(kind)
    # under another name until it is locked, or another process might remove it
    made = Path(tempfile.mkdtemp(prefix="discreet-new-"))
    lock = _locked(made)
    try:
        path = made.rename(made.with_name(made.name.replace("-new-", f"-{kind}-", 1)))
        try:
            yield str(path)
        finally:
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _remove_stale(kind: str) -> None:
    """Remove this user's folders that are not locked. A folder without its final name may be about
    to be locked, so it must also be old.
    """
    place = Path(tempfile.gettempdir())
    for path in (*place.glob(f"discreet-{kind}-*"), *place.glob("discreet-new-*")):
        with suppress(OSError):  # in use, another user's, or already removed
            if path.name.startswith("discreet-new-") and time.time() - path.stat().st_mtime < 60:
                continue
            lock = _locked(path)
            try:
                shutil.rmtree(path)
            finally:
                os.close(lock)


def _locked(path: Path) -> int:
    """Open and lock a folder of this user; the lock ends when the handle is closed. OSError if it
    is no such folder, or locked by another process.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle
