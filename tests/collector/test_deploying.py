"""docs/deploying.md, followed: the proxies of Debian with the files of deploy/, the commands of the
units, the lines of the guide in their order, and what Prometheus makes of the alerts. Only
addresses, ports and paths are others.
"""

import configparser
import datetime
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from checks import must_fail
from collecting import (
    BEARER,
    DEADLINE,
    DISCREET,
    STRICT,
    TOKEN,
    Server,
    body,
    frames,
    ids,
    people,
    policy,
    posting,
    serving,
    survey,
    until,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from postgres import GROUP
from smuggling import lost_reports, upload_request

import discreet as d
from discreet.collector import limits
from discreet.collector.metrics import Metrics, State
from discreet.collector.store import open_store

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
NAME, OTHER = "survey.example.org", "other.example.org"
VISITOR = "127.0.0.77"  # an address that nothing else here has


def found(program):
    """Where a program is, also one that an ordinary user does not have on her path."""
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")


PROXIES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            found(name) is None,
            reason=f"{name} is not installed, so the guide cannot be followed with it",
        ),
    )
    for name in ("nginx", "caddy")
]


def needs(program, package):
    return pytest.mark.skipif(
        found(program) is None,
        reason=f"{program} is not installed (Debian's package {package})",
    )


def shipped(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def replaced(text, changes):
    """The text with these changes; each must be one."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


# ---- the guide -----------------------------------------------------------------------------------


def test_the_guide_quotes_the_files_as_they_are():
    sys.path.insert(0, str(ROOT / "docs"))
    import make_deploying

    assert make_deploying.with_files(GUIDE) == GUIDE
    shown = {path.name for path in DEPLOY.iterdir()} - {"alerts.yml", "dashboard.json"}
    for name in shown:
        assert f"\n{shipped(name)}```\n" in GUIDE, name
    assert "`deploy/alerts.yml`" in GUIDE and "`deploy/dashboard.json`" in GUIDE
    assert make_deploying.with_files(GUIDE.replace("RestartSec=2", "RestartSec=3")) == GUIDE


def test_the_limits_of_the_proxies_are_those_of_the_collector():
    caddy, nginx = shipped("Caddyfile"), shipped("nginx.conf")
    assert limits.BODY_SIZE == 8 << 20 and "client_max_body_size 8m;" in nginx
    assert "client_body_buffer_size 8m;" in nginx and "max_buffer_size 8MiB" in caddy
    assert limits.HEAD_SECONDS == limits.BODY_PAUSE == 10 and "read_header 10s" in caddy
    assert "client_header_timeout 10s;" in nginx and "client_body_timeout 10s;" in nginx
    assert limits.BODY_SECONDS == 60 and "read_body 60s" in caddy
    assert limits.BODY_SECONDS + limits.STORE_SECONDS < 75
    assert "response_header_timeout 75s" in caddy and "proxy_read_timeout 75s;" in nginx
    # a connection that the collector is about to close is not used for an upload
    assert limits.IDLE > 15 and "keepalive 15s" in caddy and "keepalive_timeout 15s;" in nginx
    assert limits.GRACE < 45 and "TimeoutStopSec=45" in shipped("discreet.service")


# ---- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """An authority made for these tests, and a certificate of both names by it: the files."""
    folder = tmp_path_factory.mktemp("certificate")
    now = datetime.datetime.now(datetime.UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, n)]) for n in ("ca", NAME)]
    for k, (file, alternative) in enumerate((("ca.pem", []), ("survey.pem", [NAME, OTHER]))):
        made = x509.CertificateBuilder(
            names[0], names[k], keys[k].public_key(), x509.random_serial_number(),
            now - datetime.timedelta(days=1), now + datetime.timedelta(days=30),
        )  # fmt: skip
        made = made.add_extension(x509.BasicConstraints(k == 0, None), critical=True)
        # Python 3.13 refuses a chain without these
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(keys[0].public_key())
        own = x509.SubjectKeyIdentifier.from_public_key(keys[k].public_key())
        for extension in (authority, own):
            made = made.add_extension(extension, critical=False)
        if k == 0:
            signs = x509.KeyUsage(*[False] * 5, True, *[False] * 3)  # certificates, nothing else
            made = made.add_extension(signs, critical=True)
        if alternative:
            listed = x509.SubjectAlternativeName([x509.DNSName(name) for name in alternative])
            made = made.add_extension(listed, critical=False)
        signed = made.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        (folder / file).write_bytes(signed)
    (folder / "survey.key").write_bytes(
        keys[1].private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Proxy:
    """nginx or Caddy with its shipped file, in a folder of its own; `loud` logs as usual, `changes`
    are words of the file and what stands there instead.
    """

    def __init__(self, kind, folder, certificate, upstream, port=None, loud=False, changes=None):
        self.kind, self.folder, self.certificate = kind, folder, certificate
        self.secure, self.plain = port or free_port(), free_port()
        folder.mkdir()
        folder.chmod(0o755)
        config = folder / "config"
        text = replaced(getattr(self, f"_{kind}")(upstream, loud), changes or {})
        config.write_text(text, encoding="utf-8")
        command = {
            "nginx": [
                *(found("nginx"), "-e", folder / "start.log", "-p", folder),
                *("-c", config, "-g", "daemon off;"),
            ],
            "caddy": ["caddy", "run", "--config", config, "--adapter", "caddyfile"],
        }[kind]
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        with (folder / "out.log").open("wb") as out:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=out, stderr=out, env=os.environ | home, cwd=folder
            )
        until(self._answers, f"{kind} answers")

    def _nginx(self, upstream, loud):
        own = self.folder
        text = replaced(
            shipped("nginx.conf"),
            {
                "/run/nginx.pid": f"{own}/nginx.pid",
                "/run/nginx-body": f"{own}/client_body",
                "/var/log/nginx/": f"{own}/",
                "/etc/ssl/survey": f"{self.certificate}/survey",
                "/var/www/acme": f"{own}/acme",
                "127.0.0.1:8000": f"127.0.0.1:{upstream}",
                "listen 80 ": f"listen 127.0.0.1:{self.plain} ",
                "listen 443 ": f"listen 127.0.0.1:{self.secure} ",
                f"https://{NAME}": f"https://{NAME}:{self.secure}",
                "http {\n": "http {\n"
                + "".join(
                    f"    {what}_temp_path {own}/{what};\n"
                    for what in ("proxy", "fastcgi", "uwsgi", "scgi")
                ),
            },
        )
        text = re.sub(r".*listen \[::\].*\n", "", text)  # not every machine has IPv6
        if loud:
            quiet = {"error.log emerg": "error.log info", "access_log off": "access_log access.log"}
            text = replaced(text, quiet)
        return text

    def _caddy(self, upstream, loud):
        ports = f"http_port {self.plain}\n\thttps_port {self.secure}\n\tdefault_bind 127.0.0.1"
        text = replaced(
            shipped("Caddyfile"),
            {
                "admin off": f"admin off\n\t{ports}",
                f"\n{NAME} {{": f"\n{NAME}, {OTHER} {{",
                "# tls /etc/ssl/survey.pem /etc/ssl/survey.key": (
                    f"tls {self.certificate}/survey.pem {self.certificate}/survey.key"
                ),
                "127.0.0.1:8000": f"127.0.0.1:{upstream}",
            },
        )
        return replaced(text, {"include tls\n\t\tlevel ERROR": "level DEBUG"}) if loud else text

    def _answers(self):
        assert self.process.poll() is None, self.written()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.secure), 1).close()
            return True
        return False

    def written(self):
        """All that it has written anywhere in its folder, but for what it was given."""
        files = (p for p in self.folder.rglob("*") if p.is_file() and p.name != "config")
        return b"\n".join(path.read_bytes() for path in files).decode(errors="replace")

    def context(self):
        return ssl.create_default_context(cafile=self.certificate / "ca.pem")

    @contextmanager
    def visitor(self, name=NAME, source=VISITOR):
        """A client who checks the certificate, from an address of its own."""
        transport = httpx.HTTPTransport(verify=self.context(), local_address=source, retries=0)

        def prepared(request):
            request.headers["Host"] = f"{name}:{self.secure}"
            request.extensions["sni_hostname"] = name

        with httpx.Client(
            transport=transport,
            base_url=f"https://127.0.0.1:{self.secure}",
            timeout=DEADLINE,
            event_hooks={"request": [prepared]},
        ) as client:
            yield client

    @contextmanager
    def line(self, encrypted=True, name=NAME):
        """A connection for bytes that may be no request."""
        address = "127.0.0.1", self.secure
        with socket.create_connection(address, 5, source_address=(VISITOR, 0)) as plain:
            line = self.context().wrap_socket(plain, server_hostname=name) if encrypted else plain
            with line:
                yield line

    def raw(self, content, **how):
        """What is answered to bytes that may be no request."""
        with self.line(**how) as line, suppress(OSError):
            line.sendall(content)
            return line.recv(1 << 16)
        return b""

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        finally:
            self.process.kill()


def unit(name):
    """A unit as it is read: the last value of every key."""
    read = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    read.optionxform = str
    read.read_string(shipped(name))
    return read


def serve_arguments(file, public):
    """What the unit gives to `discreet serve`, with another file and address."""
    program, command, *rest = shlex.split(unit("discreet.service")["Service"]["ExecStart"])
    assert (program, command) == ("/opt/discreet/bin/discreet", "serve")
    changes = {"/etc/discreet/survey.toml": str(file), f"https://{NAME}": public}
    assert set(changes) <= set(rest)
    return [changes.get(word, word) for word in rest]


@contextmanager
def deployed(kind, folder, certificate, made, loud=False, changes=None, before=""):
    """The collector as the unit starts it, behind the proxy; (proxy, server). With `before`, which
    is Python that only the first process runs, it has one worker.
    """
    made.save(folder / "survey.json")
    port = free_port()
    arguments = serve_arguments(folder / "survey.json", f"https://{NAME}:{port}")
    if before:
        arguments += ["--workers", "1"]
    with serving(folder, *arguments, before=before) as server:
        proxy = Proxy(kind, folder / "proxy", certificate, server.port, port, loud, changes)
        try:
            yield proxy, server
        finally:
            proxy.stop()


@pytest.fixture(scope="module", params=PROXIES)
def live(request, tmp_path_factory, certificate):
    folder = tmp_path_factory.mktemp(f"live-{request.param}")
    with deployed(request.param, folder, certificate, long()) as (proxy, server):
        yield proxy, server


def long():
    """Reports so long that 10,000 of them are just below the limit of a body."""
    return d.Survey("long", [d.design(policy(sizes=(2000, 2000, 2570)), "opt0")])


def test_pages_and_endpoints_are_there_behind_tls(live):
    proxy, _ = live
    with proxy.visitor() as client:
        for path in ("/", "/c/long", "/c/long/results", "/answer.html", "/static/results.js",
                     "/v1/collections", "/v1/collections/long", "/healthz", "/readyz",
                     "/openapi.json"):  # fmt: skip
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
            for name, value in STRICT.items():
                assert answer.headers.get_list(name) == [value]
        assert client.get("/metrics").status_code == 401
        metrics = client.get("/metrics", headers=BEARER).text
        assert 'discreet_collection_open{collection="long"} 1\n' in metrics
        assert_is_problem(client.get("/v1/collections/none"), 404)


def assert_is_problem(answer, status):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_certificate_of_nobody_is_refused(live, tmp_path):
    """The twin: the client of these tests checks."""
    proxy, _ = live
    transport = httpx.HTTPTransport(verify=ssl.create_default_context())
    with (
        httpx.Client(transport=transport) as client,
        pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        client.get(f"https://127.0.0.1:{proxy.secure}/", extensions={"sni_hostname": NAME})


def test_another_name_leads_to_the_public_one(live):
    proxy, server = live
    public = f"https://{NAME}:{proxy.secure}"
    assert f"  invitation  {public}/c/long#" in server.output
    with proxy.visitor(OTHER) as client:
        for path in ("/", "/c/long", "/c/long/results"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["location"]) == (
                308,
                f"{public}{path}?moved",
            )
        assert client.get("/v1/collections").status_code == 200
    with proxy.visitor() as client:
        assert client.get("/c/long").status_code == 200


def test_without_tls_it_leads_to_tls(live):
    proxy, _ = live
    head = {"Host": NAME}
    answer = httpx.get(f"http://127.0.0.1:{proxy.plain}/c/long", headers=head)
    assert answer.status_code == 308
    assert re.fullmatch(rf"https://{NAME}(:{proxy.secure})?/c/long", answer.headers["location"])


def test_uploads_up_to_the_limit_are_counted_once_and_larger_ones_are_refused(live):
    proxy, _ = live
    made = long()
    some, rows = ids(limits.FRAMES), people(made, limits.FRAMES)
    content = body(some, rows)
    assert 0.99 * limits.BODY_SIZE < len(content) <= limits.BODY_SIZE
    aside = proxy.folder / "client_body"  # where nginx would write bodies that are too large for it
    untouched = aside.exists() and aside.stat().st_mtime_ns
    with proxy.visitor() as client:
        before = reports(client, "long")
        assert client.post(**posting(made, content)).json() == {
            "accepted": limits.FRAMES,
            "duplicates": 0,
        }
        assert client.post(**posting(made, content)).json()["duplicates"] == limits.FRAMES
        whole = content.ljust(limits.BODY_SIZE, b"\0")  # no whole number of frames
        assert_is_problem(client.post(**posting(made, whole)), 400)
        with suppress(httpx.WriteError):  # a proxy may hang up on who sends on
            answer = client.post(**posting(made, whole + b"\0"))
            assert answer.status_code == 413
            if proxy.kind == "caddy":
                assert_is_problem(answer, 413)
        assert reports(client, "long") == before + limits.FRAMES
    assert aside.exists() == (proxy.kind == "nginx")
    assert untouched == (aside.exists() and aside.stat().st_mtime_ns)  # no file was made there


def reports(client, name):
    found = client.get("/metrics", headers=BEARER).text
    pattern = rf'discreet_collection_reports{{collection="{name}"}} (\d+)\n'
    return int(re.search(pattern, found)[1])


def test_the_library_answers_by_the_public_address(live, tmp_path, monkeypatch):
    """From the invitation, with the certificate checked."""
    proxy, server = live
    find = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *more, **rest: find("127.0.0.1" if host == NAME else host, *more, **rest),
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate / "ca.pem"))
    monkeypatch.setenv("DISCREET_LEDGER", str(tmp_path / "ledger.json"))
    url, mark = re.search(r"invitation +(\S+)/c/long#(\S+)", server.output).groups()
    client = d.Client(url)
    with proxy.visitor() as organiser:
        before = reports(organiser, "long")
        for accepted in (1, 0):
            receipt = client.answer("long", "low 3", fingerprint=mark)
            assert (receipt.accepted, receipt.duplicates) == (accepted, 1 - accepted)
        assert reports(organiser, "long") == before + 1


# ---- nobody's address is written down ------------------------------------------------------------


def everything(proxy, server, made):
    """Requests of all kinds, good ones and broken ones, and some while the collector is away."""
    with proxy.visitor() as client:
        for path in ("/", "/c/bits", "/none", "/static/none", "/c/%00", "/metrics"):
            client.get(path)
        client.post(**posting(made, frames(made, 3)))
        client.post(**posting(made, b"x"))
        with suppress(httpx.WriteError):
            client.post(**posting(made, bytes(limits.BODY_SIZE + 1)))
        client.request("BREW", "/")
    host = f"Host: {NAME}\r\n".encode()
    for broken in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + host + b"\r\n",
        b"\x00\xff\xfe nonsense\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Long: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b c/\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"Content-Length: -4\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ):
        proxy.raw(broken)
    with suppress(ssl.SSLError, OSError):
        proxy.raw(b"", name="nobody.example.org")
    for broken in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\xffnonsense" * 20, b""):
        proxy.raw(broken, encrypted=False)
    where = b"POST /v1/collections/bits/reports HTTP/1.1\r\n" + host
    kind = b"Content-Type: application/octet-stream\r\nContent-Length: 90000\r\n"
    mark = f"Discreet-Survey: {made.fingerprint}\r\n\r\n".encode()
    address = "127.0.0.1", proxy.secure
    with socket.create_connection(address, 5, source_address=(VISITOR, 0)) as plain:
        line = proxy.context().wrap_socket(plain, server_hostname=NAME)
        line.sendall(where + kind + mark + bytes(100))
        line.close()  # in the middle of a body
    server.stop()
    with proxy.visitor() as client:
        assert client.get("/").status_code == 502
        assert client.post(**posting(made, frames(made, 1))).status_code == 502
    proxy.stop()


def assert_silent(proxy, server):
    for text in (proxy.written(), server.output, server.log):
        assert VISITOR not in text
        assert TOKEN not in text


@pytest.mark.parametrize("kind", PROXIES)
def test_nothing_like_an_address_is_in_any_log(kind, tmp_path, certificate):
    made = survey("bits")
    with deployed(kind, tmp_path, certificate, made) as (proxy, server):
        everything(proxy, server, made)
        assert_silent(proxy, server)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROXIES)
def test_logs_as_they_usually_are_would_have_it(kind, tmp_path, certificate):
    """The twin: without the lines about logs, the same requests leave the address."""
    made = survey("bits")
    with deployed(kind, tmp_path, certificate, made, loud=True) as (proxy, server):
        everything(proxy, server, made)
        must_fail(assert_silent, proxy, server)


@pytest.mark.parametrize("kind", PROXIES)
def test_the_collector_is_told_the_name_and_not_the_address(kind, tmp_path, certificate):
    with recorder() as (port, heads):
        proxy = Proxy(kind, tmp_path / "proxy", certificate, port)
        try:
            with proxy.visitor() as client:
                assert client.get("/c/x").status_code == 204
        finally:
            proxy.stop()
    (head,) = heads
    assert f"\r\nhost: {NAME}:{proxy.secure}\r\n" in head.lower()
    assert VISITOR not in head and "forwarded-for" not in head.lower()


# ---- what one visitor can do to others -----------------------------------------------------------

UNGUARDED = {"header_up -Upgrade": "", "header_up -Connection": ""}  # Caddy passes upgrades on


def assert_none_lost(proxy, folder, made):
    acknowledged, lost = lost_reports(proxy, folder, made, 12)
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged reports are lost"
    assert len(acknowledged) == 12


@pytest.mark.parametrize("kind", PROXIES)
def test_no_acknowledged_report_is_lost_to_smuggled_requests(kind, tmp_path, certificate):
    made = survey("bits")
    with deployed(kind, tmp_path, certificate, made) as (proxy, _):
        assert_none_lost(proxy, tmp_path, made)


@needs("caddy", "caddy")
def test_the_collector_alone_withstands_smuggled_requests(tmp_path, certificate):
    """Caddy passes upgrades on here, as it does by itself."""
    made = survey("bits")
    with deployed("caddy", tmp_path, certificate, made, changes=UNGUARDED) as (proxy, _):
        assert_none_lost(proxy, tmp_path, made)


@contextmanager
def recorder():
    """An upstream that answers every connection once; its port, and the heads it was sent."""
    heads = []
    with socket.create_server(("127.0.0.1", 0)) as upstream:

        def answer():
            with suppress(OSError):
                while True:
                    line, _ = upstream.accept()
                    with line:
                        heads.append(line.recv(1 << 16).decode())
                        line.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield upstream.getsockname()[1], heads
        finally:
            upstream.shutdown(socket.SHUT_RDWR)
            thread.join(DEADLINE)


def assert_no_upgrade(kind, folder, certificate, changes=None):
    """The proxy alone: what it passes on of requests that ask for another protocol."""
    with recorder() as (port, heads):
        proxy = Proxy(kind, folder, certificate, port, changes=changes)
        try:
            for wish in ("x", "h2c", "websocket"):
                asked = f"GET /readyz HTTP/1.1\r\nHost: {NAME}\r\nUpgrade: {wish}\r\n"
                answer = proxy.raw((asked + "Connection: keep-alive, Upgrade\r\n\r\n").encode())
                assert answer.startswith(b"HTTP/1.1 204 ")
        finally:
            proxy.stop()
    assert len(heads) == 3 and not [head for head in heads if "upgrade" in head.lower()]


@pytest.mark.parametrize("kind", PROXIES)
def test_a_proxy_passes_no_upgrade_on(kind, tmp_path, certificate):
    assert_no_upgrade(kind, tmp_path / "proxy", certificate)
    if kind == "caddy":
        must_fail(assert_no_upgrade, kind, tmp_path / "other", certificate, UNGUARDED)


FEW = "from discreet.collector import limits\nlimits.CONNECTIONS = 20"
UNBUFFERED = {
    "nginx": {"proxy_request_buffering on;": "proxy_request_buffering off;"},
    "caddy": {"buffer_requests": "", "max_buffer_size 8MiB": ""},
}


@contextmanager
def slow_bodies(proxy, made, count):
    """Uploads whose last byte does not come, of one visitor."""
    content = frames(made, 1)
    start = upload_request(made, content)[:-1]
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(proxy.line()).sendall(start)
        yield


def connected(server):
    """How many connections the collector has, this one left out. In a crowd this one may have to
    give way before it has asked: then it is asked again.
    """
    for last in (False, False, False, False, True):
        try:
            found = httpx.get(f"{server.url}/metrics", headers=BEARER, timeout=DEADLINE).text
            return int(re.search(r"\ndiscreet_connections (\d+)\n", found)[1]) - 1
        except httpx.RemoteProtocolError:
            if last:
                raise
    return 0


def sent(client, request):
    """What the collector says to an upload, which is sent again as clients do it: the connection
    that a proxy has chosen may be the one that gives way.
    """
    for _ in range(4):
        answer = client.post(**request)
        if answer.status_code == 200:
            return answer.json()
    return client.post(**request).json()


@pytest.mark.parametrize("buffered", [True, False], ids=["as shipped", "unbuffered"])
@pytest.mark.parametrize("kind", PROXIES)
def test_slow_bodies_of_one_visitor_shut_nobody_out(kind, buffered, tmp_path, certificate):
    """Three times as many as the collector takes connections. As shipped the proxies keep them;
    a proxy that passes them on shows that the collector makes room by itself.
    """
    made = survey("bits")
    changes = None if buffered else UNBUFFERED[kind]
    with (
        deployed(kind, tmp_path, certificate, made, changes=changes, before=FEW) as (proxy, server),
        slow_bodies(proxy, made, 60),
    ):
        if not buffered:
            until(lambda: connected(server) >= 19, "the collector has the bodies")
        for _ in range(10):
            with proxy.visitor() as client:
                answer = sent(client, posting(made, frames(made, 1)))
                assert answer["accepted"] + answer["duplicates"] == 1
        if buffered:
            assert connected(server) < 15


@needs("nginx", "nginx-light")
def test_nginx_limits_the_requests_of_one_address(tmp_path, certificate):
    made = survey("bits")
    fewer = {"limit_conn visitors 200;": "limit_conn visitors 5;"}

    def status(source):
        with proxy.visitor(source=source) as client:
            return client.post(**posting(made, frames(made, 1))).status_code

    with (
        deployed("nginx", tmp_path, certificate, made, changes=fewer) as (proxy, _),
        slow_bodies(proxy, made, 5),
    ):
        until(lambda: status(VISITOR) == 503, "nginx has the bodies")
        assert status("127.0.0.78") == 200


# ---- systemd -------------------------------------------------------------------------------------

UNITS = ("discreet.service", "discreet-backup.service", "discreet-backup.timer")


@pytest.fixture
def units(tmp_path):
    """The units with a program that is there."""
    for name in UNITS:
        text = shipped(name).replace("/opt/discreet/bin/discreet", str(DISCREET))
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def analyze(*arguments):
    done = subprocess.run(
        ["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


@needs("systemd-analyze", "systemd")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_units(units, name):
    assert analyze("verify", "--man=no", units / name) == (0, "")
    file = units / name
    file.write_text(file.read_text().replace("Description=", "Descripton="))
    assert "Descripton" in analyze("verify", "--man=no", file)[1]


@needs("systemd-analyze", "systemd")
def test_the_unit_is_exposed_as_little_as_the_guide_says(units):
    def exposure(file):
        _, said = analyze("security", "--offline=true", "--no-pager", file)
        return float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)[1])

    found = exposure(units / "discreet.service")
    assert found < 2 and exposure(units / "discreet-backup.service") < 5
    said = re.search(r"exposure ([0-9.]+) of 10", GUIDE)[1]
    assert abs(found - float(said)) < 0.5  # versions of systemd weigh a little differently
    bare = units / "bare.service"
    bare.write_text("[Service]\nExecStart=/bin/true\n")
    assert exposure(bare) > 9


RESTRICTED = """
import ctypes, os
libc, seccomp = (ctypes.CDLL(name, use_errno=True) for name in (None, "libseccomp.so.2"))
libc.mount.argtypes = (ctypes.c_char_p,) * 3 + (ctypes.c_ulong, ctypes.c_char_p)
READ_ONLY, REMOUNT, BIND, ALL, PRIVATE = 1, 32, 4096, 16384, 1 << 18
assert libc.unshare(0x20000) == 0  # mounts of our own
here = os.getcwd().encode()
for source, target, how in ((None, b"/", ALL | PRIVATE), (here, here, BIND),
                            (None, b"/", REMOUNT | BIND | READ_ONLY)):
    assert libc.mount(source, target, None, how, None) == 0, os.strerror(ctypes.get_errno())
os.chdir(here)
seccomp.seccomp_init.restype = ctypes.c_void_p
rules = ctypes.c_void_p(seccomp.seccomp_init(0x00050001))  # EPERM for all others
for name in CALLS.split():
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        assert seccomp.seccomp_rule_add(rules, 0x7FFF0000, number, 0) == 0
assert seccomp.seccomp_load(rules) == 0
"""


def calls(group):
    """The system calls of one of systemd's groups."""
    said = analyze("syscall-filter", "--no-pager", group)[1]
    words = {line.strip() for line in said.splitlines()[1:] if not line.strip().startswith("#")}
    return {c for word in words - {""} for c in (calls(word) if word[0] == "@" else {word})}


@needs("systemd-analyze", "systemd")
@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can try the unit's restrictions without systemd"
)
def test_the_collector_runs_under_the_restrictions_that_could_stop_it(tmp_path):
    """A file system that it can write nowhere but in its own folder, and the system calls of the
    unit alone: numba compiles, two workers count, what is in flight is finished.
    """
    said = shipped("discreet.service")
    assert re.findall(r"^SystemCallFilter=(.*)", said, re.MULTILINE) == [
        "@system-service",
        "~@privileged",
    ]
    assert "ProtectSystem=strict\n" in said
    allowed = calls("@system-service") - calls("@privileged")
    assert len(allowed) > 200 and not {"mount", "chown", "setuid"} & allowed
    made = survey("fixed")
    made.save(tmp_path / "m.json")
    before = RESTRICTED.replace("CALLS", repr(" ".join(sorted(allowed))))
    outside = Path("/") / f"{uuid.uuid4().hex}-outside"  # temporary files may be elsewhere
    tries = (
        f"for one in (lambda: open({str(outside)!r}, 'w'), lambda: os.chown('.', 1, 1)):\n"
        "    try:\n        one()\n    except OSError as error:\n"
        "        print('denied', error.errno, flush=True)\n"
    )
    arguments = serve_arguments(tmp_path / "m.json", f"https://{NAME}")
    cache = f"os.environ['NUMBA_CACHE_DIR'] = {str(tmp_path / 'cache')!r}\n"
    with serving(tmp_path, *arguments, before=before + tries + cache) as server:
        assert server.output.startswith("denied 30\ndenied 1\n") and not outside.exists()
        with httpx.Client(base_url=server.url, timeout=DEADLINE) as client:
            for n in (1, 500):
                assert client.post(**posting(made, frames(made, n))).json()["accepted"] == n
            assert reports(client, "fixed") == 501
            for path in ("/readyz", "/c/fixed", "/c/fixed/results"):
                assert client.get(path).status_code == 200
            path = "/v1/collections/fixed/estimate?views=shrunk,consistent"
            assert client.get(path, headers=BEARER).json()["n"] == 501
        assert server.stop() == 0
    assert server.log == "" and list((tmp_path / "cache").rglob("*.nbi"))


