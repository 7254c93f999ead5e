"""Takes docs/pictures/results-*.png: the results page of surveys that simulated people answered.

On a phone and on a desktop, light and dark. Needs Chromium, as make_screenshots.py.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Any

from make_screenshots import LOOKS, PICTURES, SITE, TOKEN, collector, save, take_part

WORK = {
    "name": "work",
    "answers": 2,
    "question": [
        {"name": "age", "text": "How old are you?",
         "level": [{"name": "all", "epsilon": 2, "items": ["under 40", "40 or older"]}]},
        {"name": "strain", "text": "What strained you most at work this year?",
         "totals": {"something": ["harassment", "burnout", "noise"]},
         "level": [{"name": "serious", "epsilon": 2, "items": ["harassment", "burnout"]},
                   {"name": "common", "epsilon": 3, "items": ["noise", "nothing of this"]}]},
    ],
    "cross": [{"of": ["age", "strain"]}],
    "public": [{"name": "region", "text": "Where do you work?", "items": ["north", "south"]}],
}  # fmt: skip


def made() -> list[Any]:
    """A survey with groups and a crossed question, and one with few reports."""
    import discreet
    from discreet.data.examples import example
    from discreet.designs.surveys import design_survey

    few = discreet.Survey("few", [discreet.design(example("health-survey"))])
    return [design_survey(WORK), few]


def answer(address: str, survey: Any, people: int) -> None:
    """So many simulated people per question."""
    import httpx
    import numpy as np

    from discreet.collector import limits
    from discreet.device.wire import ID_SIZE, collection_path, upload_headers

    rng, frames = np.random.default_rng(5), []
    for number, question in enumerate(survey.listed):
        mechanism = question.mechanism
        regular = rng.random(people) < 0.3
        given = np.where(regular, 1, rng.integers(mechanism.m, size=people))
        front = bytes([number]) if len(survey.listed) > 1 else b""
        for report in mechanism.perturb_many(given, indices=True):
            openly = bytes([int(rng.integers(2))]) if survey.public else b""
            frames.append(secrets.token_bytes(ID_SIZE) + front + openly + bytes(report))
    for start in range(0, len(frames), limits.FRAMES):
        httpx.post(
            f"{address}{collection_path(survey.name)}/reports",
            content=b"".join(frames[start : start + limits.FRAMES]),
            headers=upload_headers(survey.fingerprint),
            timeout=60,
        ).raise_for_status()


def show(page: Any, name: str, view: str = "") -> None:
    """A view of a survey's results, for who has the token."""
    page.goto("about:blank")
    page.goto(f"{SITE}/c/{name}/results{view}")
    page.locator("#secret, #numbers").filter(visible=True).first.wait_for()
    if page.locator("#secret").is_visible():
        page.locator("#secret").fill(TOKEN)
        page.locator("#token button").click()
    page.locator("#rows tr, #noise").filter(visible=True).first.wait_for()


def take(browser: Any) -> None:
    """All pictures."""

    def visit(settings: dict[str, Any]) -> Any:
        return browser.new_context(**settings, reduced_motion="reduce").new_page()

    for look, settings in LOOKS.items():
        page = visit(settings)
        show(page, "health-survey")
        save(page, "results-desktop" if look == "desktop" else f"results-{look}")
        show(page, "work", "#question=age+%C3%97+strain")
        save(page, f"results-cross-{look}")
        show(page, "work", "#question=strain&by=region")
        page.locator("#grouped").wait_for()
        save(page, f"results-groups-{look}")
        show(page, "few")
        save(page, f"results-few-{look}")
    for locale, look in (("ar", "phone"), ("de", "phone-dark")):
        page = visit({**LOOKS[look], "locale": locale})
        show(page, "health-survey")
        save(page, f"results-{locale}-phone")
    page = visit(LOOKS["desktop"])
    show(page, "work", "#question=strain")
    with page.expect_download() as found:
        page.locator("#png").click()
    save_chart(Path(found.value.path()).read_bytes())


def save_chart(content: bytes) -> None:
    """The chart that the page makes, in few colours."""
    from PIL import Image

    picture = Image.open(io.BytesIO(content)).convert("RGB").quantize(64)
    path = PICTURES / "results-chart.png"
    picture.save(path, optimize=True)
    print(f"docs/pictures/{path.name}: {picture.width} x {picture.height}")


def main() -> None:
    from playwright.sync_api import sync_playwright

    surveys = made()
    with (
        tempfile.TemporaryDirectory() as folder,
        collector(Path(folder), surveys) as (address, _),
        sync_playwright() as playwright,
    ):
        take_part(address)
        for survey, people in zip(surveys, (9_000, 60), strict=True):
            answer(address, survey, people)
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
            args=[
                "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                f"--host-resolver-rules=MAP survey.example.org {address.removeprefix('http://')}",
            ],
        )  # fmt: skip
        take(browser)
        browser.close()


if __name__ == "__main__":
    main()
