"""Trying out with phones: `serve --lan`, its certificate, and a phone that answers."""

import base64
import hashlib
import os
import re
import ssl
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import chromium
import pytest
from chromium import answered
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from discreet.cli import main
from discreet.collector.lan import make_certificate, own_address
from discreet.data import examples
from discreet.errors import DataError

if chromium.missing():
    pytest.skip(chromium.missing(), allow_module_level=True)

TOY = str(Path(examples.__file__).with_name("toy.toml"))
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def own():
    try:
        return own_address()
    except DataError:
        pytest.skip("this machine is in no network")


def spki(pem):
    key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


@pytest.fixture
def serving(tmp_path):
    """`discreet serve --lan` of the toy survey with 50 simulated people; what it says."""
    own()
    process = subprocess.Popen(
        [Path(sys.executable).with_name("discreet"), "serve", TOY, "--lan",
         "--port", "0", "--rehearse", "50"],
        cwd=tmp_path,
        env={**os.environ, "DISCREET_TOKEN": "long enough a token", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        yield "".join(iter(process.stdout.readline, "Collecting; stop with Ctrl-C.\n"))
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
    assert not list(tmp_path.rglob("lan.key"))  # the key goes with the process


def test_a_phone_of_the_network_answers(serving):
    """Over TLS, so that the page can check; without the certificate it is refused."""
    link = re.search(r"https://\S+/c/\S+", serving)[0]
    address, port = re.search(r"https://([\d.]+):(\d+)", link).groups()
    assert address == own() and "█" in serving and "browsers warn" in serving
    pem = ssl.get_server_certificate((address, int(port)))
    der = ssl.PEM_cert_to_DER_cert(pem)
    assert ":".join(f"{x:02X}" for x in hashlib.sha256(der).digest()) in serving
    context = ssl.create_default_context(cadata=pem)  # the name in it is this machine's
    with urllib.request.urlopen(f"https://{address}:{port}/readyz", context=context) as answer:
        assert answer.status == 200
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"https://{address}:{port}/readyz")
    with chromium.launched(f"--ignore-certificate-errors-spki-list={spki(pem)}") as browser:
        page = browser.new_context(**PHONE).new_page()
        page.goto(link)
        page.locator("#form").wait_for()
        answered(page, "anemia")


def test_the_key_is_for_nobody_else(tmp_path):
    made = make_certificate(str(tmp_path), "192.0.2.7")
    assert stat.S_IMODE(os.stat(made.key).st_mode) == 0o600
    read = x509.load_pem_x509_certificate(Path(made.cert).read_bytes())
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(x) for x in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]


@pytest.mark.parametrize("more", [("--host", "0.0.0.0"), ("--public-url", "https://x.org")])
def test_one_address_is_enough(more):
    result = CliRunner().invoke(main, ["serve", TOY, "--lan", *more])
    assert result.exit_code != 0
    assert "leave out --host and --public-url" in str(result.output) + str(result.exception)