def test_the_units_know_the_same_places():
    one, other = unit("discreet.service")["Service"], unit("discreet-backup.service")["Service"]
    for key in ("User", "StateDirectory", "WorkingDirectory", "EnvironmentFile"):
        assert one[key] == other[key]
    admin = shipped("discreet-admin")
    assert f"cd {one['WorkingDirectory']}\n" in admin and f"-u {one['User']} " in admin
    assert f". {one['EnvironmentFile'].removeprefix('-')}\n" in admin
    assert "DISCREET" not in shipped("discreet.service")  # no secret stands in a unit


# ---- the lines of the guide ----------------------------------------------------------------------


class Machine:
    """A machine of the guide in a folder: its places are below it, its service is a process."""

    def __init__(self, folder, postgres=None):
        self.folder, self.postgres = folder, postgres
        self.places = {
            "/opt/discreet/bin/discreet": str(DISCREET),
            "runuser -u discreet -- ": "",
            "export NUMBA_CACHE_DIR=/var/cache/discreet": "",  # it would compile for half a minute
            **{
                path: f"{folder}{path}"
                for path in ("/var/lib/discreet", "/var/backups/discreet", "/etc/discreet")
            },
        }  # fmt: skip
        if postgres is not None:
            self.places["/run/postgresql"] = str(postgres.folder)
        for path in ("var/lib", "var/backups", "etc"):
            (folder / path / "discreet").mkdir(parents=True)
        shutil.copy(
            ROOT / "src" / "discreet" / "data" / "health-survey.toml",
            folder / "etc/discreet/survey.toml",
        )
        admin = folder / "discreet-admin"
        admin.write_text(self.here(shipped("discreet-admin")), encoding="utf-8")
        admin.chmod(0o755)
        self.home, self.server = folder / "var/lib/discreet", None

    def here(self, text):
        for there, here in self.places.items():
            text = text.replace(there, here)
        return text

    def start(self):
        arguments = serve_arguments(self.folder / "etc/discreet/survey.toml", f"https://{NAME}")
        settings = self.folder / "etc/discreet/environment"
        if settings.exists():
            (store,) = re.findall(r'^DISCREET_STORE="(.+)"$', settings.read_text(), re.MULTILINE)
            arguments += ["--store", store]
        self.server = Server(self.home, *arguments, token=None).ready()

    def stop(self):
        if self.server is not None:
            assert self.server.stop() == 0
            self.server = None

    def shell(self, line, **settings):
        """A line in a shell, with the places of this machine."""
        own = {k: v for k, v in os.environ.items() if not k.startswith("DISCREET_")}
        own["PATH"] = f"{self.folder}:{own['PATH']}"
        done = subprocess.run(
            ["sh", "-c", self.here(line)],
            cwd=self.folder, env=own, capture_output=True, text=True, timeout=DEADLINE, **settings,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, line):
        """Do what a line of the guide says; what it prints."""
        line = line.partition("    #")[0].rstrip()
        if line.startswith("systemctl "):
            verb = line.split()[1]
            assert line == f"systemctl {verb} discreet", line
            return {"stop": self.stop, "start": self.start}[verb]()
        if line.startswith("runuser -u postgres"):
            return self.postgres.execute(shlex.split(line)[-1])
        if line.startswith("/opt/discreet/bin/pip"):
            return None
        known = ("discreet-admin ", "install -m 600 /dev/null", "echo 'DISCREET")
        assert line.startswith(known), line
        return self.shell(line)

    def send(self, made, n):
        with httpx.Client(base_url=self.server.url, timeout=DEADLINE) as client:
            answer = client.post(**posting(made, frames(made, n)))
        assert answer.json() == {"accepted": n, "duplicates": 0}

    def status(self):
        token = (self.home / "discreet.token").read_text().strip()
        head = {"Authorization": f"Bearer {token}"}
        url = f"{self.server.url}/v1/collections/health-survey/estimate"
        return httpx.get(url, headers=head).status_code


