"""What the tests of the collector share: surveys of every kind of question, people, bodies, and a
real `discreet serve`.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from parts import changed

import discreet as d
from discreet.collector.store import Upload
from discreet.device.wire import front
from discreet.survey import Question
from discreet.survey.crosses import cross

DISCREET = Path(sys.executable).with_name("discreet")
TOKEN = "a-token-of-the-organiser"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
DEADLINE = 60.0  # seconds after which a real process is given up; nothing waits that long
_MODELS = {
    "bits": ("opt0", {}),
    "ticket": ("opt0", {"encoding": "ticket"}),
    "fixed": ("subset", {}),
    "grr": ("grr", {}),
    "ticket parts": ("subset", {"encoding": "ticket"}),
    "set": ("subset", {"padding": 2, "encoding": "bits"}),  # one sampled item
    "hits": ("hits", {"padding": 2}),
    "picks": ("subset", {"padding": 2}),
    "each": ("each", {}),
}
KINDS = (*_MODELS, "bits parts")


def policy(sizes=(2, 3, 6), eps=1.0, **settings):
    rows = [
        (level, round(eps * factor, 6), [f"{level} {k}" for k in range(size)])
        for level, factor, size in zip(("high", "middle", "low"), (1, 1.2, 2), sizes)
    ]
    return d.Policy.from_levels(rows, question="Which one?", **settings)


@cache
def mechanism(kind="bits"):
    """A small mechanism of this kind."""
    if kind == "bits parts":
        return _with_silence(mechanism("bits"))
    model, settings = _MODELS[kind]
    answers = {"set": "set", "hits": "set", "picks": "set", "each": "each"}.get(kind, "single")
    made = d.design(policy(kind=answers), model, goal="total", **settings)
    usual = {"subset": "fixed", "grr": "fixed", "opt0": "bits", "hits": "hits", "each": "each"}
    ticket = settings.get("encoding") == "ticket"
    expected = "picks" if kind == "picks" else "ticket" if ticket else usual[model]
    assert made.encoding.kind == expected
    assert (len(made.parts) > 1) == (model in ("subset", "hits"))
    return made


@cache
def survey(kind="bits", name=None):
    """A survey of one question of this kind, in a collection of this name (the kind's, unless
    told).
    """
    return d.Survey(name or kind, [mechanism(kind)])


REGION = {"name": "region", "text": "Where do you work?", "items": ["north", "south", "west"]}
SHIFT = {"name": "shift", "text": "When do you work?", "items": ["day", "night"]}


@cache
def several(name="several", answers=1):
    """Three questions whose reports are of different widths, a cross of two of them, and two public
    questions.
    """
    age = d.Policy.from_levels([("age", 2, ["young", "old"])], question="How old?")
    ill = d.Policy.from_levels(
        [("serious", 1, ["HIV"]), ("mild", 2, ["flu", "cold", *(f"ache {k}" for k in range(7))])],
        question="What?",
    )
    wide = policy(sizes=(8, 8, 8))
    asked = {"age": age, "ill": ill, "wide": wide}
    made = {key: d.design(each.divided(answers), "opt0") for key, each in asked.items()}
    crossed = d.design(cross(age, ill).divided(answers), "opt0")
    listed = [Question(key, each) for key, each in made.items()]
    listed.append(Question("age × ill", crossed, ("age", "ill")))
    return d.Survey(name, listed, None, answers, public=[REGION, SHIFT])


def _with_silence(one):
    """The same bits in two parts; the first says nothing about the first level, which no design
    does.
    """
    (part,), half = one.parts, 2**31
    whole = changed(part, chance=[half] * len(part.ints.chance))
    quiet = changed(whole, own=(0, *part.ints.own[1:]), other=(0, *part.ints.other[1:]))
    return replace(one, model="subset", parts=(quiet, whole), certificate=None)


def spoiled(kind, report):
    """A report of this kind with one thing wrong: (reason, bytes), one of every reason there is."""
    made = mechanism(kind)
    found = [("length", report[:-1]), ("length", report + b"\0"), ("length", b"")]
    if made.encoding.as_uint32:
        last = len(made.parts) * made.encoding.tickets
        return [*found, ("ticket", last.to_bytes(4, "little")), ("ticket", b"\xff" * 4)]
    front = len(made.parts) > 1
    if made.encoding.kind == "hits":
        found += [("residue", report[:k] + b"\xf1\xff" + report[k + 2 :]) for k in (1, 3, 7)]
        return [*found, *(("part", bytes([k]) + report[1:]) for k in (len(made.parts), 255))]
    if front:
        found += [("part", bytes([k]) + report[1:]) for k in (len(made.parts), 255)]
    if made.encoding.kind == "picks":
        return [*found, *_spoiled_picks(made)]
    found += [("tail", report[:-1] + bytes([report[-1] | bit])) for bit in (0x08, 0x80)]
    if made.encoding.fixed_size:
        found.append(
            ("size", bytes([report[front] ^ 1 if k == front else x for k, x in enumerate(report)]))
        )
    elif front:  # "high 0" is item 0; part 0 says nothing about it
        found.append(("silent", bytes([0, report[1] | 1, report[2]])))
    assert {reason for reason, _ in found} - {"length"} <= set(made.coder.reasons)
    return found


def _spoiled_picks(made):
    """Numbers of items and bits of items, each with one thing wrong."""
    blocks = [
        (o, b, layout) for o, layout in enumerate(made.coder.layouts) for b in range(len(layout.m))
    ]
    pair = next((o, b) for o, b, x in blocks if x.k[b] and x.widths[b] and x.m[b] % 2)
    bits = next((o, b) for o, b, x in blocks if not x.widths[b])

    def report(place, body):
        """All other blocks as they may be; this body in this block."""
        o, b = place
        layout = made.coder.layouts[o]
        first, used = sum(layout.bits[:b]), layout.bits[b]
        usual = layout.write([range(k) for k in layout.k])
        body = usual & ~(((1 << used) - 1) << first) | body << first
        return bytes([o]) + body.to_bytes(made.encoding.size - 1, "little")

    def beyond(place):
        return report(place, 1 << sum(made.coder.layouts[place[0]].bits[place[1] :]))

    (o, b), (p, c) = pair, bits
    layouts = made.coder.layouts
    width, m, k = layouts[o].widths[b], layouts[o].m[b], layouts[p].k[c]
    return [
        ("tail", beyond(pair)),
        *([("tail", beyond(bits))] if sum(layouts[p].bits) % 8 else []),
        ("size", report(bits, (1 << k + 1) - 1)),
        ("order", report(pair, m << width * (layouts[o].k[b] - 1))),
    ]


@cache
def long_survey(name="long"):
    """Reports of 50 bytes: long enough to be looked for."""
    return d.Survey(name, [d.design(policy(sizes=(100, 100, 200)), "opt0")])


def people(made, n, seed=0):
    """Reports of n people on the question of a survey."""
    asked = made.mechanism if isinstance(made, d.Survey) else made
    answers = np.random.default_rng(seed).integers(asked.m, size=n)
    given = [{int(k)} for k in answers] if asked.policy.kind.lists else answers
    return asked.perturb_many(given, indices=True)


def crowd(made, n, seed=0):
    """Contents of n frames of a survey, as n people would send them that answer one question: what
    stands before the report, and the report.
    """
    rng, contents = np.random.default_rng(seed), []
    for place, share in enumerate(np.bincount(rng.integers(len(made.listed), size=n))):
        reports = people(made.listed[place].mechanism, int(share), seed + place)
        for report in reports:
            group = [int(rng.integers(len(public.items))) for public in made.public]
            contents.append(front(made, place, group) + report.tobytes())
    return [contents[k] for k in rng.permutation(n)]


def ids(n):
    return [os.urandom(16) for _ in range(n)]


def upload(made, some, rows=None):
    """An upload of reports on the only question of a survey."""
    rows = people(made, len(some)) if rows is None else rows
    return Upload(made.name, list(some), [bytes(row) for row in rows])


def body(some, rows):
    """Frames as they are sent."""
    return b"".join(id_ + bytes(row) for id_, row in zip(some, rows, strict=True))


def frames(made, n, seed=0):
    return body(ids(n), people(made, n, seed))


def posting(made, content, **headers):
    """The request of an upload, for httpx."""
    return {
        "url": f"/v1/collections/{made.name}/reports",
        "content": content,
        "headers": {
            "Content-Type": "application/octet-stream",
            "Discreet-Survey": made.fingerprint,
            **headers,
        },
    }


def web(server, **settings):
    """A client of a running collector."""
    import httpx

    return httpx.Client(
        base_url=server.url, timeout=DEADLINE, trust_env=False, verify=False, **settings
    )


STRICT = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
}


def assert_strict(answer):
    for name, value in STRICT.items():
        assert answer.headers.get_list(name) == [value]
    assert answer.headers["cache-control"] in ("no-store", "no-cache")
    rules = answer.headers["content-security-policy"]
    assert (
        rules.startswith("default-src 'none'; ") and "unsafe" not in rules and "http" not in rules
    )
    assert not {"set-cookie", "server", "x-powered-by", "access-control-allow-credentials"} & set(
        answer.headers
    )


def until(true, what, seconds=DEADLINE):
    """Ask again and again until it is so."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"still not after {seconds} s: {what}"
        time.sleep(0.02)
    return found


