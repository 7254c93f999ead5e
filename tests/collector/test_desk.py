"""The organiser's desk over HTTP, in a real `discreet serve`: who gets in, what other sites can do,
and what becomes of surveys.
"""

import io
import json
import os
import zipfile
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from checks import must_fail
from collecting import TOKEN, assert_strict, body, frames, ids, listening, posting, serving, until
from starlette.requests import Request

from discreet.collector import limits, tokens
from discreet.collector.app import Collector
from discreet.collector.desk_designer import Designer
from discreet.collector.desk_drafts import plain
from discreet.collector.desk_session import COOKIE, Sessions, WrongTokens
from discreet.collector.metrics import Metrics
from discreet.collector.problems import Problem
from discreet.collector.store import open_store
from discreet.data.templates import TEMPLATES, template
from discreet.errors import DataError, DiscreetError
from discreet.policy.budgets import Budget
from discreet.policy.sensitivity import SENSITIVITIES, STEPS
from discreet.survey import Survey

OTHER = "another-token-of-the-organiser"
TOML = """name = "{name}"
question = "Which one?"

[[level]]
name = "sensitive"
epsilon = "ln(4)"
items = ["depression", "epilepsy"]

[[level]]
name = "hardly sensitive"
epsilon = "ln(9)"
items = ["a cold", "none of these"]
"""


def survey_file(name="winter", **about):
    lines = "".join(f"{key} = {json.dumps(text)}\n" for key, text in about.items())
    return TOML.format(name=name) + (f"\n[about]\n{lines}" if about else "")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A collector that was started without a survey."""
    with serving(tmp_path_factory.mktemp("desk")) as running:
        yield running


@contextmanager
def browser(server, login=True, token=TOKEN):
    """A client that says what a browser says on the desk's page."""
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin", "Discreet-Desk": "1"}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as client:
        if login:
            assert client.post("/desk/login", json={"token": token}).status_code == 204
        yield client


@pytest.fixture
def desk(server):
    with browser(server) as client:
        yield client


def problem(answer, status, title):
    assert answer.status_code == status, answer.text
    assert answer.json()["title"] == title
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()["detail"]


READING = ("start", "surveys", "log", "surveys/x", "surveys/x/estimate", "surveys/x/results")
FILES = ("surveys/x/poster", "surveys/x/code.svg", "surveys/x/export", "surveys/x/backup")
CHANGING = (
    "open", "draft", "surveys", "rehearsals", "surveys/x/close", "surveys/x/reopen",
    "surveys/x/delete",
)  # fmt: skip


# ---- who gets in ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*READING, *FILES])
def test_nobody_reads_anything_without_a_session(server, path):
    with browser(server, login=False) as client:
        assert "log in" in problem(client.get(f"/desk/{path}"), 401, "session")
        client.headers["Authorization"] = f"Bearer {TOKEN}"  # the cookie is the only way in
        problem(client.get(f"/desk/{path}"), 401, "session")


@pytest.mark.parametrize("path", CHANGING)
def test_nobody_changes_anything_without_a_session(server, path):
    with browser(server, login=False) as client:
        problem(client.post(f"/desk/{path}", json={}), 401, "session")
        assert client.get(f"/desk/{path}").status_code in (401, 405)


def test_the_cookie_is_for_this_site_and_this_page_alone(server):
    with browser(server, login=False) as client:
        answer = client.post("/desk/login", json={"token": TOKEN})
    value, *flags = answer.headers["set-cookie"].split("; ")
    assert flags == ["Path=/desk", "HttpOnly", "SameSite=Strict"]  # ends with the browser's session
    assert value.startswith(f"{COOKIE}=") and TOKEN not in value and answer.content == b""
    with browser(server, login=False) as client:
        client.headers["Origin"] = server.url.replace("http:", "https:")  # as behind a TLS proxy
        answer = client.post("/desk/login", json={"token": TOKEN})
        assert answer.headers["set-cookie"].endswith("; SameSite=Strict; Secure")