SECTIONS = ("PostgreSQL", "Backup and restore", "Upgrade", "The token", "How long things are kept")
NOT_HERE = ("apt-get ", "install -m 644", "systemctl daemon-reload", "systemctl enable")


def lines_of(section):
    """The lines of a section that are to be typed on a machine that runs."""
    text = re.search(rf"^## {section}$(.*?)(?=^## )", GUIDE, re.DOTALL | re.MULTILINE)[1]
    found = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)).splitlines()
    return [line for line in found if not line.startswith(NOT_HERE)]


@pytest.mark.parametrize(
    "database",
    [pytest.param(None, marks=pytest.mark.slow), pytest.param("postgresql", marks=GROUP)],
)
def test_the_lines_of_the_guide_do_what_it_says(tmp_path, request, database):
    """In their order, on a machine that collects all the while."""
    postgres = database and request.getfixturevalue("postgres")
    machine = Machine(tmp_path, postgres)
    made = d.Survey.design(tmp_path / "etc/discreet/survey.toml")
    counted, printed, copied = 0, {}, 0
    machine.start()
    try:
        for section in SECTIONS if postgres else SECTIONS[1:]:
            for line in lines_of(section):
                if machine.server is not None and "close" not in str(printed):
                    machine.send(made, 3)
                    counted += 3
                before = "token" in line and (machine.home / "discreet.token").read_text()
                said = printed[line] = machine.follow(line)
                if " backup" in line:
                    copied = counted
                if " verify" in line:
                    n = copied if "restored" in line else counted
                    assert said.startswith(f"OK health-survey: {n} reports\n")
                if " token " in line:
                    assert before != (machine.home / "discreet.token").read_text()
                    assert machine.status() == 200
        machine.stop()
        store = open_store(
            f"postgresql://discreet@/discreet?host={postgres.folder}"
            if postgres
            else str(machine.home / "discreet.sqlite")
        )
        assert store.collections() == []
        store.close()
        if postgres:
            assert oct((tmp_path / "etc/discreet/environment").stat().st_mode)[-3:] == "600"
    finally:
        machine.stop()
        if postgres:
            postgres.execute("DROP DATABASE IF EXISTS discreet WITH (FORCE)")
            postgres.execute("DROP ROLE IF EXISTS discreet")
    kept = tmp_path / "var/backups/discreet"
    result = d.Survey.load(kept / "survey.json")
    assert result == made and d.Tally.load(kept / "tally.json", made.mechanism).n == counted
    for name in ("by-hand", "before-upgrade"):
        copy = open_store(str(kept / f"{name}.sqlite"))
        assert 0 < copy.tally("health-survey").n <= counted and not copy.find_damage(
            "health-survey"
        )
        copy.close()
    assert {path.stat().st_mode & 0o077 for path in kept.iterdir()} == {0}


