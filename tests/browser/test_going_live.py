"""A survey written from nothing, as docs/deploying.md says: behind a TLS proxy,
answered on a phone and by a second person, backed up, restored, moved, and closed by its date.
"""

import base64
import hashlib
from datetime import UTC, datetime, timedelta

import chromium
import httpx
import pytest
from chromium import command, confirmed
from collecting import BEARER, serving, until
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from postgres import GROUP
from test_deploying import NAME, PROXIES, Proxy, certificate, free_port  # noqa: F401

from discreet.collector.store import open_store
from discreet.errors import short_fingerprint

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = GROUP
SURVEY = """
name = "term"
question = "What was hard for you this term?"

[about]
organiser = "Students' council"
contact = "council@example.org"
purpose = "To plan next term's help."
consent = "My report may be counted."
closes = {closes}
minimum = 60

[[level]]
name = "private"
epsilon = 1
items = ["money", "illness"]

[[level]]
name = "usual"
epsilon = 2
items = ["exams", "noise", "nothing"]
"""
# Once the file "later" is there, the collector's clock is two days ahead.
CLOCK = """
import datetime, pathlib
from discreet.collector import catalogue, records
class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        days = 2 if pathlib.Path("later").exists() else 0
        return datetime.datetime.now(tz) + datetime.timedelta(days=days)
records.datetime = catalogue.datetime = Clock
"""
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def trusted(folder):
    """The argument with which Chromium trusts this one certificate."""
    made = x509.load_pem_x509_certificate((folder / "survey.pem").read_bytes())
    key = made.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    known = base64.b64encode(hashlib.sha256(key).digest()).decode()
    return f"--ignore-certificate-errors-spki-list={known}"


def take_part(browser, link, label, **settings):
    """A profile of its own: the question, the answer, the receipt."""
    context = browser.new_context(**settings)
    page = context.new_page()
    page.goto(link)
    page.locator("#form").wait_for()
    expect(page.locator("#told")).to_contain_text("Students' council")
    expect(page.locator("#pinned")).to_contain_text(short_fingerprint(link[-64:]))
    page.get_by_label(label, exact=True).check()
    confirmed(page)
    page.locator("#send").click()
    expect(page.locator("#receipt")).to_be_visible()
    context.close()


@pytest.mark.parametrize("kind", [PROXIES[0], pytest.param("caddy", marks=pytest.mark.slow)])
def test_a_survey_goes_live_and_ends(kind, tmp_path, certificate, database):  # noqa: F811
    closes = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    (tmp_path / "survey.toml").write_text(SURVEY.format(closes=closes), encoding="utf-8")
    port = free_port()
    public = f"https://{NAME}:{port}"
    arguments = ("survey.toml", "--public-url", public, "--open-results")
    lookup = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
    with chromium.launched(lookup, trusted(certificate)) as browser:
        with serving(tmp_path, *arguments, before=CLOCK) as server:
            link = next(x for x in server.output.split() if x.startswith(f"{public}/c/term#"))
            proxy = Proxy(kind, tmp_path / "first", certificate, server.port, port)
            take_part(browser, link, "illness", **PHONE)
            backup = ("backup", "-o", "night.sqlite")
            assert "1 report" in command(tmp_path, *backup)  # while it runs
            take_part(browser, link, "exams")
            proxy.stop()
        command(tmp_path, "restore", "night.sqlite", "--store", "again.sqlite")
        assert "OK term: 1 report\n" in command(tmp_path, "verify", "--store", "again.sqlite")
        command(tmp_path, "move", database)
        with serving(tmp_path, *arguments, "--store", database, before=CLOCK) as server:
            proxy = Proxy(kind, tmp_path / "second", certificate, server.port, port)
            take_part(browser, link, "money", **PHONE, locale="ar")
            with httpx.Client(base_url=server.url) as client:
                path = "/v1/collections/term/estimate"
                assert client.get(path, headers=BEARER).json()["n"] == 3
                assert client.get(path).json()["n"] == 0  # not before there are 60
                (tmp_path / "later").touch()  # the day after
                store = open_store(database)
                until(
                    lambda: store.collection("term").closed_by_organiser, "it is closed by its date"
                )
                assert [event.what for event in store.history("term")] == [
                    "closed",
                    "moved",
                    "closed by its date",
                ]
                store.close()
                page = browser.new_page()
                page.goto(link)
                expect(page.get_by_role("alert")).to_contain_text("It takes no more answers")
                found = client.get(path, headers=BEARER).json()
                assert (found["n"], found["state"]) == (3, "closed")
            proxy.stop()
    assert "OK term: 3 reports" in command(tmp_path, "verify", "--store", database)
    command(tmp_path, "export", "term", "--store", database, "-o", "tally.json")
