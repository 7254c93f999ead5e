"""The commands of the collector, and real server processes where sockets, signals and logs
matter.
"""

import fcntl
import gc
import hashlib
import http.client
import json
import logging
import os
import re
import select
import signal
import socket
import sys
import time
import warnings
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from weakref import WeakKeyDictionary

import httpx
import pytest
from click.testing import CliRunner
from collecting import (
    BEARER,
    DEADLINE,
    TOKEN,
    Server,
    assert_strict,
    body,
    frames,
    ids,
    mechanism,
    people,
    posting,
    serving,
    survey,
    until,
    upload,
    web,
)

import discreet as d
from discreet.cli import main
from discreet.collector import limits, logs, server
from discreet.collector.store import open_store
from discreet.designs.surveys import survey_from_file
from discreet.device.wire import upload_headers
from discreet.errors import DataError, DesignError
from discreet.survey.about import moment

# ---- logs ----------------------------------------------------------------------------------------


def test_a_log_line_has_the_minute_and_no_words_of_an_exception():
    try:
        raise ValueError("10.1.2.3 said HIV")
    except ValueError:
        record = logging.LogRecord(
            "uvicorn.error", logging.ERROR, "x.py", 1, "Exception in\n10.1.2.3", (), sys.exc_info()
        )
    line = logs.JsonLines().format(record)
    assert "\n" not in line and "10.1.2.3" not in line
    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", found.pop("time"))
    assert found == {
        "level": "error",
        "event": "server",
        "message": "Exception in",
        "exception": "ValueError",
    }


def from_file(path, **options):
    return survey_from_file(path, options)


# ---- the commands --------------------------------------------------------------------------------


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def refused(*arguments):
    """Exit code 2 and one sentence."""
    (line,) = run(*arguments, code=2).stderr.splitlines()
    assert line.startswith("error: ")
    return line