def test_a_line_that_does_not_work_is_seen(tmp_path):
    """The twin."""
    machine = Machine(tmp_path)
    for line in ("discreet-admin close none", "rm -r anything", "systemctl start other"):
        with pytest.raises(AssertionError):
            machine.follow(line)


@pytest.mark.slow
def test_the_nightly_backup_keeps_two_weeks(tmp_path):
    """The commands of the unit, as systemd would read them, while the collector runs."""
    machine = Machine(tmp_path)
    made = d.Survey.design(tmp_path / "etc/discreet/survey.toml")
    service, kept = unit("discreet-backup.service")["Service"], tmp_path / "var/backups/discreet"
    old, young = kept / "2020-01-01T033000.sqlite", kept / "2020-01-10T033000.sqlite"
    for path, days in ((old, 15.5), (young, 13.5)):
        path.touch()
        os.utime(path, (time.time() - 86400 * days,) * 2)
    machine.start()
    try:
        machine.send(made, 7)
        for key in ("ExecStart", "ExecStartPost"):
            command = shlex.split(machine.here(service[key].replace("%%", "%")))
            subprocess.run(command, cwd=machine.home, check=True, timeout=DEADLINE)
    finally:
        machine.stop()
    assert not old.exists() and young.exists()
    (written,) = set(kept.iterdir()) - {young}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}\.sqlite", written.name)
    shutil.copy(written, tmp_path / "copy.sqlite")
    store = open_store(str(tmp_path / "copy.sqlite"))
    assert store.tally("health-survey").n == 7 and not store.find_damage("health-survey")
    store.close()


