"""A collector that is not one, and what is asked there."""

import http.server
import json
from collections import deque
from urllib.parse import unquote

import discreet as d

COUNTED = b'{"accepted": 1, "duplicates": 0}'


class Fake(http.server.ThreadingHTTPServer):
    """A collector that is not one: says what the test wants, in turn, and remembers all that it was
    sent.
    """

    daemon_threads = True

    def __init__(self, *surveys):
        super().__init__(("127.0.0.1", 0), Speaker)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.documents = {made.name: made.to_document() for made in surveys}
        self.script, self.seen = deque(), []

    @property
    def posts(self):
        return [body for method, _, _, body in self.seen if method == "POST"]

    def answer(self, method, path):
        """(status, headers, body), or None to hang up."""
        if self.script:
            return self.script.popleft()
        if method == "POST":
            return 200, {}, COUNTED
        name = unquote(path.removeprefix("/v1/collections/"))
        if name not in self.documents:
            return 404, {}, b'{"detail": "there is no such collection"}'
        return (
            200,
            {},
            json.dumps({"name": name, "state": "open", "survey": self.documents[name]}).encode(),
        )


class Speaker(http.server.BaseHTTPRequestHandler):
    def speak(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        answer = self.server.answer(self.command, self.path)
        if answer is None:
            self.close_connection = True
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = speak

    def log_message(self, *_):
        pass


def entries(home):
    return json.loads(home.read_text())["entries"]


def single(name, *labels, eps=1.0, model="oue"):
    """A survey of one question of one level about these items."""
    policy = d.Policy.from_levels([("only", eps, list(labels))])
    return d.Survey(name, [d.design(policy, model)])
