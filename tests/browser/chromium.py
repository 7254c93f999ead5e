"""Real processes for the tests of the pages: Chromium, `discreet serve`, a web host, a wire."""

import contextlib
import itertools
import os
import re
import secrets
import shutil
import socket
import socketserver
import sqlite3
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import httpx
import pytest

from discreet.collector import limits
from discreet.collector.store import open_store
from discreet.device.wire import ID_SIZE, upload_headers

TOKEN = "the organiser's token of these tests"
DEADLINE = 60.0  # seconds until something that must happen has not happened


def executable():
    """Chromium, or None."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    return found if Path(found).exists() else None


def missing():
    """Why the pages cannot be tried here, or None."""
    if executable() is None:
        return "chromium is not installed, so the pages cannot be tried"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed, so the pages cannot be tried"
    return None


@contextlib.contextmanager
def launched(*more):
    """Headless Chromium, with further arguments."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            *more,
        ]
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments)
        yield browser
        browser.close()


class Visitor:
    """Somebody with a browser. Every request and everything on the console is kept.

    A new context costs a second, so most tests share one that is emptied after each.
    """

    def __init__(self, browser, *allowed):
        self.context = browser.new_context()
        self.context.set_default_timeout(20_000)
        self.context.on("request", lambda request: self.requests.append(request))
        self.context.on("console", lambda message: self.console.append(message.text))
        self.context.on("weberror", lambda error: self.errors.append(str(error.error)))
        listen = (
            "document.addEventListener('securitypolicyviolation', "
            "({ violatedDirective, blockedURI }) =>"
        )
        self.context.add_init_script(
            listen + " console.error(`VIOLATION ${violatedDirective} ${blockedURI}`));"
        )
        self.page = self.context.new_page()
        self._size = self.page.viewport_size
        self.arrive(*allowed)

    def arrive(self, *allowed):
        """From now on only these may be talked to."""
        self.allowed = (*allowed, "data:", "blob:", "about:")
        self.requests, self.console, self.errors = [], [], []

    def open(self, url):
        """Go there, in the first tab."""
        if self.page.url.partition("#")[0] == url.partition("#")[0]:
            self.page.goto("about:blank")  # another fragment alone would not load the page anew
        self.page.bring_to_front()
        self.page.goto(url)
        return self.page

    def another(self, url):
        """A further tab."""
        page = self.context.new_page()
        page.goto(url)
        return page

    def posts(self):
        """What was uploaded, in order."""
        return [request.post_data_buffer for request in self.requests if request.method == "POST"]

    def violations(self):
        return [
            text
            for text in self.console
            if "VIOLATION" in text or "Content Security Policy" in text
        ]

    def leave(self):
        """Forget everything; only the collector was talked to, and no page broke a rule or fell."""
        self._forget()
        elsewhere = [r.url for r in self.requests if not r.url.startswith(self.allowed)]
        assert not elsewhere, f"requests to another host: {elsewhere}"
        assert not self.violations(), self.violations()
        assert not self.errors, self.errors
        strange = [text for text in self.console if not text.startswith("Failed to load resource")]
        assert not strange, strange

    def _forget(self):
        self.context.unroute_all()
        for page in self.context.pages[1:]:
            page.close()
        if self.page.url.startswith("http"):
            self.page.wait_for_load_state()
            self.page.evaluate("sessionStorage.clear()")
        session = self.context.new_cdp_session(self.page)
        for origin in {
            urljoin(r.url, "/")[:-1] for r in self.requests if r.url.startswith("http")
        } | {"file://"}:
            session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        session.detach()
        self.context.clear_cookies()
        self.page.goto("about:blank")
        self.page.set_viewport_size(self._size)
        self.page.emulate_media(color_scheme="light", reduced_motion="no-preference")


class Server:
    """`discreet serve` in a folder of its own; FILEs are the surveys, saved there, and more."""

    def __init__(self, folder, surveys, *arguments):
        self.folder = folder
        for k, survey in enumerate(surveys):
            survey.save(folder / f"{k}.json")
        files = [f"{k}.json" for k in range(len(surveys))]
        command = [
            Path(sys.executable).with_name("discreet"),
            "serve",
            *files,
            *arguments,
            "--port",
            "0",
        ]
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "DISCREET_TOKEN": TOKEN},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self._wait_until(lambda: "Collecting" in self.said("stdout"))
        found = re.findall(
            r"^(.*)\n  invitation  (\S+)\n  results     (\S+)$", self.said("stdout"), re.MULTILINE
        )
        self.links = {name: link for name, link, _ in found}
        self.results = {name: link for name, _, link in found}
        first = urlsplit(found[0][1])
        self.base, self.port = f"{first.scheme}://{first.netloc}", first.port
        self.http = httpx.Client(timeout=DEADLINE)
        self._wait_until(self._answers)

    def _wait_until(self, condition):
        end = time.monotonic() + DEADLINE
        while not condition():
            assert self.process.poll() is None, self.said("stderr")
            assert time.monotonic() < end, "the server does not come up"
            time.sleep(0.02)

    def _answers(self):
        with contextlib.suppress(httpx.TransportError):
            return self.http.get(f"{self.base}/healthz").status_code == 200
        return False

    def said(self, stream):
        return (self.folder / stream).read_text(encoding="utf-8")

    def api(self, name, rest=""):
        return f"{self.base}/v1/collections/{quote(name, safe='')}{rest}"

    def estimate(self, name, **given_options):
        """What the service says to the organiser."""
        found = httpx.get(
            self.api(name, "/estimate"),
            params=given_options,
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=DEADLINE,
        )
        assert found.status_code == 200, found.text
        return found

    def n(self, name):
        return self.estimate(name).json()["n"]

    def upload(self, survey, reports):
        """Reports of other people, with what stands before them in a frame."""
        headers, path = upload_headers(survey.fingerprint), self.api(survey.name)
        for k in range(0, len(reports), limits.FRAMES):
            some = reports[k : k + limits.FRAMES]
            body = b"".join(secrets.token_bytes(ID_SIZE) + bytes(report) for report in some)
            found = self.http.post(f"{path}/reports", content=body, headers=headers)
            assert found.status_code == 200, found.text

    def close_collection(self, name):
        store = open_store(str(self.folder / "discreet.sqlite"))
        store.close_collection(name)
        store.close()

    def stored(self):
        """Everything in the store, as SQL, but the random places of reports that wait."""
        place = re.compile(r'(?<=INSERT INTO "waiting" VALUES\()(\d+),X\'\w{32}\'')
        with contextlib.closing(sqlite3.connect(self.folder / "discreet.sqlite")) as store:
            return sorted(place.sub(r"\1", line) for line in store.iterdump())

    def stop(self):
        self.http.close()
        self.process.terminate()
        assert self.process.wait(DEADLINE) == 0, self.said("stderr")