# ---- what is watched -----------------------------------------------------------------------------

OURS = re.compile(r"\b(?:discreet|process)_\w+")


@pytest.fixture
def names(tmp_path):
    """The names of all metrics there are, as they are sent."""
    metrics = Metrics(tmp_path)
    text = metrics.text([State("survey", True, 1)])
    metrics.close()
    return set(re.findall(r"^(\w+)[{ ]", text, re.MULTILINE))


def test_alerts_and_dashboard_use_only_metrics_that_exist(names):
    board = json.loads(shipped("dashboard.json"))
    asked = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
    rules = re.findall(r"expr: (?:>\n)?(.*?)\n +(?:for|labels):", shipped("alerts.yml"), re.DOTALL)
    assert len(rules) == shipped("alerts.yml").count("alert:") and len(asked) > 10
    for expressions in (rules, asked):
        used = {name for expression in expressions for name in OURS.findall(expression)}
        assert used <= names, used - names
        assert len(used) >= 7
    assert not {"discreet_none_total"} <= names and OURS.findall("rate(discreet_none_total[5m])")
    every = {re.sub("_(sum|count)$", "_bucket", name) for name in names}
    on_board = {name for expression in asked for name in OURS.findall(expression)}
    assert every == on_board  # nothing is counted that nobody can look at


