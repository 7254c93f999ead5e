"""Takes docs/pictures/*.png: a real collector, simulated participants, Debian's Chromium.

Needs Chromium (CHROMIUM, or `chromium` on the path) and the development extra.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parent / "pictures"
# What stands in the pictures; it is mapped to the collector here, nothing leaves this machine.
SITE = "http://survey.example.org"
TOKEN = secrets.token_urlsafe(24)
LARGEST = 200_000  # bytes of a picture
LOOKS: dict[str, dict[str, Any]] = {
    size + shade: {
        "viewport": dict(zip(("width", "height"), viewport, strict=True)),
        "color_scheme": scheme,
    }
    for size, viewport in (("phone", (390, 844)), ("desktop", (1280, 900)))
    for shade, scheme in (("", "light"), ("-dark", "dark"))
}
SMALL_DESKTOP = {"viewport": {"width": 900, "height": 860}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
DARK = {**PHONE, "color_scheme": "dark"}


@contextlib.contextmanager
def collector(folder: Path, shown: Sequence[Any] = ()) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of `discreet serve` with both example policies and these surveys (or ours), once
    it answers, and the fingerprint of every collection.
    """
    import httpx

    import discreet

    data = Path(discreet.__file__).parent / "data"
    files = [str(data / f"{name}.toml") for name in ("toy", "health-survey")]
    for survey in shown or surveys():
        survey.save(folder / f"{survey.name}.json")
        files.append(f"{survey.name}.json")
    command = [Path(sys.executable).with_name("discreet"), "serve", *files, "--port", "0"]
    environment = {**os.environ, "DISCREET_TOKEN": TOKEN}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = "".join(iter(process.stdout.readline, "Collecting; stop with Ctrl-C.\n"))
            found = re.findall(r"(http://[^/]+)/c/([^/#]+)#(\w+)", said)
            address = found[0][0]
            while process.poll() is None:
                with contextlib.suppress(httpx.TransportError):
                    httpx.get(f"{address}/healthz")
                    break
                time.sleep(0.05)
            yield address, {name: fingerprint for _, name, fingerprint in found}
        finally:
            process.terminate()


def surveys() -> list[Any]:
    """Two surveys of our own: one in Arabic that says who asks, one with 2,000 answers."""
    import discreet

    illnesses = discreet.Policy.from_levels(
        [("خاص", 1, ["الاكتئاب", "الصرع"]), ("شائع", 2, ["الزكام", "الصداع", "لا شيء منها"])],
        question="ما الذي عانيت منه هذا العام؟",
    )
    clinic = discreet.Survey(
        "clinic",
        [discreet.design(illnesses)],
        about={
            "organiser": "المركز الصحي",
            "purpose": "لتخطيط عيادات العام القادم.",
            "consent": "يُحسب تقريري مع تقارير الآخرين.",
            "contact": "clinic@example.org",
            "language": "ar",
            "closes": "2030-01-31T18:00:00Z",
        },
    )
    kinds = ["almond", "bread", "cheese", "dried fruit", "egg noodles", "fish", "ginger", "honey"]
    bought = discreet.Policy.from_levels(
        [
            ("private", 1, [f"medicine {k}" for k in range(1, 401)]),
            ("usual", 2, [f"{kind} {k}" for k in range(1, 201) for kind in kinds]),
        ],
        question="Which of these have you bought this month?",
        kind="set",
        padding=4,
    )
    products = discreet.Survey(
        "products",
        [discreet.design(bought)],
        about={
            "organiser": "Consumer office",
            "purpose": "To know which products to test.",
            "consent": "My report may be counted.",
            "minimum": 1000,
        },
    )
    return [clinic, products]


