import threading
from types import SimpleNamespace

import pytest
from pretending import Fake

from discreet.device import network


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A ledger of the test's own, wherever the client looks for one."""
    monkeypatch.setenv("DISCREET_LEDGER", str(tmp_path / "ledger.json"))
    return tmp_path / "ledger.json"


@pytest.fixture
def clock(monkeypatch):
    """Time passes only when the client pauses; what it paused is kept."""
    found = SimpleNamespace(now=0.0, pauses=[])

    def sleep(seconds):
        found.pauses.append(seconds)
        found.now += seconds

    monkeypatch.setattr(network, "time", SimpleNamespace(monotonic=lambda: found.now, sleep=sleep))
    return found


@pytest.fixture
def fake():
    """Makes fake collectors that end with the test."""
    made = []

    def make(*surveys):
        server = Fake(*surveys)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        made.append((server, thread))
        return server

    yield make
    for server, thread in made:
        server.shutdown()
        server.server_close()
        thread.join()