# ---- fixtures: a test module that imports them defines `surveys()`


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    """`discreet serve` with the surveys of the test module."""
    running = Server(tmp_path_factory.mktemp("server"), [*request.module.surveys().values()])
    yield running
    running.stop()


@pytest.fixture(scope="module")
def browser():
    with launched() as running:
        yield running


@pytest.fixture
def visitor(browser, server):
    """Somebody with a new browser context."""
    person = Visitor(browser, server.base)
    yield person
    person.context.set_offline(False)
    person.leave()
    person.context.close()


# ---- the steps of a participant


def asked(visitor, link):
    """The page, with its question."""
    page = visitor.open(link)
    page.locator("#form").wait_for()
    return page


def to_front(page):
    """Show this tab, or that of this frame. One behind another paints once a second, and every
    click waits for two pictures.
    """
    page.locator(":root").page.bring_to_front()


def confirmed(page):
    """Go on with what is chosen, and confirm it where nothing is drawn yet."""
    to_front(page)
    if page.locator("#own").is_visible():
        page.locator("#agree-own").check()
    page.locator("#prepare").click()
    page.locator("#sure, #check").filter(visible=True).wait_for()
    if page.locator("#sure").is_visible():
        page.locator("#go").click()


def prepared(page, *labels):
    """Choose these answers and draw the report."""
    to_front(page)
    for label in labels:
        page.get_by_label(label, exact=True).check()
    confirmed(page)
    page.locator("#check").wait_for()
    look_closely(page)


def look_closely(page):
    """Open what stands behind a click: the exact promise, what a report means, and the proof."""
    page.evaluate("exact.open = precisely.open = proof.open = true")


def answered(page, *labels):
    """The same, and send it."""
    prepared(page, *labels)
    page.locator("#send").click()
    page.locator("#receipt").wait_for()


def check_axe(page):
    """Nothing serious that axe-core knows of."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    serious = [
        (rule["id"], rule["impact"], [node["target"] for node in rule["nodes"]][:3])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert not serious, serious


# ---- other processes


def command(folder, *arguments):
    """What a command prints."""
    done = subprocess.run(
        [Path(sys.executable).with_name("discreet"), *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def hosted(folder):
    """The origin of a plain web host of this folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as host:
        host.daemon_threads = True
        threading.Thread(target=host.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{host.server_port}"
        host.shutdown()


class Wire:
    """A relay to a server that keeps every byte which the browser sends: no page can hide one."""

    def __init__(self):
        self.target = None  # a port; changing it gives the same address to another server
        self.streams = []
        self._serial = itertools.count()
        wire = self

        class Relay(socketserver.BaseRequestHandler):
            def handle(self):
                wire._relay(self.request)

        self._listener = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay)
        self._listener.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._listener.server_address[1]}"
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()

    def _relay(self, browser):
        with socket.create_connection(("127.0.0.1", self.target)) as server:
            back = threading.Thread(target=_pump, args=(server, browser), daemon=True)
            back.start()
            serial = next(self._serial)
            _pump(browser, server, lambda data: self.streams.append((serial, data)))
            back.join(DEADLINE)

    def take(self):
        """Every request since the last call, whole, in the order of their beginnings."""
        streams, self.streams = self.streams, []
        rest, found = {}, []
        for connection, data in streams:
            if not rest.get(connection):
                found.append([connection, b""])
            place = max(k for k, (owner, _) in enumerate(found) if owner == connection)
            found[place][1] += data
            rest[connection] = _incomplete(found[place][1])
        return [request for _, request in found]

    def close(self):
        self._listener.shutdown()
        self._listener.server_close()


def _incomplete(request):
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\ncontent-length: *(\d+)", head)
    return not end or len(body) < int(length[1] if length else 0)


def _pump(source, sink, keep=lambda _: None):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            keep(data)
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