def take_part(address: str) -> None:
    """The demonstration's 100,000 participants."""
    import httpx

    from discreet.cli.demo import USERS
    from discreet.collector import limits
    from discreet.data.examples import example, made_up_answers
    from discreet.designs import design
    from discreet.device.wire import ID_SIZE, collection_path, upload_headers
    from discreet.survey import Survey

    mechanism = design(example("health-survey"))
    reports = mechanism.perturb_many(made_up_answers(mechanism.policy, USERS))
    survey = Survey("health-survey", [mechanism])
    headers = upload_headers(survey.fingerprint)
    for start in range(0, len(reports), limits.FRAMES):
        some = reports[start : start + limits.FRAMES]
        body = b"".join(secrets.token_bytes(ID_SIZE) + bytes(report) for report in some)
        path = f"{address}{collection_path(survey.name)}/reports"
        httpx.post(path, content=body, headers=headers, timeout=60).raise_for_status()


def save(page: Any, name: str) -> None:
    """What is on the screen, in few colours: the size in pixels is the viewport's."""
    from PIL import Image

    page.mouse.move(0, 0)  # nothing is hovered over
    picture = (
        Image.open(io.BytesIO(page.screenshot()))
        .convert("RGB")
        .quantize(256, dither=Image.Dither.NONE)
    )
    path = PICTURES / f"{name}.png"
    picture.save(path, optimize=True)
    size = path.stat().st_size
    assert size < LARGEST, f"{path} has {size:,} bytes, more than {LARGEST:,}"
    print(f"docs/pictures/{path.name}: {picture.width} x {picture.height}, {size:,} bytes")


def choose(page: Any, survey: str, fingerprint: str, answer: str) -> None:
    """The participant's page with an answer chosen."""
    page.goto(f"{SITE}/c/{survey}#{fingerprint}")
    page.locator("#form").wait_for()
    if not page.get_by_label(answer, exact=True).count():
        page.locator("#search").fill(answer)
    page.get_by_label(answer, exact=True).check()


def take(browser: Any, fingerprints: dict[str, str]) -> None:
    """All pictures."""

    def visit(settings: dict[str, Any]) -> Any:
        return browser.new_context(**settings, reduced_motion="reduce").new_page()

    page = visit(SMALL_DESKTOP)
    choose(page, "toy-survey", fingerprints["toy-survey"], "anemia")
    save(page, "answer-desktop")

    page = visit({**DARK, "viewport": {"width": 390, "height": 1000}})
    choose(page, "products", fingerprints["products"], "almond 3")
    page.locator("#search").fill("honey 1")
    page.get_by_label("honey 12", exact=True).check()
    page.evaluate("scrollTo(0, document.getElementById('find').offsetTop - 8)")
    save(page, "list-phone-dark")

    page = visit({**PHONE, "locale": "ar"})
    choose(page, "clinic", fingerprints["clinic"], "الصرع")
    save(page, "answer-phone-rtl")

    page = visit(PHONE)
    choose(page, "health-survey", fingerprints["health-survey"], "hay fever")
    page.locator("#prepare").click()
    page.locator("#go").click()
    page.locator("#check").wait_for()
    page.evaluate(  # no half heading above the card, however long the report is
        "document.body.style.minHeight = '200vh';"
        "scrollTo(0, document.getElementById('check').offsetTop - 8)"
    )
    save(page, "check-phone")
    page.get_by_role("button", name="Send", exact=True).click()
    page.locator("#receipt").wait_for()
    page.evaluate("scrollTo(0, 0)")  # it stays where the button was
    save(page, "receipt-phone")


def main() -> None:
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        collector(Path(folder)) as (address, fingerprints),
        sync_playwright() as playwright,
    ):
        take_part(address)
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
            args=[
                "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                f"--host-resolver-rules=MAP survey.example.org {address.removeprefix('http://')}",
                # as if it had https; the pages need its SHA-256
                f"--unsafely-treat-insecure-origin-as-secure={SITE}",
            ],
        )  # fmt: skip
        take(browser, fingerprints)
        browser.close()


if __name__ == "__main__":
    main()