def test_the_token_is_in_no_page_and_in_no_log(server, desk):
    pages = ["/desk", "/static/desk.js", "/desk/preview/c/x", "/desk/log", "/desk/start"]
    for page in pages:
        found = desk.get(page)
        assert found.status_code == 200 and TOKEN not in found.text
    with browser(server, login=False) as client:
        wrong = "a wrong token that nobody should read anywhere"
        assert "not the organiser" in problem(
            client.post("/desk/login", json={"token": wrong}), 401, "session"
        )
    log = server.log + desk.get("/desk/log").text
    assert "logged in at the desk" in log and "a wrong token was sent" in log
    assert TOKEN not in log and wrong not in log and "127.0.0.1" not in log


@pytest.mark.parametrize("token", [None, 7, "", ["x"], "\ud800", "x" * 5000])
def test_what_is_no_token_is_refused(server, token):
    with browser(server, login=False) as client:
        content = json.dumps({"token": token}).encode()
        status = client.post("/desk/login", content=content).status_code
        assert status == (413 if isinstance(token, str) and len(token) > 4000 else 401)
        assert client.post("/desk/login", content=b"[1]").status_code == 422


def test_a_forged_or_changed_cookie_is_refused(server, desk):
    real = desk.cookies[COOKIE]
    expires, nonce, secure, mark = real.split(".")
    forged = [
        "", "x", real[:-1], real + "0", real.upper(), f" {real}",
        f"{expires}.{nonce}.{mark}",
        f"{expires}.{nonce}.1.{mark}",
        f"{expires}.{'0' * 32}.{secure}.{mark}",
        f"{int(expires, 16) + 1:x}.{nonce}.{secure}.{mark}",
        f"{expires}.{nonce}.{secure}.{'0' * 64}",
    ]  # fmt: skip
    with browser(server, login=False) as client:
        for cookie in forged:
            answer = client.get("/desk/surveys", headers={"Cookie": f"{COOKIE}={cookie}"})
            assert answer.status_code == (200 if cookie == f" {real}" else 401), cookie
        assert client.get("/desk/surveys", headers={"Cookie": f"{COOKIE}={real}"}).is_success


def asking(cookie):
    head = [(b"cookie", f"{COOKIE}={cookie}".encode())]
    return Request({"type": "http", "headers": head})


def test_a_session_ends_after_its_hours_and_survives_a_restart():
    clock = [1_000_000.0]
    first = Sessions(tokens.TokenCheck(TOKEN), lambda: clock[0])
    cookie = first.begin(TOKEN, False)
    assert first.begin(OTHER, False) is None
    again = Sessions(tokens.TokenCheck(TOKEN), lambda: clock[0])  # another worker, or a new process
    clock[0] += limits.SESSION_SECONDS - 1
    assert again.find(asking(cookie)).secure is False
    clock[0] += 2
    with pytest.raises(Problem, match="log in"):
        again.find(asking(cookie))


def test_a_session_ends_with_its_token(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_TOKEN", raising=False)
    monkeypatch.delenv("DISCREET_TOKEN_FILE", raising=False)
    path = Path("discreet.token")
    path.write_text(TOKEN)
    monkeypatch.setenv("DISCREET_TOKEN_FILE", str(path))
    sessions = Sessions(tokens.TokenCheck.from_environment())
    old = sessions.begin(TOKEN, False)
    tokens.add(path)  # both work while people change over
    newest, older = tokens.read_all()
    new = sessions.begin(newest, True)
    assert older == TOKEN and sessions.begin(TOKEN, False)
    assert not sessions.find(asking(old)).secure and sessions.find(asking(new)).secure
    assert tokens.retire(path) and not tokens.retire(path)
    with pytest.raises(Problem, match="log in"):
        sessions.find(asking(old))
    assert sessions.find(asking(new)) and sessions.begin(TOKEN, False) is None
    tokens.add(path)
    with pytest.raises(DataError, match="2 tokens work already; end the older one first"):
        tokens.add(path)  # nobody is locked out unawares
    assert len(tokens.read_all()) == 2
    tokens.renew(path)
    assert len(tokens.read_all()) == 1
    with pytest.raises(Problem, match="log in"):
        sessions.find(asking(new))


def test_wrong_tokens_are_limited_by_address():
    clock = [0.0]
    wrong = WrongTokens(lambda: clock[0])
    for _ in range(limits.WRONG_TOKENS):
        wrong.check("a")
        wrong.add("a")
    with pytest.raises(Problem, match="too many wrong tokens; try again in 60 seconds") as refused:
        wrong.check("a")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "60"})
    wrong.check("b")
    clock[0] += limits.WRONG_SECONDS
    wrong.check("a")
    for k in range(limits.WRONG_ADDRESSES + 5):
        wrong.add(f"address {k}")
    assert len(wrong._times) == limits.WRONG_ADDRESSES


