"""Request smuggling, written as an attacker would: bytes that are the body of one request to a
proxy, and requests of their own to a collector that leaves the body unread.
"""

import sqlite3
import time
from contextlib import closing, suppress

from collecting import body, ids, people, posting

HOST = "survey.example.org"


def upload_request(made, content, length=None, *lines):
    """An upload as bytes; `length` is what its head claims."""
    head = [
        f"POST /v1/collections/{made.name}/reports HTTP/1.1",
        f"Host: {HOST}",
        "Content-Type: application/octet-stream",
        f"Discreet-Survey: {made.fingerprint}",
        f"Content-Length: {len(content) if length is None else length}",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode() + content


def stored(folder):
    """The ids of the reports in the store."""
    with closing(sqlite3.connect(f"file:{folder / 'discreet.sqlite'}?mode=ro", uri=True)) as db:
        return {id_ for (id_,) in db.execute("SELECT id FROM report")}


def attack(line, made):
    """Ask for something with an upgrade. The body holds an upload, whose answer is meant for the
    next person, and the head of another one, whose body the next person's report shall be.
    """
    own = body(
        ids(3000), people(made, 3000)
    )  # many, so that the answer comes after the next request
    inside = upload_request(made, own) + upload_request(made, b"", 600)
    head = f"GET /readyz HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(inside)}\r\n"
    line.sendall((head + "Connection: Upgrade\r\nUpgrade: x\r\n\r\n").encode())
    time.sleep(0.003)  # the collector reads the head by itself
    line.sendall(inside)
    with suppress(OSError):
        line.recv(1 << 16)


def lost_reports(proxy, folder, made, rounds):
    """Attack through a proxy, and let somebody send a report right after: the ids of the reports
    that were acknowledged, and those of them that are not in the store.
    """
    acknowledged = set()
    rows = people(made, 1)
    with proxy.visitor() as client:
        for _ in range(rounds):
            some = ids(1)
            client.get("/healthz")  # the connection to the proxy is open
            with proxy.line() as line:
                attack(line, made)
                answer = client.post(**posting(made, body(some, rows)))
            if answer.status_code == 200:
                acknowledged.update(some)
    return acknowledged, acknowledged - stored(folder)
