"""Writes docs/paper.md and docs/paper/*.png from runs of `discreet reproduce`; tests/test_paper.py checks what needs no data.

python docs/make_paper.py DATA   where DATA holds the files that docs/paper.md names
"""

from __future__ import annotations

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


def claims_table(claims: list[dict[str, Any]], verdict: str | None = None) -> str:
    """Claims as rows: the sentence, the verdict, the number, the margin, the note."""
    lines = ["| claim | verdict | number | margin | note |", "|---|---|---|---|---|"]
    for one in claims:
        if verdict in (None, one["verdict"]):
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


def main() -> None:
    sys.path.insert(0, str(HERE.parent))
    from benchmarks import paper as benchmark

    data = sys.argv[1]
    (HERE / "paper").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        whole = work / "all"
        claims, whole_time = reproduce("all", "--data", data, "--out", str(whole))
        _, quick_time = reproduce("all", "--data", data, "--out", str(work / "quick"), "--quick")
        real, real_time = reproduce("fig3", "--out", str(work / "real"), "--through-reports")
        more, _ = reproduce(
            "fig7", "--data", data, "--out", str(work / "more"), "--repeats", str(REPEATS)
        )
        run = json.loads((whole / "run.json").read_text(encoding="utf-8"))
        keys = {
            "TIME": whole_time,
            "QUICK": quick_time,
            "REALTIME": real_time,
            "REPEATS": str(REPEATS),
        }
        for verdict, key in (
            ("holds", "HOLD"),
            ("does not hold", "FAIL"),
            ("cannot be shown here", "OPEN"),
        ):
            keys[key] = str(sum(one["verdict"] == verdict for one in claims))
        keys["TOTAL"] = str(len(claims))
        keys["OURS"] = str(
            sum(
                "not in the paper" in one["where"] or "our reading" in one["where"]
                for one in claims
            )
        )
        keys["CLAIMS"] = claims_table(claims)
        keys["REAL"] = claims_table(
            [one for one in real if one["claim"] in ("experiment is theory", "tickets beside bits")]
        )
        keys["MORE"] = claims_table([one for one in more if "precision" in one["claim"]])
        keys["SPEED"] = benchmark.run().strip()
        keys["VERSIONS"] = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
        keys["SEED"] = str(run["settings"]["seed"])
        keys["HASHES"] = "\n".join(
            f"| {one['title']} | `{one['source']}` | {one['users']:,} | {one['items']:,} | `{one['sha256']}` |"
            for key, one in run["data"].items()
            if not key.endswith("-x10")
        )
        for name in (*FIGURES, *BEYOND):
            keys[name.upper()] = picture(whole, name)
        for path in whole.glob("*.md"):
            keys.setdefault(path.stem.upper(), path.read_text(encoding="utf-8").strip())
        if len(sys.argv) > 2:
            shutil.copytree(whole, sys.argv[2], dirs_exist_ok=True)
    text = (HERE / "paper.template.md").read_text(encoding="utf-8")
    for key, value in keys.items():
        text = text.replace(f"<{key}>", value)
    (HERE / "paper.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