def test_after_too_many_wrong_tokens_the_right_one_still_opens(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "WRONG_TOKENS", 3)
    store = open_store(str(tmp_path / "s.sqlite"))
    with listening(Collector(store, Metrics(str(tmp_path)), TOKEN).application()) as url:

        class Here:
            pass

        Here.url = url
        with browser(Here) as before:
            with browser(Here, login=False) as client:
                sent = [client.post("/desk/login", json={"token": OTHER}) for _ in range(4)]
                assert [x.status_code for x in sent] == [401, 401, 401, 429]
                # otherwise anybody could lock the organiser out
                assert client.post("/desk/login", json={"token": TOKEN}).status_code == 204
            assert before.get("/desk/surveys").is_success  # who is in stays in


def test_logging_out_takes_the_cookie_away(server):
    with browser(server) as client:
        assert client.get("/desk/surveys").is_success
        answer = client.post("/desk/logout")
        assert answer.status_code == 204 and "Max-Age=0" in answer.headers["set-cookie"]
        assert not client.cookies and client.get("/desk/surveys").status_code == 401


# ---- other sites ---------------------------------------------------------------------------------

STRANGE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "{url}.evil.example"},
    {"Origin": "{url}", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "{url}", "Sec-Fetch-Site": "same-site"},
    {"Origin": "{url}", "Sec-Fetch-Site": "none"},
    {"Origin": None, "Sec-Fetch-Site": None},
    {"Origin": None, "Sec-Fetch-Site": "cross-site"},
    {"Discreet-Desk": None},  # a form cannot set it
]


@pytest.mark.parametrize("path", ["login", "logout", *CHANGING])
@pytest.mark.parametrize("strange", STRANGE)
def test_another_site_changes_nothing(server, desk, path, strange):
    """Even with the cookie, which SameSite keeps from being sent."""
    for name, value in strange.items():
        if value is None:
            del desk.headers[name]
        else:
            desk.headers[name] = value.format(url=server.url)
    answer = desk.post(f"/desk/{path}", json={"token": TOKEN, "toml": TOML.format(name="evil")})
    problem(answer, 403, "origin")
    assert "set-cookie" not in answer.headers
    assert "evil" not in {c["name"] for c in desk_list(server)}


def desk_list(server):
    return httpx.get(f"{server.url}/v1/collections").json()["collections"]


def test_without_an_origin_the_browsers_word_is_enough(desk):
    del desk.headers["Origin"]
    assert desk.post("/desk/draft", json={"toml": survey_file()}).is_success


