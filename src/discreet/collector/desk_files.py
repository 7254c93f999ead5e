"""What the desk gives away as files: the invitation as code and poster, the counts, a backup."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response

from discreet.collector import copying, scratch
from discreet.collector.store import Collection, Store
from discreet.data.surveys import is_simple, save_tallies, write_contents
from discreet.show import invitations
from discreet.survey import Survey

_README = """{name}: what the collector has counted.

survey.json   the survey as people answered it, with its probabilities; fingerprint
              {fingerprint}
{tally}   the counts of {n:,} perturbed reports
{reports}
No protected answer is in here: nobody has ever sent one.{openly} To see the estimates:

  discreet estimate survey.json {example}
"""
_POSTER = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def poster(survey: Survey, link: str) -> Response:
    """A page to print."""
    promise = survey.promise()
    text = invitations.poster(
        link,
        title(survey),
        promise.lead,
        promise.sentences(),
        survey.about.rows(),
        survey.poster_words(),
    )
    headers = {"Content-Security-Policy": _POSTER}
    return Response(text, media_type="text/html", headers=headers)


def title(survey: Survey) -> str:
    """What a survey is called on paper."""
    return survey.only.policy.title if len(survey.listed) == 1 else survey.name


def code(link: str, kind: str) -> Response:
    """The link as a QR code."""
    drawn = io.BytesIO()
    invitations.make_code(link).save(drawn, kind=kind, scale=10, border=4)
    media = {"png": "image/png", "svg": "image/svg+xml"}[kind]
    return Response(drawn.getvalue(), media_type=media)


async def export(store: Store, collection: Collection) -> Response:
    """The counts, the survey, and the reports if they were kept: a ZIP file."""
    return await _file(lambda folder: _zip(store, collection, folder), f"{collection.name}.zip")


async def backup(store: Store, name: str) -> Response:
    """A store of its own with this collection, as it is at one moment."""

    def write(folder: Path) -> Path:
        path = folder / "backup.sqlite"
        with closing(store.another()) as mine:
            copying.backup(mine, path, [name])
        return path

    return await _file(write, f"{name}.sqlite")


async def _file(write: Callable[[Path], Path], name: str) -> Response:
    """A file that `write` makes in a folder of its own, which is removed after it was sent."""
    aside = scratch.folder("desk")
    folder = await run_in_threadpool(aside.__enter__)
    try:
        path = await run_in_threadpool(write, Path(folder))
    except BaseException:
        await run_in_threadpool(aside.__exit__, None, None, None)
        raise
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
    done = BackgroundTask(aside.__exit__, None, None, None)
    return FileResponse(path, headers=headers, background=done)


def _zip(store: Store, collection: Collection, folder: Path) -> Path:
    survey, kept = collection.survey, collection.keep == "reports"
    simple = is_simple(survey)
    inside = folder / "inside"
    inside.mkdir()
    tally = inside / ("tally.json" if simple else "tally")
    reports = inside / ("reports.parquet" if simple else "reports")
    with closing(store.another()) as mine, mine.snapshot(collection.name) as (counted, blocks):
        if kept:
            write_contents(str(reports), survey, blocks)
    save_tallies(counted, str(tally))
    survey.save(inside / "survey.json")
    lines = {
        "name": survey.name,
        "fingerprint": survey.fingerprint,
        "tally": tally.name + ("   " if simple else "/       "),
        "n": counted.n,
        "openly": " Answers to public questions are, as people gave them." * bool(survey.public),
        "reports": f"{reports.name}   the reports themselves, in no order\n" if kept else "",
        "example": "tally.json" if simple else f"tally --question '{survey.listed[0].name}'",
    }
    (inside / "README.txt").write_text(_README.format(**lines), encoding="utf-8")
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for file in sorted(inside.rglob("*")):
            if file.is_file():
                made.write(file, file.relative_to(inside).as_posix())
    return path
