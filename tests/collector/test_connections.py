"""What one connection can do to others: bodies that are left unread, large heads, crowds of slow
bodies. A real server process, spoken to in bytes.
"""

import re
import socket
from contextlib import ExitStack, contextmanager

import pytest
from collecting import (
    BEARER,
    DEADLINE,
    body,
    frames,
    ids,
    people,
    posting,
    serving,
    survey,
    until,
    web,
)
from smuggling import stored, upload_request
from test_collector_process import heard, heard_one

from discreet.collector import limits

MADE = survey("fixed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("connections")
    MADE.save(found / "m.json")
    return found


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder, folder / "m.json") as running:
        yield running


def request(line, length, *headers):
    return "\r\n".join([line, "Host: x", f"Content-Length: {length}", *headers, "", ""]).encode()


# ---- bodies that are left unread -----------------------------------------------------------------

REPORTS = f"POST /v1/collections/{MADE.name}/reports HTTP/1.1"
BINARY = "Content-Type: application/octet-stream"
MARK = f"Discreet-Survey: {MADE.fingerprint}"
UPGRADE = ("Connection: Upgrade", "Upgrade: x")
EXPECT = "Expect: 100-continue"
UNREAD = {
    "an upgrade": ("GET /readyz HTTP/1.1", *UPGRADE),
    "an upgrade to HTTP/2": (
        "GET / HTTP/1.1",
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
    ),
    "an upgrade to web sockets": (
        "GET / HTTP/1.1",
        "Connection: keep-alive, upgrade",
        "Upgrade: websocket",
    ),
    "an upload with an upgrade": (REPORTS, BINARY, MARK, *UPGRADE),
    "a tunnel": ("CONNECT survey.example.org:443 HTTP/1.1",),
    "expect": ("GET /healthz HTTP/1.1", EXPECT),
    "expect of an upload that is refused": (REPORTS, EXPECT),
    "nothing there": ("POST /nothing HTTP/1.1", BINARY),
    "another method": ("PUT /healthz HTTP/1.1", BINARY),
    "HEAD": ("HEAD /healthz HTTP/1.1",),
    "a body of GET": ("GET /v1/collections HTTP/1.1",),
    "another type": (REPORTS, "Content-Type: text/plain", MARK),
    "another survey": (REPORTS, BINARY, "Discreet-Survey: x"),
    "an unknown collection": ("POST /v1/collections/none/reports HTTP/1.1", BINARY, MARK),
}


@pytest.mark.parametrize("head", UNREAD.values(), ids=UNREAD)
def test_a_body_is_never_taken_for_requests(server, folder, head):
    """Each body is an upload, sent once the answer is here. It must not be counted."""
    some = ids(1)
    inside = upload_request(MADE, body(some, people(MADE, 1)))
    with server.connect() as line:
        line.sendall(request(head[0], len(inside), *head[1:]))
        first = line.recv(1 << 16) if head[0] != REPORTS and "none" not in head[0] else b""
        try:
            line.sendall(inside)
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        answers = first + heard(line)
    assert b'"accepted"' not in answers and not stored(folder) & set(some)
    if "pgrade" in "".join(head) or head[0].startswith("CONNECT"):
        assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"400"]
        assert b"connection: close" in answers and b"application/problem+json" in answers


@pytest.mark.parametrize("path", ["/healthz", "/nothing"])
def test_an_answer_before_the_body_is_the_last_one(server, path):
    """A client that expects 100-continue may leave the body out after such an answer. Its next
    request must not become the body.
    """
    with server.connect() as line:
        line.sendall(request(f"GET {path} HTTP/1.1", 1000, EXPECT))
        answer = heard_one(line)
        assert b"100 Continue" not in answer and b"connection: close" in answer
        assert heard(line) == b""


def test_whoever_sends_a_whole_request_keeps_the_connection(server):
    """The twin: the same requests with their body, and uploads that are refused."""
    content = frames(MADE, 1)
    with server.connect() as line:
        for head, inside in (
            (("GET /healthz HTTP/1.1",), b"1234"),
            ((REPORTS, BINARY), content),
            ((REPORTS, MARK), content),
            ((REPORTS, BINARY, MARK), content + b"x"),
            ((REPORTS, BINARY, MARK), content),
        ):
            line.sendall(request(head[0], len(inside), *head[1:]) + inside)
            answer = heard_one(line)
            assert b"connection: close" not in answer
        assert answer.endswith(b'{"accepted":1,"duplicates":0}')


def test_an_upgrade_does_not_overtake_an_upload(server):
    """Both in one packet: the upload is answered first."""
    content = frames(MADE, 2)
    with server.connect() as line:
        line.sendall(
            request(REPORTS, len(content), BINARY, MARK)
            + content
            + request("GET / HTTP/1.1", 0, *UPGRADE)
        )
        assert heard_one(line).endswith(b'{"accepted":2,"duplicates":0}')
        assert heard_one(line).startswith(b"HTTP/1.1 400 ")
        assert heard(line) == b""
    assert "WebSocket" not in server.log


# ---- heads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 100], ids=["one header", "many headers"])
@pytest.mark.parametrize("after", [b"", b"\r\n\r\n"], ids=["open", "complete"])
def test_a_head_beyond_the_limit_is_refused(server, count, after):
    """In one piece, so that it is complete when its size is known; and one that is not."""
    each = 100_000 // count
    lines = b"".join(b"\r\nX-%d: " % k + b"y" * each for k in range(count))
    with server.connect() as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x" + lines + after)
        answer = heard(line)
    assert answer.startswith(b"HTTP/1.1 431 ") and answer.count(b"HTTP/1.1") == 1
    assert f"at most {limits.HEAD_SIZE:,} bytes".encode() in answer and b"nosniff" in answer