def test_the_labels_that_are_asked_for_exist():
    for text in (shipped("alerts.yml"), shipped("dashboard.json")):
        said = re.findall(r"by \(([^)]*)\)", text)
        labels = {x.strip() for one in said for x in one.split(",")}
        assert labels <= {"collection", "reason", "le", "instance"}


CASES = """
rule_files: [alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'up{job="discreet", instance="a"}', values: '1x5 0x30'}
      - {series: 'discreet_ready{instance="a"}', values: '1x5 0x30'}
      - {series: 'discreet_store_errors_total{instance="a"}', values: '0x5 0+5x30'}
      - {series: 'REFUSED{instance="a", collection="s", reason="size"}', values: '0x5 0+9x30'}
      - {series: 'REFUSED{instance="a", collection="t", reason="size"}', values: '0x5 0+9x30'}
      - {series: 'REFUSED{instance="a", collection="u", reason="closed"}', values: '0+90x35'}
      - {series: 'ACCEPTED{instance="a", collection="s"}', values: '0+20x35'}
      - {series: 'ACCEPTED{instance="a", collection="t"}', values: '0+900x35'}
      - {series: 'ACCEPTED{instance="a", collection="u"}', values: '0x35'}
      - {series: 'discreet_uploads_waiting{instance="a"}', values: '3x5 900x30'}
      - {series: 'discreet_uploads_waiting_bytes{instance="a"}', values: '9x35'}
      - {series: 'discreet_worker_restarts_total{instance="a"}', values: '0x5 0+1x30'}
      - {series: 'node_filesystem_avail_bytes{mountpoint="/"}', values: '90x5 5x30'}
      - {series: 'node_filesystem_size_bytes{mountpoint="/"}', values: '100x35'}
    promql_expr_test:
      - {expr: 'count(ALERTS) or vector(0)', eval_time: 4m, exp_samples: [{labels: '{}', value: 0}]}
      - expr: count by (alertname) (ALERTS{alertstate="firing"})
        eval_time: 30m
        exp_samples:
EXPECTED
      - expr: count by (collection) (ALERTS{alertname="DiscreetRefusals"})
        eval_time: 30m
        exp_samples: [{labels: '{collection="s"}', value: 1}]
"""
FIRING = ("Disk", "Down", "NotReady", "Queue", "Refusals", "Restarts", "StoreErrors")


@needs("promtool", "prometheus")
def test_prometheus_takes_the_alerts_and_they_speak_up(tmp_path):
    """Silent while all is well; and then each for its own reason."""
    shutil.copy(DEPLOY / "alerts.yml", tmp_path)

    def promtool(*arguments):
        return subprocess.run(
            ["promtool", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )

    def tested(firing):
        rows = "\n".join(
            f"          - {{labels: '{{alertname=\"Discreet{name}\"}}', value: 1}}"
            for name in firing
        )
        words = {
            "EXPECTED": rows,
            "REFUSED": "discreet_uploads_refused_total",
            "ACCEPTED": "discreet_reports_accepted_total",
        }
        (tmp_path / "cases.yml").write_text(replaced(CASES, words))
        return promtool("test", "rules", "cases.yml")

    done = promtool("check", "rules", "alerts.yml")
    assert done.returncode == 0 and "9 rules found" in done.stdout, done.stderr
    done = tested(FIRING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tested(FIRING[1:]).returncode == 1
