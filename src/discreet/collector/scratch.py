"""Folders in the temporary directory that do not outlive their process for long.

A process that is killed cannot remove its folder. The next one does: a folder is locked while it
is in use, and whoever makes a new one removes those that nobody has locked.
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
    """A new folder for this kind of content, removed at the end; older ones that were left behind
    are removed now.
    """
    _remove_stale(kind)
    # under another name until it is locked, so that nobody takes it for one that was left behind
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
    """Those of this user that nobody has locked. One without its final name may be locked any
    moment, unless it has been there for long.
    """
    place = Path(tempfile.gettempdir())
    for path in (*place.glob(f"discreet-{kind}-*"), *place.glob("discreet-new-*")):
        with suppress(OSError):  # in use, somebody else's, or gone meanwhile
            if path.name.startswith("discreet-new-") and time.time() - path.stat().st_mtime < 60:
                continue
            lock = _locked(path)
            try:
                shutil.rmtree(path)
            finally:
                os.close(lock)


def _locked(path: Path) -> int:
    """An open folder of this user that is locked for as long as it is open; OSError if it is not
    one, or locked by another process.
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
