"""Writes docs/paper.md and docs/paper/*.png from runs of `discreet reproduce`.

python docs/make_paper.py DATA [KEEP]

DATA holds the files that docs/paper.md names; the run is copied to KEEP. tests/test_paper_page.py
checks what needs no data.
"""

from __future__ import annotations

import csv
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

HERE = Path(__file__).parent
FIGURES = ("fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9")
BEYOND = ("fig3_beyond", "fig4_beyond", "fig6_beyond", "fig7_beyond", "fig9_beyond")
REPEATS = 100  # of the run that decides what ten repeats leave open
THROUGH_REPORTS = ("experiment is theory", "tickets beside bits")
VERDICTS = {"HOLD": "holds", "FAIL": "does not hold", "OPEN": "cannot be shown here"}


def reproduce(*arguments: str) -> tuple[list[dict[str, Any]], str]:
    """The claims of a run, and how long it took, on the clock and on the processors."""
    print("discreet reproduce", *arguments, file=sys.stderr)
    began, used = time.monotonic(), _processor()
    command = [str(Path(sys.executable).with_name("discreet")), "reproduce", *arguments, "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    wall, busy = time.monotonic() - began, _processor() - used
    return json.loads(done.stdout)["claims"], f"{wall:.0f} s ({busy:.0f} s of processor time)"


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def claims_table(claims: list[dict[str, Any]]) -> str:
    """Claims as rows: the sentence, the verdict, the number, the margin, the note."""
    lines = ["| claim | verdict | number | margin | note |", "|---|---|---|---|---|"]
    for one in claims:
        margin = "" if one["margin"] is None else f"{one['margin']:+.1%}"
        said = f"**{one['claim']}** ({one['where']}): {one['sentence']}"
        cells = (said, one["verdict"], one["number"], margin, one["note"])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def picture(folder: Path, name: str) -> str:
    """A figure of the page: the picture with fewer colours, and its caption."""
    target = HERE / "paper" / f"{name}.png"
    with Image.open(folder / f"{name}.png") as image:
        image.convert("RGB").quantize(48, dither=Image.Dither.NONE).save(target, optimize=True)
    caption = (folder / f"{name}.txt").read_text(encoding="utf-8").strip()
    return f"![{name}](paper/{name}.png)\n\n*{caption.replace('*', '')}*"


def ratios(path: Path, mine: tuple[str, str], other: tuple[str, str], **want: str) -> str:
    """The smallest and the largest ratio of two (model, encoding), in theory, by the numbers of a
    figure.
    """
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if want.items() <= row.items()]
    places = ("data", "eps", "share", "metric", "k")
    theory: dict[tuple[str, str], dict[tuple[str, ...], float]] = {}
    for row in rows:
        if row["view"] == "raw" and row["theory"]:
            line = theory.setdefault((row["model"], row["encoding"]), {})
            line[tuple(row[place] for place in places)] = float(row["theory"])
    found = [value / theory[other][place] for place, value in theory[mine].items()]
    return f"{min(found):.2f} to {max(found):.2f}"


def beyond(folder: Path) -> dict[str, str]:
    """Numbers of the sentences about what is beyond the paper."""
    fig3, fig6 = folder / "fig3_beyond.csv", folder / "fig6_beyond.csv"
    subset, opt0 = ("subset", "bits"), ("opt0", "bits")
    tickets = ("subset", "ticket")
    return {
        "SUBSET": ratios(fig3, subset, opt0),
        "TICKETS": ratios(fig3, ("opt0", "ticket"), opt0),
        "TICKETS100": ratios(fig3, tickets, subset, data="power-law"),
        "TICKETS1000": ratios(fig3, tickets, subset, data="uniform"),
        "SUBSET6": ratios(fig6, subset, opt0, metric="mse"),
    }


def hashes(run: dict[str, Any]) -> str:
    """The data as rows."""
    sets = [one for key, one in run["data"].items() if not key.endswith("-x10")]
    rows = ((x["title"], f"`{x['source']}`", x["users"], x["items"], x["sha256"]) for x in sets)
    return "\n".join(f"| {t} | {file} | {n:,} | {m:,} | `{sha}` |" for t, file, n, m, sha in rows)


def contents(data: str, work: Path) -> dict[str, str]:
    """What the marks of the template stand for."""
    sys.path.insert(0, str(HERE.parent))
    from benchmarks import paper as benchmark

    whole = work / "all"
    claims, time_ = reproduce("all", "--data", data, "--out", str(whole))
    _, quick = reproduce("all", "--data", data, "--out", str(work / "quick"), "--quick")
    real, real_time = reproduce("fig3", "--out", str(work / "real"), "--through-reports")
    repeats = ("--repeats", str(REPEATS))
    more, _ = reproduce("fig7", "--data", data, "--out", str(work / "more"), *repeats)
    run = json.loads((whole / "run.json").read_text(encoding="utf-8"))
    keys = {"TIME": time_, "QUICK": quick, "REALTIME": real_time, "REPEATS": str(REPEATS)}
    for key, verdict in VERDICTS.items():
        keys[key] = str(sum(one["verdict"] == verdict for one in claims))
    ours = [x for x in claims if "not in the paper" in x["where"] or "our reading" in x["where"]]
    keys |= {"TOTAL": str(len(claims)), "OURS": str(len(ours)), "CLAIMS": claims_table(claims)}
    keys["REAL"] = claims_table([one for one in real if one["claim"] in THROUGH_REPORTS])
    keys["MORE"] = claims_table([one for one in more if "precision" in one["claim"]])
    keys["SPEED"] = benchmark.run().strip()
    keys["VERSIONS"] = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    keys |= {"SEED": str(run["settings"]["seed"]), "HASHES": hashes(run), **beyond(whole)}
    keys |= {name.upper(): picture(whole, name) for name in (*FIGURES, *BEYOND)}
    for path in whole.glob("*.md"):
        keys.setdefault(path.stem.upper(), path.read_text(encoding="utf-8").strip())
    return keys


def main() -> None:
    (HERE / "paper").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        keys = contents(sys.argv[1], Path(place))
        if len(sys.argv) > 2:
            shutil.copytree(Path(place) / "all", sys.argv[2], dirs_exist_ok=True)
    text = (HERE / "paper.template.md").read_text(encoding="utf-8")
    for key, value in keys.items():
        text = text.replace(f"<{key}>", value)
    (HERE / "paper.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