class Server:
    """`discreet serve` in a process of its own, on a free port of loopback; `before` is Python run
    in it first.
    """

    def __init__(self, folder, *arguments, before="", token=TOKEN):
        self.folder = Path(folder)
        start = (
            [sys.executable, "-c", f"{before}\nfrom discreet.cli import main\nmain()"]
            if before
            else [str(DISCREET)]
        )
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("DISCREET_")
        }
        environment |= {"DISCREET_TOKEN": token} if token else {}
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        environment["TMPDIR"] = str(self.temporary)
        self.files = (
            self.folder / f"out{time.monotonic_ns()}",
            self.folder / f"err{time.monotonic_ns()}",
        )
        with self.files[0].open("wb") as out, self.files[1].open("wb") as err:
            self.process = subprocess.Popen(
                [*start, "serve", *map(str, arguments), "--port", "0"],
                cwd=folder,
                stdout=out,
                stderr=err,
                env=environment,
            )

    @property
    def output(self):
        return self.files[0].read_text()

    @property
    def log(self):
        return self.files[1].read_text()

    def ready(self):
        """Wait until it answers; it may have been asked to come up with a mistake."""
        until(
            lambda: "Collecting" in self.output or self.process.poll() is not None,
            "the collector has started",
        )
        assert self.process.poll() is None, self.log
        said = r"(?:invitation +|Listening on |desk is at )(http://[^/\s]+[0-9])"
        self.url = re.search(said, self.output)[1]
        self.port = int(self.url.rsplit(":", 1)[1])
        until(self._answers, "the collector answers")
        return self

    def _answers(self):
        """Whether a worker does: the socket takes connections before."""
        try:
            with self.connect() as line:
                line.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                return bool(line.recv(1))
        except OSError:
            assert self.process.poll() is None, self.log
            return False

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)

    def stop(self, sign=signal.SIGTERM):
        """Ask it to stop and wait; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        return self.process.wait(DEADLINE)


@contextmanager
def serving(folder, *arguments, **settings):
    """A running collector."""
    server = Server(folder, *arguments, **settings)
    try:
        yield server.ready()
    finally:
        if server.process.poll() is None:
            server.process.terminate()
        try:
            server.process.wait(DEADLINE)
        finally:
            server.process.kill()
            server.process.wait()


@contextmanager
def listening(application):
    """An application behind a real socket of loopback, in a thread of this process; its URL."""
    import uvicorn

    from discreet.collector.connections import TimedProtocol
    from discreet.collector.server import listen

    sock = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            application,
            http=TimedProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the server has started")
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(DEADLINE)
        sock.close()
