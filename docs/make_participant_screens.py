"""Takes docs/pictures/participant-*.png: every screen of the participant's page in a real Chromium,
on a phone and on a desktop, light and dark.

Needs Chromium (CHROMIUM, or `chromium` on the path) and the development extra.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from make_screenshots import LARGEST, PICTURES, SITE, collector

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
HEIGHT = 620  # pixels of a screen in a sheet
STATE = {"phone": (390, 470), "desktop": (1280, 430)}  # what is seen of a page that asks nothing
STATE_SCALE = {"phone": 0.6, "desktop": 0.5}
GAP, BETWEEN = 6, (128, 128, 128)
Screens = dict[tuple[str, str, str], Any]  # by name, size and scheme


def surveys() -> list[Any]:
    """What is asked, and what is asked no more or not yet."""
    import discreet

    about = {
        "organiser": "Works council",
        "purpose": "To plan the health days.",
        "consent": "My report may be counted.",
        "contact": "council@example.org",
        "closes": "2040-01-31T18:00:00Z",
        "minimum": 50,
    }
    levels = [
        ("serious", 1, ["burnout", "harassment", "panic attacks"]),
        ("common", 2, ["noise", "deadlines", "long hours", "nothing of this"]),
    ]
    words = "What strained you most at work this year?"
    mechanism = discreet.design(discreet.Policy.from_levels(levels, question=words))
    foods = ["almond", "bread", "cheese", "dried fruit", "egg noodles", "fish", "ginger", "honey"]
    bought = discreet.Policy.from_levels(
        [
            ("private", 1, [f"medicine {k}" for k in range(1, 401)]),
            ("usual", 2, [f"{food} {k}" for k in range(1, 201) for food in foods]),
        ],
        question="Which of these have you bought this month?",
        kind="set",
        padding=4,
    )
    times = {"over": {"closes": "2026-01-31T18:00:00Z"}, "early": {"opens": "2039-12-01T08:00:00Z"}}
    return [
        discreet.Survey("work", [mechanism], about=about),
        discreet.Survey("work-again", [mechanism], about=about),
        discreet.Survey("products", [discreet.design(bought)], about={"organiser": "Consumers"}),
        *(discreet.Survey(name, [mechanism], about=about | more) for name, more in times.items()),
    ]


def scroll_to(page: Any, place: str) -> None:
    page.evaluate("(place) => scrollTo(0, document.getElementById(place).offsetTop - 12)", place)


def steps(page: Any, links: dict[str, str], keep: Callable[[str], None]) -> None:
    """One participant's way, then another's on the same device."""
    page.goto(links["work"])
    page.locator("#form").wait_for()
    keep("question")
    page.get_by_label("burnout", exact=True).check()
    page.locator("#agree-own").check()
    page.locator("#exact > summary").click()
    scroll_to(page, "choices")
    page.evaluate("scrollBy(0, 220)")
    keep("learn")
    page.locator("#how > summary").click()
    scroll_to(page, "facts")
    keep("chance")
    page.locator("#how > summary").click()
    page.locator("#about > summary").click()
    scroll_to(page, "facts")
    keep("organiser")
    page.locator("#about > summary").click()
    page.locator("#prepare").click()
    page.locator("#sure").wait_for()
    page.evaluate("scrollTo(0, 0)")
    keep("sure")
    page.locator("#go").click()
    page.locator("#check").wait_for()
    page.locator("#precisely > summary").click()
    page.evaluate("scrollTo(0, 0)")
    keep("check")
    page.locator("#send").click()
    page.locator("#receipt").wait_for()
    page.locator("#proof > summary").click()
    page.evaluate("scrollTo(0, 0)")
    keep("receipt")
    page.reload()
    page.locator("#before").wait_for()
    keep("before")
    page.goto(links["work-again"])
    page.locator("#consent").wait_for()
    scroll_to(page, "choices")
    keep("consent")
    page.goto(links["products"])
    page.locator("#form").wait_for()
    for search, label in (("almond 3", "almond 3"), ("honey 1", "honey 12")):
        page.locator("#search").fill(search)
        page.get_by_label(label, exact=True).check()
    scroll_to(page, "find")
    keep("list")


def nothing_to_answer(page: Any, links: dict[str, str], keep: Callable[[str], None]) -> None:
    """The pages that ask nothing, and say why."""
    mark = links["work"].partition("#")[2]
    for name, link in {
        "over": links["over"],
        "early": links["early"],
        "missing": f"{SITE}/c/works#{mark}",
        "damaged": links["work"][:-9],
        "personal": links["work"].replace("#", "?from=mail#"),
        "pinned": f"{SITE}/c/work#{'0' * 64}",
    }.items():
        page.goto("about:blank")
        page.goto(link)
        page.locator("#problem").wait_for()
        keep(name)
    page.clock.install()
    page.route("**/v1/**", lambda route: route.abort())
    page.goto("about:blank")
    page.goto(links["work"])
    while not page.locator("#problem").is_visible():
        page.clock.run_for(2000)
    keep("away")
    page.unroute_all()
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setScriptExecutionDisabled", {"value": True})
    page.goto("about:blank")
    page.goto(links["work"])
    keep("no script")
    session.send("Emulation.setScriptExecutionDisabled", {"value": False})
    page.route("**/c/work", lambda route: route.fulfill(body=too_new(), content_type="text/html"))
    page.goto("about:blank")
    page.goto(links["work"])
    page.locator("#old").wait_for()
    keep("old")


def too_new() -> str:
    """The page as a browser sees it that does not understand its script."""
    from discreet.collector import pages

    _, script = pages._style_and_script()
    other = script.replace("class Page {", "class Page { not yet known")
    old, new = (
        base64.b64encode(hashlib.sha256(x.encode()).digest()).decode() for x in (script, other)
    )
    return pages.answer_file().decode().replace(script, other).replace(old, new)


def keep(found: Screens, key: tuple[str, str], page: Any, name: str) -> None:
    """Take a picture of what is on the screen."""
    from PIL import Image

    page.mouse.move(0, 0)
    found[name, *key] = Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def take(playwright: Any, address: str, links: dict[str, str]) -> Screens:
    """All screens of all sizes and schemes."""
    where = os.environ.get("CHROMIUM") or shutil.which("chromium")
    arguments = [
        "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        f"--host-resolver-rules=MAP survey.example.org {address.removeprefix('http://')}",
        f"--unsafely-treat-insecure-origin-as-secure={SITE}",
    ]  # fmt: skip
    found: Screens = {}
    browser = playwright.chromium.launch(executable_path=where, args=arguments)
    for size, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            settings = {
                "viewport": {"width": width, "height": height},
                "color_scheme": scheme,
                "reduced_motion": "reduce",
                "locale": "en-GB",
            }

            for visit in (steps, nothing_to_answer):
                context = browser.new_context(**settings)
                page = context.new_page()
                visit(page, links, partial(keep, found, (size, scheme), page))
                context.close()
            with blocked(
                playwright, where, [*arguments, "--disable-local-storage"], settings
            ) as page:
                page.goto(links["work"])
                page.locator("#problem").wait_for()
                keep(found, (size, scheme), page, "blocked")
    browser.close()
    return found


@contextlib.contextmanager
def blocked(playwright: Any, where: Any, arguments: list[str], settings: Any) -> Iterator[Any]:
    """A page in a browser that stores nothing."""
    with tempfile.TemporaryDirectory() as folder:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=where, args=arguments, **settings
        )
        yield context.pages[0]
        context.close()


def smaller(picture: Any, scale: float) -> Any:
    from PIL import Image

    size = round(picture.width * scale), round(picture.height * scale)
    return picture.resize(size, Image.Resampling.LANCZOS)


def save(name: str, rows: list[list[Any]]) -> None:
    """A sheet of pictures, row by row."""
    from PIL import Image

    width = max(sum(x.width + GAP for x in row) for row in rows) - GAP
    height = sum(row[0].height + GAP for row in rows) - GAP
    sheet, top = Image.new("RGB", (width, height), BETWEEN), 0
    for row in rows:
        left = 0
        for picture in row:
            sheet.paste(picture, (left, top))
            left += picture.width + GAP
        top += row[0].height + GAP
    path = PICTURES / f"participant-{name}.png"
    sheet.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    assert size < LARGEST, f"{path} has {size:,} bytes, more than {LARGEST:,}"
    print(f"docs/pictures/{path.name}: {width} x {height}, {size:,} bytes")


def main() -> None:
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as folder,
        collector(Path(folder), surveys()) as (address, fingerprints),
        sync_playwright() as playwright,
    ):
        links = {name: f"{SITE}/c/{name}#{mark}" for name, mark in fingerprints.items()}
        screens = take(playwright, address, links)
    names = list(dict.fromkeys(name for name, _, _ in screens))
    states = names[names.index("over") :]
    for name in names[: names.index("over")]:
        rows = []
        for scheme in ("light", "dark"):
            row = [screens[name, size, scheme] for size in SIZES]
            rows.append([smaller(x, HEIGHT / x.height) for x in row])
        save(name, rows)
    for size, across in (("phone", 5), ("desktop", 2)):
        small = []
        for scheme in ("light", "dark"):
            cut = [screens[name, size, scheme].crop((0, 0, *STATE[size])) for name in states]
            small += [smaller(x, STATE_SCALE[size]) for x in cut]
        save(f"states-{size}", [small[k : k + across] for k in range(0, len(small), across)])
    print(json.dumps(states))


if __name__ == "__main__":
    main()
