"""Takes docs/pictures/desk-*.png: a real collector that is started without a survey, and its desk.

Each screen on a telephone and on a desktop, light and dark. Needs Chromium, as make_screenshots.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from make_screenshots import LOOKS, PICTURES, TOKEN, save

SITE = "http://survey.example.org"


def ready(page: Any) -> None:
    """The draft is checked."""
    page.get_by_text("an answer shows from").wait_for()


def take(page: Any, look: str) -> None:
    """Every screen, on the way from the token to a survey that runs."""
    page.goto(f"{SITE}/desk")
    page.locator("#login").wait_for()
    save(page, f"desk-login-{look}")
    page.get_by_label("Organiser’s token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.locator("#list").wait_for()
    page.goto(f"{SITE}/desk#new")
    page.locator("#new h1").wait_for()
    save(page, f"desk-new-{look}")
    page.get_by_role("button", name=re.compile("^Health")).click()
    ready(page)
    page.get_by_label("Name in the link").fill(f"health-{look}")
    page.get_by_role("button", name="10,000", exact=True).click()
    page.get_by_text("With 10,000 people, an answer").wait_for()
    page.evaluate("scrollTo(0, 0)")
    save(page, f"desk-write-{look}")
    side = "document.querySelector('.side').getBoundingClientRect().top"
    for tab, place in (("learn", "forecast"), ("preview", "preview"), ("file", "toml")):
        page.locator(f"#{tab}-tab").click()
        if tab == "preview":
            page.frame_locator("#preview").locator("#form").wait_for()
        page.locator(f"#{place}").wait_for()
        if "phone" in look:
            page.evaluate(f"scrollTo(0, scrollY + {side} - 110)")
        page.wait_for_timeout(300)
        save(page, f"desk-{tab}-{look}")
    page.locator("#try").click()
    save(page, f"desk-try-{look}")
    page.get_by_label("How many people?").fill("500")
    page.locator("dialog").get_by_role("button", name="Try it").click()
    page.locator("#n", has_text="500").wait_for()
    save(page, f"desk-rehearsal-{look}")
    page.get_by_role("link", name="Back to your survey").click()
    ready(page)
    page.locator("#publish").click()
    page.wait_for_timeout(200)
    save(page, f"desk-publish-{look}")
    page.locator("dialog").get_by_role("button", name="Publish").click()
    page.locator("#survey #n").wait_for()
    page.locator("#survey img").evaluate("image => image.decode()")
    page.wait_for_timeout(300)
    page.evaluate("scrollTo(0, 0)")
    save(page, f"desk-survey-{look}")
    page.locator("#close").click()
    page.locator("dialog").get_by_role("button", name="Close it").click()
    page.locator("#reopen").wait_for()
    page.locator("#delete").click()
    page.locator("#typed").wait_for()
    page.wait_for_timeout(6_500)  # until the message has gone
    save(page, f"desk-delete-{look}")
    page.keyboard.press("Escape")
    page.locator("#reopen").click()
    page.locator("#close").wait_for()
    page.goto(f"{SITE}/desk#")
    page.locator("#surveys li").first.wait_for()
    page.wait_for_timeout(6_500)
    save(page, f"desk-list-{look}")
    page.goto(f"{SITE}/desk#log")
    page.locator("#log tr").first.wait_for()
    save(page, f"desk-log-{look}")


def main() -> None:
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("discreet")), "serve", "--port", "0"]
        command += ["--public-url", "https://survey.example.org"]
        environment = {**os.environ, "DISCREET_TOKEN": TOKEN}
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                said = "".join(iter(process.stdout.readline, "Collecting; stop with Ctrl-C.\n"))
                here = re.findall(r"Listening on http://(\S+)\.", said)[0]
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(
                        executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
                        args=[
                            "--no-sandbox", "--disable-gpu",
                            f"--host-resolver-rules=MAP survey.example.org {here}",
                            f"--unsafely-treat-insecure-origin-as-secure={SITE}",
                        ],
                    )  # fmt: skip
                    for look, settings in LOOKS.items():
                        context = browser.new_context(**settings, reduced_motion="reduce")
                        take(context.new_page(), look)
                        context.close()
                    browser.close()
            finally:
                process.terminate()


if __name__ == "__main__":
    main()