def test_another_site_reads_nothing(server, desk):
    desk.headers["Sec-Fetch-Site"] = "cross-site"
    for path in (*READING, *FILES):
        problem(desk.get(f"/desk/{path}"), 403, "origin")
    preflight = desk.options("/desk/surveys", headers={"Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 405
    assert not any(name.startswith("access-control") for name in preflight.headers)


def test_every_answer_has_strict_headers(desk):
    for path in ("/desk", "/desk/start", "/desk/surveys", "/desk/nothing", "/desk/surveys/none"):
        assert_strict(desk.get(path))
    assert "frame-src 'self'" in desk.get("/desk").headers["content-security-policy"]
    rules = desk.get("/desk/preview/c/x").headers["content-security-policy"]
    assert "connect-src 'none'" in rules and "frame-ancestors 'self'" in rules
    assert "unsafe" not in rules and "http" not in rules


# ---- drafts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_is_a_valid_draft_and_comes_back_unchanged(desk, name):
    text = template(name)
    document = desk.post("/desk/open", json={"toml": text}).json()["document"]
    told = desk.post("/desk/draft", json={"document": document, "people": 2000}).json()
    as_text = desk.post("/desk/draft", json={"toml": text, "people": 2000}).json()
    assert told == as_text and told["problem"] is None and told["taken"] is False
    assert told["forecast"]["users"] == 2000 and told["preview"]["state"] == "open"
    assert desk.post("/desk/open", json={"toml": told["toml"]}).json()["document"] == document


def test_what_is_shown_is_what_is_published(desk):
    told = desk.post("/desk/draft", json={"toml": survey_file("shown")}).json()
    fingerprint = told["forecast"]["fingerprint"]
    assert Survey.from_document(told["preview"]["survey"]).fingerprint == fingerprint
    other = survey_file("shown").replace("a cold", "the flu")
    detail = problem(
        desk.post("/desk/surveys", json={"toml": other, "fingerprint": fingerprint}), 409, "refused"
    )
    assert "has changed since it was shown" in detail
    answer = desk.post("/desk/surveys", json={"toml": told["toml"], "fingerprint": fingerprint})
    assert answer.status_code == 201 and answer.json()["fingerprint"] == fingerprint
    found = httpx.get(f"{desk.base_url}/v1/collections/shown").json()
    assert found["fingerprint"] == fingerprint
    taken = desk.post("/desk/draft", json={"toml": other}).json()
    assert taken["taken"] is True
    assert "another survey" in problem(
        desk.post("/desk/surveys", json={"toml": other}), 409, "refused"
    )


WRONG = {
    "about.notice": survey_file(notice="example.org"),
    "about.closes": survey_file(closes="2020-01-01T00:00:00Z"),
    "about.opens": survey_file(opens="tomorrow"),
    "name": survey_file("a/b"),
    "question.0": survey_file().replace("ln(4)", "-1"),
    "question.1": """[[question]]
name = "a"
scale = 1
items = ["x", "y"]
[[question]]
name = "b"
scale = 1
items = ["x"]
""",
    "public.0": survey_file() + '[[public]]\nname = "region"\nitems = ["north"]\n',
    "answers": survey_file().replace("question =", "answers = 7\nquestion ="),
    "translations": survey_file() + "[translations.de.nothing]\n",
    "file": "name = \n",
    "": 'kind = "single"',
}


@pytest.mark.parametrize("where", WRONG)
def test_what_is_wrong_is_said_where_it_is(desk, where):
    told = desk.post("/desk/draft", json={"toml": WRONG[where]}).json()["problem"]
    assert told["where"] == (where or "question.0"), told
    assert 10 < len(told["detail"]) < 400 and "\n" not in told["detail"]
    detail = problem(desk.post("/desk/surveys", json={"toml": WRONG[where]}), 422, "draft")
    assert detail == told["detail"]


def test_a_sentence_is_about_the_place_where_it_stands(desk):
    """Two things are wrong; the first of the form is said, with its own sentence."""
    both = survey_file(notice="example.org").replace("ln(4)", "-1")
    told = desk.post("/desk/draft", json={"toml": both}).json()["problem"]
    assert told["where"] == "about.notice" and "example.org" in told["detail"]


def test_a_draft_names_no_file_of_the_server(desk, server):
    (server.folder / "secret.csv").write_text("item,level\nx,sensitive\n")
    text = survey_file().replace("question =", 'items_file = "secret.csv"\nquestion =')
    told = desk.post("/desk/draft", json={"toml": text}).json()["problem"]
    assert "items_file names a file" in told["detail"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"NaN", b'{"toml": 7}', b'{"document": []}', b'{"document": {"x": NaN}}'],
)
def test_what_is_no_draft_is_one_sentence(desk, content):
    answer = desk.post("/desk/surveys", content=content)
    assert len(problem(answer, 422, "draft")) > 10


def test_a_draft_that_is_too_large_is_refused(desk):
    answer = desk.post("/desk/draft", content=b" " * (limits.DRAFT_SIZE + 1))
    problem(answer, 413, "large")


def test_numbers_and_times_come_through_a_browser_exactly(desk):
    time, number = "2099-01-01T10:00:00+01:00", "1.2345678901234567890"
    text = survey_file(closes=time).replace('"ln(4)"', number).replace(f'"{time}"', time)
    document = desk.post("/desk/open", json={"toml": text}).json()["document"]
    assert document["level"][0]["epsilon"] == "1.2345678901234567890"
    sent = json.dumps({"document": document}).encode()
    told = desk.post("/desk/draft", content=sent).json()
    assert told["problem"] is None
    levels = told["forecast"]["questions"][0]["levels"]
    assert levels[0]["epsilon"] == "1.234567890123456789"
    assert told["preview"]["survey"]["about"]["closes"] == "2099-01-01T09:00:00Z"
    assert plain({"x": 2**60, "y": [1.5]}) == {"x": str(2**60), "y": [1.5]}


def test_the_words_say_their_factors():
    for word in (*SENSITIVITIES, *STEPS):
        assert Budget.parse(word.epsilon).value == word.factor


# ---- the life of a survey ------------------------------------------------------------------------


def test_a_rehearsal_never_meets_real_reports(desk, server):
    text = survey_file("tried")
    real = desk.post("/desk/surveys", json={"toml": text}).json()
    made = desk.post("/desk/rehearsals", json={"toml": text, "people": 400}).json()
    assert (made["name"], made["rehearsal"]) == ("tried-rehearsal", True)
    assert made["fingerprint"] != real["fingerprint"]
    until(lambda: estimate(desk, "tried-rehearsal")["n"] == 400, "all have answered")
    assert estimate(desk, "tried")["n"] == 0
    survey = Survey.from_document(
        httpx.get(f"{server.url}/v1/collections/tried-rehearsal").json()["survey"]
    )
    upload = posting(survey, frames(survey, 3))
    upload["url"] = "/v1/collections/tried/reports"
    answer = httpx.request("POST", server.url + upload.pop("url"), **upload)
    assert answer.status_code == 409  # a report of the rehearsal is none of the survey
    again = desk.post("/desk/rehearsals", json={"toml": text, "people": 60}).json()
    until(lambda: estimate(desk, again["name"])["n"] == 60, "the earlier one is gone")
    assert desk.post(f"/desk/surveys/{again['name']}/delete", json={}).status_code == 204
    assert "tried-rehearsal" not in {c["name"] for c in desk_list(server)}


def test_a_rehearsal_does_not_replace_a_real_survey(desk, server):
    desk.post("/desk/surveys", json={"toml": survey_file("real-rehearsal")})
    answer = desk.post("/desk/rehearsals", json={"toml": survey_file("real")})
    assert "is a real survey, not a rehearsal" in problem(answer, 409, "refused")
    assert estimate(desk, "real-rehearsal")["state"] == "open"


@pytest.mark.parametrize("people", [0, -1, 1.5, "7", True, limits.REHEARSED + 1])
def test_a_rehearsal_needs_a_number_of_people(desk, people):
    answer = desk.post("/desk/rehearsals", json={"toml": survey_file(), "people": people})
    assert "people must be a whole number from 1 to 100,000" in problem(answer, 422, "draft")


def estimate(desk, name):
    return desk.get(f"/desk/surveys/{name}/estimate").json()


def test_few_reports_are_not_counted_on_the_list(desk, server):
    made = desk.post("/desk/surveys", json={"toml": survey_file("few")}).json()
    survey = Survey.from_document(httpx.get(f"{server.url}/v1/collections/few").json()["survey"])

    def listed():
        (mine,) = [c for c in desk.get("/desk/surveys").json()["surveys"] if c["name"] == "few"]
        return mine["n"], mine["least"]

    assert (made["n"], listed()) == (None, (None, 50))
    httpx.request("POST", server.url + posting(survey, b"")["url"], **sent(survey, 49))
    assert listed() == (None, 50)
    httpx.request("POST", server.url + posting(survey, b"")["url"], **sent(survey, 1))
    assert listed() == (50, 50)


def sent(survey, n):
    upload = posting(survey, frames(survey, n))
    return {key: upload[key] for key in ("content", "headers")}


def test_close_reopen_and_delete_with_its_name(desk):
    desk.post("/desk/surveys", json={"toml": survey_file("life"), "keep": "reports"})
    told = desk.get("/desk/surveys/life").json()
    assert told["keeps"] == "reports" and told["history"] == []
    assert (
        told["invitation"].startswith(f"{desk.base_url}/c/life#") and "<a href=" in told["button"]
    )
    detail = problem(desk.post("/desk/surveys/life/delete", json={"name": "life"}), 409, "refused")
    assert "is open" in detail
    assert desk.post("/desk/surveys/life/close").json()["state"] == "closed"
    assert desk.post("/desk/surveys/life/reopen").json()["state"] == "open"
    assert [e["what"] for e in desk.get("/desk/surveys/life").json()["history"]] == [
        "closed", "reopened",
    ]  # fmt: skip
    desk.post("/desk/surveys/life/close")
    for typed in ({}, {"name": "LIFE"}, {"name": "life "}, {"name": None}):
        answer = desk.post("/desk/surveys/life/delete", json=typed)
        assert "type the survey's name" in problem(answer, 409, "refused")
    assert desk.post("/desk/surveys/life/delete", json={"name": "life"}).status_code == 204
    problem(desk.get("/desk/surveys/life"), 404, "unknown")
    problem(desk.post("/desk/surveys/life/close"), 404, "unknown")


def test_files(desk, server, tmp_path):
    desk.post("/desk/surveys", json={"toml": survey_file("über uns"), "keep": "reports"})
    page = desk.get("/desk/surveys/über uns").json()
    survey = Survey.from_document(
        httpx.get(f"{server.url}/v1/collections/über uns").json()["survey"]
    )
    httpx.request("POST", server.url + posting(survey, b"")["url"], **sent(survey, 70))
    poster = desk.get("/desk/surveys/über uns/poster")
    assert page["invitation"] in poster.text and "<script" not in poster.text
    assert "script-src" not in poster.headers["content-security-policy"]
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        code = desk.get(f"/desk/surveys/über uns/code.{kind}")
        assert code.content.startswith(start)
    problem(desk.get("/desk/surveys/über uns/code.exe"), 404, "unknown")
    export = desk.get("/desk/surveys/über uns/export")
    with zipfile.ZipFile(io.BytesIO(export.content)) as made:
        assert sorted(made.namelist()) == [
            "README.txt", "reports.parquet", "survey.json", "tally.json",
        ]  # fmt: skip
        assert json.loads(made.read("survey.json"))["name"] == "über uns"
        assert json.loads(made.read("tally.json"))["n"] == 70
        told = made.read("README.txt").decode()
        assert "70 perturbed reports" in told and "public questions" not in told
    assert "filename*=UTF-8''%C3%BCber%20uns.zip" in export.headers["content-disposition"]
    path = tmp_path / "copy.sqlite"
    path.write_bytes(desk.get("/desk/surveys/über uns/backup").content)
    store = open_store(str(path), create=False)
    assert store.tally("über uns").n == 70 and store.find_damage("über uns") == []
    store.close()
    until(lambda: not list(server.temporary.glob("discreet-desk-*")), "its folders are gone")


def test_the_results_page_needs_no_token_at_the_desk(desk):
    desk.post("/desk/surveys", json={"toml": survey_file("seen")})
    page = desk.get("/desk/surveys/seen/results").text
    assert 'data-estimate="/desk/surveys/seen/estimate"' in page and "data-token" not in page
    assert estimate(desk, "seen")["name"] == "seen"


def test_serve_without_a_file_starts_and_goes_on_with_its_store(server, tmp_path):
    assert "write one at the desk" in server.output
    with serving(tmp_path) as first, browser(first) as client:
        client.post("/desk/surveys", json={"toml": survey_file("kept")})
    with serving(tmp_path) as second:
        assert [c["name"] for c in desk_list(second)] == ["kept"]


def test_the_desk_says_that_results_are_open(tmp_path):
    store = open_store(str(tmp_path / "s.sqlite"))
    service = Collector(store, Metrics(str(tmp_path)), TOKEN, open_results=True).application()
    with listening(service) as url:
        head = {"Origin": url, "Discreet-Desk": "1"}
        with httpx.Client(base_url=url, headers=head, timeout=60) as client:
            client.post("/desk/login", json={"token": TOKEN})
            assert client.get("/desk/start").json()["open_results"] is True
            made = client.post("/desk/surveys", json={"toml": survey_file("seen by all")}).json()
            assert made["open_results"] is True


def test_nothing_is_published_into_a_store_that_is_deleted(tmp_path):
    (tmp_path / "a.toml").write_text(survey_file("a"))
    with serving(tmp_path, "a.toml", "--rehearse", 5) as rehearsal, browser(rehearsal) as client:
        answer = client.post("/desk/surveys", json={"toml": survey_file("lost")})
        assert "without --rehearse" in problem(answer, 409, "refused")
        made = client.post("/desk/rehearsals", json={"toml": survey_file("b"), "people": 5})
        assert made.status_code == 201


def test_every_worker_knows_a_session(tmp_path):
    with serving(tmp_path, "--workers", 2) as two, browser(two) as client:
        client.headers["Connection"] = "close"
        assert {client.get("/desk/surveys").status_code for _ in range(20)} == {200}
        made = client.post("/desk/surveys", json={"toml": survey_file("shared")})
        assert made.status_code == 201
        names = [client.get("/desk/surveys").json()["surveys"][0]["name"] for _ in range(10)]
        assert names == ["shared"] * 10


def test_a_check_that_lets_everybody_in_would_be_seen(server, monkeypatch):
    """The twin: the tests of other sites fail where nothing looks at the origin."""
    monkeypatch.setattr("discreet.collector.desk.check_origin", lambda *_: False)
    store = open_store(str(server.folder / "open.sqlite"))
    metrics = Metrics(str(server.temporary))
    with listening(Collector(store, metrics, TOKEN).application()) as url:
        answer = httpx.post(f"{url}/desk/login", json={"token": TOKEN})
        must_fail(problem, answer, 403, "origin")


# ---- found by an attack --------------------------------------------------------------------------


def close_and_delete(desk, name):
    assert desk.post(f"/desk/surveys/{name}/close").is_success
    assert desk.post(f"/desk/surveys/{name}/delete", json={"name": name}).status_code == 204


def send(server, survey, item, people):
    reports = [survey.mechanism.perturb(item) for _ in range(people)]
    request = posting(survey, body(ids(people), reports))
    request["url"] = server.url + request["url"]
    assert httpx.post(**request).json()["accepted"] == people


def test_a_survey_that_is_published_again_starts_anew(server, desk):
    """The same file has the same fingerprint, and may have as many reports as before."""
    seen = []
    for item in ("a cold", "depression"):
        assert desk.post("/desk/surveys", json={"toml": survey_file("anew")}).status_code == 201
        survey = Survey.from_document(
            httpx.get(f"{server.url}/v1/collections/anew").json()["survey"]
        )
        send(server, survey, item, 120)  # 7 standard errors apart
        found = desk.get("/desk/surveys/anew/estimate")
        counts = {row["item"]: row["count"] for row in found.json()["items"]}
        assert max(counts, key=counts.get) == item
        seen.append(found.headers["etag"])
        close_and_delete(desk, "anew")
    assert seen[0] != seen[1]


def test_another_survey_under_the_same_name_takes_reports_at_once(server, desk):
    for title in ("First?", "Second?"):
        toml = survey_file("again").replace("Which one?", title)
        assert desk.post("/desk/surveys", json={"toml": toml}).status_code == 201
        described = desk.get("/desk/surveys/again").json()
        mark = described["invitation"].partition("#")[2]
        until(lambda mark=mark: upload(server, "again", mark).status_code != 409, "it is taken", 5)
        close_and_delete(desk, "again")


def upload(server, name, fingerprint):
    headers = {"Content-Type": "application/octet-stream", "Discreet-Survey": fingerprint}
    url = f"{server.url}/v1/collections/{name}/reports"
    return httpx.post(url, headers=headers, content=b"", timeout=30)


@pytest.mark.parametrize(
    "toml",
    [
        "a" + ".a" * 480_000 + " = 1",
        "\n".join("a." * 400 + f"k{k} = 1" for k in range(1100)),
        "x = " + "[" * 300 + "]" * 300,
    ],
    ids=["one long key", "many long keys", "nested"],
)
def test_no_file_keeps_the_service_busy(desk, toml):
    answer = desk.post("/desk/open", json={"toml": toml}, timeout=5)
    assert answer.status_code in (400, 422) and "file" in answer.json()["detail"]


def test_no_file_of_a_draft_is_even_opened(desk, tmp_path):
    """Not even to find out what else is wrong: a pipe would be waited for."""
    os.mkfifo(tmp_path / "pipe")
    level = [{"name": "a", "epsilon": 1}]
    row = {"items_file": str(tmp_path / "pipe"), "level": level}
    for document in (
        {"name": "s", "question": "Q?", **row},
        {"name": "s", "question": [{"name": "q", "text": "Q?", **row}]},
    ):
        answer = desk.post("/desk/draft", json={"document": document, "people": 100}, timeout=10)
        assert answer.json()["problem"]["where"] == "question.0"
        assert "items_file names a file" in answer.json()["problem"]["detail"]


def test_nothing_that_was_rehearsed_elsewhere_is_published(desk):
    toml = survey_file("pretended") + "\n[about]\nrehearsal = true\n"
    answer = desk.post("/desk/surveys", json={"toml": toml})
    assert answer.status_code == 422 and "only a rehearsal" in answer.json()["detail"]


def test_a_strange_origin_is_refused_and_no_error(server):
    with browser(server) as client:
        answer = client.post("/desk/login", json={"token": TOKEN}, headers={"Origin": "http://["})
        assert answer.status_code == 403


def test_a_design_that_takes_too_long_is_ended():
    """Its process too; the next design has a new one."""
    designer = Designer(seconds=2)
    rows = "\n".join(
        f'[[question]]\nname = "q{k}"\ntext = "?"\n'
        + "".join(
            f'[[question.level]]\nname = "{e}"\nepsilon = {e}\n'
            f'items = ["{e}a{k}", "{e}b{k}", "{e}c{k}"]\n'
            for e in (1, 1.5, 2)
        )
        for k in range(40)
    )
    try:
        with pytest.raises(DiscreetError, match="takes more than 2 seconds; choose how many"):
            designer.design(f'name = "long"\nanswers = "auto"\n{rows}')
        designer._seconds = 60
        assert designer.design(survey_file()).name == "winter"
        with pytest.raises(DiscreetError, match="epsilon"):
            designer.design(survey_file().replace('"ln(4)"', "-1"))
        process = designer._process
    finally:
        designer.close()
    assert process.poll() is not None
