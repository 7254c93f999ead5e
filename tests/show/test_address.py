"""The one address that people use."""

import pytest

from discreet.errors import DataError
from discreet.show.address import elsewhere, framing, is_any, is_here, public


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("https://Survey.example.org/", "https://survey.example.org"),
        ("https://survey.example.org:443", "https://survey.example.org"),
        ("https://survey.example.org:8443/a/b/", "https://survey.example.org:8443/a/b"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_an_address_is_told_in_one_way(given, told):
    assert public(given) == told == public(told)


@pytest.mark.parametrize(
    "given",
    [
        *("", "survey.example.org", "ftp://x.org", "https://", "https://x.org/?a=1"),
        *("https://x.org/#f", "https://me:pass@x.org", "https://x.org:99999", "https://x y.org"),
        *("https://0.0.0.0:8000", "http://[::]:8000", "https://[::1", "https://bücher.example"),
    ],
)
def test_what_nobody_can_open_is_refused(given):
    with pytest.raises(DataError, match="is not an address that people can open"):
        public(given)


def test_without_tls_it_is_refused():
    with pytest.raises(DataError, match="not encrypted, and browsers do not let a page verify"):
        public("http://survey.example.org")


PUBLIC = "https://survey.example.org"


@pytest.mark.parametrize(
    ("header", "other"),
    [
        *(("survey.example.org", False), ("SURVEY.example.org:443", False)),
        *(("127.0.0.1:8000", False), ("localhost", False), ("[::1]:8000", False)),
        *(("other.example.org", True), ("survey.example.org:8443", True), ("", True)),
        *(("survey.example.org.evil.org", True), ("x:y", True), ("10.0.0.7", True)),
    ],
)
def test_other_names_are_elsewhere(header, other):
    assert elsewhere(PUBLIC, header) == other


def test_hosts():
    assert is_any("0.0.0.0") and is_any("::") and not is_any("127.0.0.1") and not is_any("x.org")
    assert is_here("127.0.0.9") and is_here("::1") and is_here("a.localhost")
    assert not is_here("10.0.0.1") and not is_here("localhost.org")


@pytest.mark.parametrize(
    ("given", "origins"),
    [
        ((), ()),
        (("https://www.example.org",), ("https://www.example.org",)),
        (("https://WWW.Example.org:443/",), ("https://www.example.org",)),
        (("https://a.org:8443", "https://a.org:8443/"), ("https://a.org:8443",)),
        (("http://localhost:3000", "http://127.0.0.1"), ("http://localhost:3000", "http://127.0.0.1")),
        (("https://[2001:db8::1]:8443",), ("https://[2001:db8::1]:8443",)),
    ],
)  # fmt: skip
def test_a_website_that_frames_the_page_is_an_origin(given, origins):
    assert framing(given) == origins


@pytest.mark.parametrize(
    "url",
    [
        "*", "'self'", "'none'", "https:", "https://", "https://*", "https://*.example.org",
        "example.org", "https://a.org/path", "https://a.org?x", "https://a.org#x", "ftp://a.org",
        "https://me@a.org", "https://a.org; script-src *", "https://a.org https://b.org",
        "https://a.org:99999", "https://münchen.de", "javascript:alert(1)", "data:text/html,x", "",
        "https://a.org\r\nX: 1", "https://a.org,https://b.org", "https://[::1",
    ],
)  # fmt: skip
def test_what_is_no_origin_cannot_frame_the_page(url):
    with pytest.raises(DataError, match="is not the address of one website") as refused:
        framing([url])
    assert "https://www.example.org" in str(refused.value)


def test_a_website_that_frames_the_page_is_encrypted():
    with pytest.raises(DataError, match="is not encrypted"):
        framing(["http://www.example.org"])