TOML = """name = "{name}"
question = "Which?"
[[level]]
name = "a"
epsilon = {eps}
items = {items}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder without settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("DISCREET_TOKEN", "DISCREET_TOKEN_FILE", "DISCREET_STORE"):
        monkeypatch.setenv(name, "")  # so that what the command sets is undone
        monkeypatch.delenv(name)

    def write(name="survey", eps=1, m=3, file="survey.toml"):
        (tmp_path / file).write_text(
            TOML.format(name=name, eps=eps, items=json.dumps([f"i{k}" for k in range(m)]))
        )
        return file

    return write


@pytest.mark.parametrize(("m", "encoding", "size"), [(1000, "bits", 125), (1001, "ticket", 4)])
def test_many_items_are_tickets_unless_told(here, m, encoding, size):
    """Of subset; the other models send bits, however many."""
    found = from_file(here(m=m)).mechanism
    assert (found.encoding.name, found.report_size - (len(found.parts) > 1) * (size > 4)) == (
        encoding,
        size,
    )
    assert d.Survey("survey", [found]) == d.Survey.design("survey.toml")
    told = {"bits": -(-m // 8), "ticket": 4}
    for model in ("subset", "opt0", "oue"):
        for wish in (None, *told):
            other = from_file("survey.toml", model=model, **({"encoding": wish} if wish else {}))
            other = other.mechanism
            name = wish or (encoding if model == "subset" else "bits")
            assert other.encoding.name == name
            assert other.report_size - (len(other.parts) > 1) * (name == "bits") == told[name]


def test_a_survey_is_designed_and_a_designed_one_is_taken_as_it_is(here):
    designed = from_file(here())
    assert designed == d.Survey.design("survey.toml")
    designed.save("m.json")
    assert from_file("m.json") == designed
    designed.mechanism.save("survey.json")  # a mechanism is a survey with the name of its file
    assert from_file("survey.json") == designed
    with pytest.raises(
        DesignError,
        match=r"m.json is designed already; leave out model, padding",
    ):
        from_file("m.json", model="oue", padding=3)
    assert "m.json is designed already; leave out model" in refused(
        "serve", "m.json", "--model", "oue"
    )


@pytest.mark.parametrize("name", ["a/b", ".", "..", "x" * 201, "tab\\t", "\\u0000"])
def test_a_name_must_fit_into_an_address(here, name):
    assert "name" in refused("serve", here(name=name)) and not Path("discreet.sqlite").exists()


@pytest.mark.parametrize("name", ["a b", "ü", "a?b#c", "100%", "x" * 200, "-", "a..b"])
def test_other_names_do(here, name):
    assert from_file(here(name=name)).name == name


def test_serve_refuses_a_changed_policy_and_changed_keeping(here):
    store = open_store("discreet.sqlite")
    store.create(from_file(here()))
    store.close()
    line = refused("serve", "survey.toml", "--keep-reports")
    assert (
        line == 'error: the collection "survey" was made to keep counts; it cannot keep reports now'
    )
    here(eps=2)
    assert 'a collection "survey" with another survey (item "i0" has epsilon 2, not 1)' in refused(
        "serve", "survey.toml"
    )
    here(m=4)
    assert 'item "i3" is not in the policy' in refused("serve", "survey.toml")


def test_serve_refuses_files_and_stores_that_are_none(here):
    here()
    assert "missing.toml does not exist" in refused("serve", "missing.toml")
    assert "the folder nowhere does not exist" in refused(
        "serve", "survey.toml", "--store", "nowhere/x"
    )
    assert "is not known; give a path for SQLite or postgresql://" in refused(
        "serve", "survey.toml", "--store", "redis://x/y"
    )
    Path("short").write_text("short")
    assert "it must have at least 16" in refused("serve", "survey.toml", "--token-file", "short")
    assert "none cannot be read: No such file" in refused(
        "serve", "survey.toml", "--token-file", "none"
    )
    assert not Path("discreet.sqlite").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the bug of the next test
@pytest.mark.parametrize(
    ("host", "sentence"),
    [("127.0.0.1", "already in use"), ("192.0.2.1", "Cannot assign"), ("a..b", "listen on a..b")],
)
def test_serve_refuses_an_address_it_cannot_have(here, monkeypatch, host, sentence):
    monkeypatch.setattr(limits, "LISTEN_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        line = refused("serve", here(), "--host", host, "--port", taken.getsockname()[1])
    assert sentence in line and line.endswith("choose another with --host and --port")


def test_an_address_that_is_taken_leaves_no_socket():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always")
        with pytest.raises(DataError):
            server.listen("127.0.0.1", taken.getsockname()[1])
        gc.collect()
    assert not [warning.message for warning in seen if warning.category is ResourceWarning]


@pytest.fixture
def started(monkeypatch):
    """`serve` up to the moment when it would serve; what it would have served."""
    calls = []

    def run(store, sock, workers, open_results, public_url, certificate, framing, temporary):
        assert certificate is None and not framing and temporary == ("rehearsal" in store)
        calls.append((store, sock.getsockname()[:2], workers, open_results, public_url))
        sock.close()

    monkeypatch.setattr(server, "run", run)
    return calls


def test_serve_says_where_and_serves_all_files(here, started):
    here(name="first", file="a.toml")
    here(name="ü b", m=1001, file="b.toml")
    output = run(
        "serve",
        "a.toml",
        "b.toml",
        "--port",
        0,
        "--workers",
        3,
        "--open-results",
    ).stdout
    ((store, (host, port), *rest),) = started
    assert (store, host, rest) == ("discreet.sqlite", "127.0.0.1", [3, True, ""])
    opened = open_store("discreet.sqlite")
    marks = {
        c.name: (c.survey.fingerprint, c.survey.mechanism.encoding.name)
        for c in opened.collections()
    }
    opened.close()
    assert marks["first"][1] == "bits" and marks["ü b"][1] == "ticket"
    assert f"http://127.0.0.1:{port}/c/first#{marks['first'][0]}\n" in output
    assert f"http://127.0.0.1:{port}/c/%C3%BC%20b#{marks['ü b'][0]}\n" in output
    assert "token is in" in output  # for the desk, although results are open


def test_serve_refuses_two_policies_of_one_name(here, started):
    here(file="a.toml")
    here(eps=2, file="b.toml")
    assert (
        "give the new one another name" in refused("serve", "a.toml", "b.toml", "--port", 0)
        and not started
    )


def test_serve_says_where_the_token_is(here, started, monkeypatch):
    monkeypatch.setenv("DISCREET_TOKEN", TOKEN)
    output = run("serve", here(), "--port", 0).stdout
    assert "The organiser's token is in the environment." in output and TOKEN not in output
    Path("mine").write_text(TOKEN)
    output = run("serve", here(), "--port", 0, "--token-file", "mine").stdout
    assert (
        "The organiser's token is in mine." in output
        and os.environ["DISCREET_TOKEN_FILE"] == "mine"
    )
    assert "DISCREET_TOKEN" not in os.environ and not Path("discreet.token").exists()


def test_serve_takes_the_token_file_of_the_environment(here, started, monkeypatch):
    Path("mine").write_text(TOKEN)
    monkeypatch.setenv("DISCREET_TOKEN_FILE", "mine")
    output = run("serve", here(), "--port", 0).stdout
    assert "The organiser's token is in mine." in output and not Path("discreet.token").exists()


@pytest.mark.parametrize("encoding", ["bits", "ticket"])
def test_close_and_export(here, encoding):
    made = from_file(here(m=20), encoding=encoding)
    rows, some = people(made, 300), ids(300)
    store = open_store("discreet.sqlite")
    store.create(made, "reports")
    store.add([upload(made, some, rows)])
    store.close()
    assert run("close", "survey").stdout == "survey is closed with 300 reports.\n"
    output = run(
        "export", "survey", "-o", "t.json", "--survey", "m.json", "--reports", "r.parquet"
    ).stdout
    assert output == "Wrote t.json: 300 reports\n"
    written = ("t.json", "m.json", "r.parquet")
    assert {Path(name).stat().st_mode & 0o777 for name in written} == {0o600}
    assert d.Survey.load("m.json") == made
    assert d.Tally.load("t.json", made.mechanism) == made.mechanism.tally(rows)
    run("tally", "m.json", "r.parquet", "-o", "again.json")
    assert json.loads(Path("again.json").read_text()) == json.loads(Path("t.json").read_text())
    import pyarrow.parquet as pq

    order = sorted(range(300), key=some.__getitem__)
    stored = [rows[k].tobytes() for k in order]
    if encoding == "ticket":
        stored = [int.from_bytes(report, "little") for report in stored]
    assert [x.as_py() for x in pq.read_table("r.parquet").column(0)] == stored
    found = json.loads(run("export", "survey", "-o", "t.json", "--json").stdout)
    assert found == {"name": "survey", "n": 300, "fingerprint": made.fingerprint}
    run("estimate", "m.json", "t.json")


def test_export_and_close_refuse_what_is_not_there(here):
    store = open_store("discreet.sqlite")
    store.create(from_file(here()))
    store.close()
    assert "keeps counts only" in refused(
        "export", "survey", "-o", "t.json", "--reports", "r.parquet"
    )
    assert not Path("t.json").exists() and not Path("r.parquet").exists()
    for command in (("export", "none", "-o", "t.json"), ("close", "none")):
        assert 'there is no collection "none"' in refused(*command)
        line = refused(*command, "--store", "missing.sqlite")
        assert "missing.sqlite does not exist" in line and not Path("missing.sqlite").exists()
    assert "cannot be written" in refused("export", "survey", "-o", "nowhere/t.json")


def test_export_makes_no_store(here):
    refused("export", "none", "-o", "t.json", "--store", "sqlite:///missing.sqlite")
    assert not Path("missing.sqlite").exists()


def test_page_writes_one_file_and_its_hash(here):
    output = run("page", "-o", "answer.html").stdout
    assert (
        output == f"{hashlib.sha256(Path('answer.html').read_bytes()).hexdigest()}  answer.html\n"
    )
    assert "cannot be written" in refused("page", "-o", "nowhere/answer.html")


# ---- real processes ------------------------------------------------------------------------------


def commands(pid):
    """The command lines of a process and of its children, as everybody on the machine can read
    them.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if pid in (int(path.name), parent):
                found.append((path / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:  # it has just ended
            continue
    return found


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The survey "fixed" in a file."""
    path = tmp_path_factory.mktemp("saved") / "m.json"
    survey("fixed").save(path)
    return path


def test_pages_are_shown_under_one_name(tmp_path, saved):
    """A browser remembers per origin: a page under another name leads to the public one, with its
    path; what is asked by programs stays where it is.
    """
    public = "https://survey.example.org/in"
    with serving(tmp_path, saved, "--public-url", public) as server, web(server) as client:
        assert f"invitation  {public}/c/fixed#{survey('fixed').fingerprint}\n" in server.output
        assert "for this machine" not in server.output
        for path in ("/", "/c/fixed", "/c/fixed/results", "/c/a%20b", "/answer.html"):
            other = client.get(path, headers={"Host": "other.example.org"})
            assert (other.status_code, other.headers["location"]) == (308, f"{public}{path}?moved")
            assert client.get(f"{path}?moved", headers={"Host": "x:1"}).status_code in (200, 404)
            assert other.headers["referrer-policy"] == "no-referrer"
            for host in ("survey.example.org", "127.0.0.1", "localhost:8000"):
                assert client.get(path, headers={"Host": host}).status_code in (200, 404)
        for path in ("/healthz", "/v1/collections/fixed", "/static/style.css", "/nothing"):
            other = client.get(path, headers={"Host": "other.example.org"})
            assert other.status_code == (404 if path == "/nothing" else 200)


def test_all_addresses_of_a_machine_are_none_to_be_sent(tmp_path, saved):
    with serving(tmp_path, saved, "--host", "0.0.0.0") as server:
        assert "0.0.0.0" not in server.output and "invitation  http://127.0.0.1:" in server.output
        assert "These links work on this machine; --public-url makes links" in server.output


def test_a_public_address_that_nobody_can_open_is_refused(here):
    for url in ("http://0.0.0.0:8000", "survey.example.org"):
        line = refused("serve", here(), "--public-url", url)
        assert "is not an address that people can open" in line
    assert not Path("discreet.sqlite").exists() and not Path("discreet.token").exists()


def test_a_server_as_it_is_started_by_default(tmp_path, saved):
    """A free port of loopback alone, a token in a new private file, a store in a private file,
    results behind the token.
    """
    made = survey("fixed")
    with serving(tmp_path, saved, token=None) as server, web(server) as client:
        assert (
            f"fixed\n  invitation  {server.url}/c/fixed#{made.fingerprint}\n"
            f"  results     {server.url}/c/fixed/results\n" in server.output
        )
        assert (
            "The organiser's token is in discreet.token (made now, for you alone to read)."
            in server.output
        )
        token = (tmp_path / "discreet.token").read_text().strip()
        modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.glob("discreet*")}
        assert set(modes.values()) == {0} and {
            "discreet.token",
            "discreet.sqlite",
            "discreet.sqlite-wal",
        } <= set(modes)
        listening = [
            line.split()[1]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A"
        ]
        assert [address for address in listening if address.endswith(f":{server.port:04X}")] == [
            f"0100007F:{server.port:04X}"
        ]
        assert client.post(**posting(made, frames(made, 4))).json() == {
            "accepted": 4,
            "duplicates": 0,
        }
        assert client.get("/v1/collections/fixed/estimate").status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        assert client.get("/v1/collections/fixed/estimate", headers=bearer).json()["n"] == 4
        assert token not in server.output + server.log
        assert commands(server.process.pid) and not any(
            token in command for command in commands(server.process.pid)
        )
        assert_strict(client.get("/none"))
        for content, status in (
            (b"", 400),
            (b"x", 400),
            (bytes(16) + b"\xff" * made.mechanism.report_size, 422),
        ):
            answer = client.post(**posting(made, content))
            assert answer.status_code == status
            # nothing more is waited for
            assert answer.elapsed.total_seconds() < limits.BODY_PAUSE / 2


def test_what_is_served_as_json(tmp_path):
    made = survey("fixed")
    made.save(tmp_path / "m.json")
    server = Server(tmp_path, "m.json", "--json")
    try:
        until(lambda: server.output.endswith("}\n"), "it says what it serves")
        facts = json.loads(server.output)
        link = f"{facts['listening']}/c/fixed"
        (one,) = facts["collections"]
        until(lambda: answers(one["results"]), "its results page answers")
    finally:
        server.stop()
    assert one == {
        "name": "fixed",
        "state": "open",
        "opens": None,
        "closes": None,
        "invitation": f"{link}#{made.fingerprint}",
        "results": f"{link}/results",
    }
    assert facts["token_file"] is None and facts["open_results"] is False
    assert facts["simulated_people"] == 0 and json.loads(server.output) == facts


def answers(url):
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


def test_no_token_can_be_given_on_the_command_line(here):
    assert "No such option" in refused("serve", here(), "--token", TOKEN)


def test_logs_and_stores_hold_nothing_of_anyone(tmp_path, saved):
    """Everything that could tell who sent what is sent, by good and by bad requests; then every
    file is searched.
    """
    made = survey("fixed")
    agent, secret, forwarded = "Mozilla/5.0 Tell-Tale", "s3cr3t-query", "203.0.113.77"
    told = {
        "User-Agent": agent,
        "Cookie": f"session={secret}",
        "Referer": f"http://{secret}",
        "X-Forwarded-For": forwarded,
    }
    some, rows = ids(30), people(made, 30)
    with serving(tmp_path, saved) as server:
        with web(server, headers=told) as client:
            assert client.post(**posting(made, body(some, rows))).json()["accepted"] == 30
            client.post(**posting(made, body(some, rows)[:-1]))
            client.post(
                **posting(made, body(some, rows) + bytes(16) + b"\xff" * made.mechanism.report_size)
            )
            client.post(**posting(made, body(some, rows), **{"Discreet-Survey": secret}))
            for path in (
                f"/v1/collections/{secret}",
                f"/?{secret}",
                f"/v1/collections/fixed/estimate?{secret}=1",
            ):
                client.get(path, headers=BEARER)
        with server.connect() as raw:  # and what is no HTTP at all
            raw.sendall(f"GET /{secret} {agent}\r\n{forwarded}\r\n\r\n".encode())
            raw.recv(1000)
            local = raw.getsockname()[1]
        assert server.stop() is not None
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert server.files[1] in files and tmp_path / "discreet.sqlite" in files
    for path, content in files.items():
        for word in (
            agent.encode(),
            secret.encode(),
            forwarded.encode(),
            b"127.0.0.1:" + str(local).encode(),
            str(local).encode(),
        ):
            assert word not in content, path
        if path != tmp_path / "discreet.sqlite":
            assert not any(id_ in content or id_.hex().encode() in content for id_ in some), path
        assert not any(row.tobytes() in content and len(row) > 4 for row in rows), path
    for line in server.log.splitlines():
        found = json.loads(line)
        assert set(found) <= {"time", "level", "event", "message", "problem", "exception"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", found["time"])
    assert not re.search(r"\d\d:\d\d:\d\d|127\.0\.0\.1", server.log)


IMPATIENT = """
from discreet.collector import limits
limits.BODY_PAUSE, limits.BODY_SECONDS, limits.HEAD_SECONDS = 0.8, 2.0, 1.2
"""


@pytest.fixture(scope="module")
def impatient(tmp_path_factory, saved):
    """A server with short limits on slow clients."""
    with serving(tmp_path_factory.mktemp("impatient"), saved, before=IMPATIENT) as server:
        yield server


def heard(connection):
    """All that comes until the other side closes."""
    connection.settimeout(DEADLINE)
    found = b""
    try:
        while chunk := connection.recv(65536):
            found += chunk
    except ConnectionResetError:
        pass
    return found


def head(made, length):
    return (
        f"POST /v1/collections/{made.name}/reports HTTP/1.1\r\nHost: x\r\n"
        "Content-Type: application/octet-stream\r\n"
        f"Discreet-Survey: {made.fingerprint}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_whoever_does_not_finish_the_head_of_a_request_is_cut_off(impatient, said):
    with impatient.connect() as connection:
        connection.sendall(said)
        assert heard(connection) == b""


def test_whoever_drips_the_head_of_a_second_request_is_cut_off(impatient):
    with impatient.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in heard_one(connection)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")

        def drip():
            try:
                connection.sendall(b"y")
            except (ConnectionResetError, BrokenPipeError):
                return True

        until(drip, "the connection is cut")


@pytest.mark.parametrize("drip", [False, True], ids=["silent", "dripping"])
def test_whoever_does_not_finish_a_body_is_told_so(impatient, drip):
    made = survey("fixed")
    content = frames(made, 3)
    with impatient.connect() as connection, web(impatient) as other:
        connection.sendall(head(made, len(content)) + content[:20])
        for k in range(20, len(content) - 1):
            assert other.get("/healthz").status_code == 200  # nobody else waits
            if not drip or select_read(connection, 0.1):
                break
            connection.sendall(content[k : k + 1])
        answer = heard_one(connection)
    assert b" 408 " in answer and b"the body did not arrive in time; send it again" in answer


def select_read(connection, seconds):
    return bool(select.select([connection], [], [], seconds)[0])


LEFT: WeakKeyDictionary[socket.socket, bytes] = WeakKeyDictionary()  # read, and not looked at yet


def heard_one(connection):
    """One answer, whole; what came after it in the same packet is kept for the next call."""
    connection.settimeout(DEADLINE)
    found = LEFT.pop(connection, b"")

    def more():
        piece = connection.recv(65536)
        assert piece, "the connection was closed before the answer was whole"
        return found + piece

    while b"\r\n\r\n" not in found:
        found = more()
    start = found.partition(b"\r\n\r\n")[0]
    end = len(start) + 4 + int(re.search(rb"content-length: (\d+)", start)[1])
    while len(found) < end:
        found = more()
    LEFT[connection] = found[end:]
    return found[:end]


def test_a_head_that_never_ends_is_cut_off(impatient):
    with impatient.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        sent = 0
        try:
            while sent < 10 << 20:
                connection.sendall(b"X-More: " + b"y" * 1000 + b"\r\n")
                sent += 1010
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert sent < 10 << 20


def test_requests_on_one_connection_are_answered_one_after_another(impatient):
    made = survey("fixed")
    content = frames(made, 2)
    with impatient.connect() as connection:
        for k in range(3):
            connection.sendall(head(made, len(content)))
            connection.sendall(content)
            answer = heard_one(connection)
            assert answer.endswith(
                b'{"accepted":2,"duplicates":0}' if k == 0 else b'{"accepted":0,"duplicates":2}'
            )
        connection.sendall((head(made, len(content)) + content) * 3)  # without waiting
        for _ in range(3):
            assert b" 200 " in heard_one(connection)


@pytest.mark.parametrize("chunked", [False, True], ids=["content-length", "chunked"])
def test_a_body_beyond_the_limit_is_refused_by_a_real_server(impatient, chunked):
    made = survey("fixed")
    with impatient.connect() as connection:
        start = head(made, 9 << 20)
        if chunked:
            start = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", start)
        connection.sendall(start)
        if chunked:
            connection.sendall(
                (b"100000\r\n" + bytes(1 << 20) + b"\r\n") * 8 + b"1\r\nx\r\n0\r\n\r\n"
            )  # one byte too many
        assert b" 413 " in heard_one(connection)


@contextmanager
def paused(pid):
    """A process that does nothing for a while."""
    os.kill(pid, signal.SIGSTOP)
    try:
        until(
            lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T",
            "the process is stopped",
        )
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_whoever_sends_all_of_a_body_before_listening_is_told_that_it_is_too_large(impatient):
    made = survey("fixed")
    connection = http.client.HTTPConnection("127.0.0.1", impatient.port, timeout=DEADLINE)
    asked = posting(made, bytes(20 << 20))
    try:
        connection.request("POST", asked["url"], asked["content"], asked["headers"])
        assert connection.getresponse().status == 413
    finally:
        connection.close()


def test_what_is_no_http_is_a_problem_too(impatient):
    with impatient.connect() as connection:
        connection.sendall(b"NONSENSE\r\n\r\n")
        answer = heard_one(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer and b"nosniff" in answer


FEW = "from discreet.collector import limits\nlimits.CONNECTIONS = 3"


def test_idle_connections_do_not_shut_others_out(tmp_path, saved):
    """Whoever comes takes the place of one that has been idle longest."""
    with serving(tmp_path, saved, before=FEW) as server:
        crowd = [server.connect() for _ in range(30)]
        try:
            for _ in range(3):
                with server.connect() as visitor:
                    visitor.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                    assert heard_one(visitor).startswith(b"HTTP/1.1 200 ")
        finally:
            for connection in crowd:
                connection.close()


def test_a_crowd_that_is_busy_is_asked_to_come_back(tmp_path, saved):
    """Whole uploads wait for the store, which another process holds: they do not make room."""
    made = d.Survey.load(saved)
    content = frames(made, 1)
    with serving(tmp_path, saved, before=FEW) as server, ExitStack() as stack:
        crowd = [stack.enter_context(server.connect()) for _ in range(3)]
        for connection in crowd:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 " in heard_one(connection)
        lock = stack.enter_context((tmp_path / "discreet.sqlite-lock").open("rb"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        for connection in crowd:
            connection.sendall(head(made, len(content)) + content)
        time.sleep(0.3)
        with server.connect() as visitor:
            visitor.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = heard_one(visitor)
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert all(b" 200 " in heard_one(connection) for connection in crowd)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert (
        b"application/problem+json" in answer and b"nosniff" in answer and b"retry-after" in answer
    )


def test_what_is_no_request_is_logged_now_and_then(tmp_path, saved):
    with serving(tmp_path, saved) as server:
        for _ in range(50):
            with server.connect() as raw:
                raw.sendall(b"\x16\x03\x01 this is no request\r\n\r\n")
                assert heard_one(raw).startswith(b"HTTP/1.1 400 ")
        assert server.stop() is not None
    assert len(server.log.splitlines()) <= 2


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_that_cannot_start_are_a_failure(tmp_path, saved, workers):
    """The token file goes between the check and the start of the workers."""
    gone = (
        "import os\n"
        "from discreet.collector import limits, server\n"
        "limits.WORKER_SECONDS = 5\n"
        "run = server.run\n"
        "def late(*args):\n    os.unlink('secret')\n    return run(*args)\n"
        "server.run = late\n"
    )
    (tmp_path / "secret").write_text(TOKEN)
    arguments = (saved, "--token-file", "secret", "--workers", workers)
    server = Server(tmp_path, *arguments, before=gone, token=None)
    try:
        assert server.process.wait(DEADLINE) not in (0, None)
    finally:
        server.process.kill()
        server.process.wait()
    assert "cannot start" in server.log and "Traceback" not in server.log


def test_two_workers_count_together(tmp_path, saved):
    """While one of them is paused the other answers, in turn; the store and the counters are
    one.
    """
    made = survey("fixed")
    first, second = frames(made, 3), frames(made, 4)
    with serving(tmp_path, saved, "--workers", 2) as server:
        one, two = until(
            lambda: len(found := sorted(server.temporary.rglob("*.counters"))) == 2 and found,
            "two workers",
        )
        assert len(commands(server.process.pid)) >= 3 and not any(
            TOKEN in command for command in commands(server.process.pid)
        )
        with paused(int(two.stem.split("-")[0])), web(server) as client:
            assert client.post(**posting(made, first)).json() == {"accepted": 3, "duplicates": 0}
            client.post(**posting(made, b""))
        with paused(int(one.stem.split("-")[0])), web(server) as client:
            assert client.post(**posting(made, first + second)).json() == {
                "accepted": 4,
                "duplicates": 3,
            }
            client.post(**posting(made, b""))
        assert one.read_bytes() != two.read_bytes() and all(
            any(path.read_bytes()) for path in (one, two)
        )
        with web(server) as client:
            text = client.get("/metrics", headers=BEARER).text
            assert client.get("/v1/collections/fixed/estimate", headers=BEARER).json()["n"] == 7
        assert (
            'discreet_reports_accepted_total{collection="fixed"} 7\n' in text
            and 'discreet_reports_duplicate_total{collection="fixed"} 3\n' in text
        )
        assert (
            'refused_total{collection="fixed",reason="empty"} 2\n' in text
            and "discreet_upload_seconds_count 2\n" in text
        )
        assert server.stop() == 0
    assert server.log == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_is_asked_to_stop_finishes_what_it_has_begun(tmp_path, saved, workers):
    made = survey("fixed")
    content = frames(made, 5)
    with serving(tmp_path, saved, "--workers", workers) as server:
        with server.connect() as connection, server.connect() as idle:
            connection.sendall(head(made, len(content)) + content[:-1])
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 " in heard_one(idle)
            server.process.send_signal(signal.SIGTERM)
            assert heard(idle) == b""  # whoever asks for nothing is sent away
            connection.sendall(content[-1:])
            answer = heard_one(connection)
            assert b" 200 " in answer and answer.endswith(b'{"accepted":5,"duplicates":0}')
        assert server.process.wait(DEADLINE) in (0, -signal.SIGTERM)
    store = open_store(str(tmp_path / "discreet.sqlite"))
    assert store.tally("fixed").n == 5
    store.close()


@pytest.mark.parametrize(
    ("sign", "codes"), [(signal.SIGINT, {130}), (signal.SIGTERM, {0, -signal.SIGTERM})]
)
def test_a_server_that_has_stopped_leaves_nothing_behind(tmp_path, saved, sign, codes):
    with serving(tmp_path, saved) as server:
        assert server.stop(sign) in codes
    assert "Traceback" not in server.log
    assert not list(server.temporary.iterdir())
    assert not list(tmp_path.glob("*-wal"))  # all of it is in the file, in the order of the ids


def test_a_real_server_that_cannot_open_its_store_says_so(tmp_path, saved):
    server = Server(tmp_path, saved, "--store", "postgresql://nobody@127.0.0.1:1/none")
    assert server.process.wait(DEADLINE) == 2
    assert re.fullmatch(r"error: the PostgreSQL store cannot be opened: .*refused.*\n", server.log)


# ---- the calendar --------------------------------------------------------------------------------


def dated(folder, name, **seconds):
    now = datetime.now(UTC).replace(microsecond=0)
    told = {key: now + timedelta(seconds=n) for key, n in seconds.items()}
    made = d.Survey(name, [mechanism()], {"organiser": "us", **told})
    made.save(folder / f"{name}.json")
    return made, str(folder / f"{name}.json")


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_a_collection_opens_and_closes_by_itself(tmp_path, workers):
    """On a machine that is so busy that it closed before anybody came, it is tried with more
    time.
    """
    for seconds in (8, 20, 60):
        (folder := tmp_path / str(seconds)).mkdir()
        if opens_and_closes(folder, workers, seconds):
            return
    raise AssertionError("it was never open")


def opens_and_closes(folder, workers, seconds):
    """Whether the collection that closes after so many seconds took a report before."""
    late, file = dated(folder, "late", opens=3600)
    brief, other = dated(folder, "brief", closes=seconds)
    with serving(folder, file, other, "--workers", workers) as server, web(server) as client:
        assert f"  opens       {moment(late.about.opens)}\n" in server.output

        def send(made):
            headers = upload_headers(made.fingerprint)
            return client.post(f"/v1/collections/{made.name}/reports",
                               content=frames(made, 1), headers=headers)  # fmt: skip

        early = send(late)
        assert early.status_code == 403 and early.json()["title"] == "early"
        assert moment(late.about.opens) in early.json()["detail"]
        counted = 0
        while (answer := send(brief)).status_code == 200:
            counted += 1
            time.sleep(0.05)
        assert answer.status_code == 410
        assert datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") >= brief.about.closes
        if not counted:
            return False
        assert client.get("/v1/collections/brief").json()["state"] == "closed"
        assert client.get("/v1/collections/late").json()["state"] == "upcoming"

        store = open_store(str(folder / "discreet.sqlite"), create=False)
        until(lambda: store.collection("brief").closed_by_organiser, "closed by its date")
        assert [event.what for event in store.history("brief")] == ["closed by its date"]
        assert (
            store.tally("brief").n == counted and not store.collection("late").closed_by_organiser
        )
        store.close()
    assert '"event": "closed by its date"' in server.log
    return True