def test_a_long_address_is_a_large_head_too(server):
    with server.connect() as line:
        line.sendall(b"GET /" + b"y" * limits.HEAD_SIZE + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert heard(line).startswith(b"HTTP/1.1 431 ")


def test_a_head_within_the_limit_is_read(server):
    with server.connect() as line:
        line.sendall(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nLong: "
            + b"y" * (limits.HEAD_SIZE - 100)
            + b"\r\n\r\n"
        )
        assert heard_one(line).startswith(b"HTTP/1.1 200 ")


# ---- crowds --------------------------------------------------------------------------------------

FEW = "from discreet.collector import limits\nlimits.CONNECTIONS = 20"


def gauge(client, name):
    found = client.get("/metrics", headers=BEARER).text
    return int(re.search(rf"\ndiscreet_{name} (\d+)\n", found)[1])


CONTENT = frames(MADE, 1)


@contextmanager
def slow(server, count, source="127.0.0.1"):
    """Uploads whose body lacks its last byte."""
    with ExitStack() as stack:
        lines = []
        for _ in range(count):
            address = "127.0.0.1", server.port
            line = socket.create_connection(address, DEADLINE, source_address=(source, 0))
            lines.append(stack.enter_context(line))
            line.sendall(request(REPORTS, len(CONTENT), BINARY, MARK) + CONTENT[:-1])
        yield lines


def bodies_begun(client, count):
    """Wait until the server has the beginning of so many bodies."""
    size = count * (len(CONTENT) - 1)
    until(lambda: gauge(client, "uploads_waiting_bytes") == size, f"{count} bodies")


def test_slow_bodies_do_not_shut_others_out(tmp_path, folder):
    """Three times as many as there may be connections. Visitors are served, and whoever must give
    way is asked to come back.
    """
    with serving(tmp_path, folder / "m.json", before=FEW) as server, slow(server, 15) as first:
        with web(server) as organiser:
            bodies_begun(organiser, 15)
        with slow(server, 45) as more:
            for _ in range(5):
                with web(server) as visitor:
                    assert visitor.post(**posting(MADE, frames(MADE, 1))).json()["accepted"] == 1
                    assert visitor.get("/healthz").status_code == 200
            for line in first:
                answer = heard(line)
                assert answer.startswith(b"HTTP/1.1 503 ") and answer.count(b"HTTP/1.1") == 1
                for words in (b"retry-after", b"nosniff", b"connection: close"):
                    assert words in answer
            more[-1].sendall(CONTENT[-1:])  # the newest is still there
            assert heard_one(more[-1]).endswith(b'{"accepted":1,"duplicates":0}')
        with web(server) as organiser:
            until(lambda: gauge(organiser, "connections") == 1, "the crowd is gone")
            bodies_begun(organiser, 0)
    assert len(stored(tmp_path)) == 6 and "Traceback" not in server.log


def test_the_address_with_most_connections_gives_way(tmp_path, folder):
    """One slow body of somebody else stays, though it has waited longest."""
    with (
        serving(tmp_path, folder / "m.json", before=FEW) as server,
        slow(server, 1, "127.0.0.9") as (other,),
    ):
        with web(server) as organiser:
            bodies_begun(organiser, 1)
        with slow(server, 10) as first:
            with web(server) as organiser:
                bodies_begun(organiser, 11)
            with slow(server, 50):
                assert heard(first[0]).startswith(b"HTTP/1.1 503 ")
                other.sendall(CONTENT[-1:])
                assert heard_one(other).endswith(b'{"accepted":1,"duplicates":0}')


UNREAD_SOON = "from discreet.collector import limits\nlimits.UNREAD_SECONDS = 0.5"


@contextmanager
def deaf(server, count):
    """Clients that ask for page after page and read none of them."""
    asked = f"GET /c/{MADE.name} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 100
    with ExitStack() as stack:
        for _ in range(count):
            line = stack.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            line.settimeout(DEADLINE)
            line.connect(("127.0.0.1", server.port))
            line.sendall(asked)
        yield


def test_clients_that_do_not_read_shut_nobody_out(tmp_path, folder):
    """Three times as many as there may be connections; their answers are never read."""
    with (
        serving(tmp_path, folder / "m.json", before=FEW) as server,
        deaf(server, 45),
    ):
        for _ in range(5):
            with web(server) as visitor:
                assert visitor.post(**posting(MADE, frames(MADE, 1))).json()["accepted"] == 1
    assert len(stored(tmp_path)) == 5 and "Traceback" not in server.log


def test_an_answer_that_nobody_reads_is_given_up(tmp_path, folder):
    """Without a crowd, too; a client that reads slowly is not."""
    with serving(tmp_path, folder / "m.json", before=UNREAD_SOON) as server:
        with web(server) as organiser, deaf(server, 3):
            until(lambda: gauge(organiser, "connections") == 1, "they are given up")
        with server.connect() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)  # 2 s
            line.sendall(request(f"GET /c/{MADE.name} HTTP/1.1", 0, "Connection: close"))
            size = 0
            while some := line.recv(4096):
                size += len(some)
            assert size > 100_000


def test_garbage_behind_an_upload_is_not_its_answer(server, folder):
    """The upload is counted; nobody must read 400 for it."""
    some = ids(1)
    with server.connect() as line:
        line.sendall(upload_request(MADE, body(some, people(MADE, 1))) + b"garbage\r\n\r\n")
        answers = heard(line)
    assert not answers.startswith(b"HTTP/1.1 400")
    assert b'"accepted":1' in answers or not answers
