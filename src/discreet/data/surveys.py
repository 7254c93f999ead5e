"""Files of a survey of several questions: reports and tallies in a folder with a file per question,
which has the public answers as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.grouped_tallies import add_by_group, file_name, save_groups
from discreet.arrays.survey_tally import SurveyTally
from discreet.arrays.tally import Tally
from discreet.arrays.types import Bytes
from discreet.data.counting import Tallies
from discreet.data.reports import report_files, reports_file
from discreet.device.wire import front_size, public_part, question_place
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.labels import quoted
from discreet.survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa

    Block = tuple[Bytes, pa.Table | None]

Count = Callable[[list[str], Mechanism, tuple[str, ...]], Tallies]  # of files, by columns


def is_simple(survey: Survey) -> bool:
    """Whether its reports are those of one mechanism, with nothing beside them."""
    return len(survey.listed) == 1 and not survey.public


def question_files(names: Iterable[str]) -> dict[str, str]:
    """The file of every question, without its ending: a number tells two apart that would have the
    same.

    >>> question_files(["age", "a b", "a?b"])
    {'age': 'age', 'a b': 'a_b', 'a?b': 'a_b-2'}
    """
    stems: dict[str, str] = {}
    for name in names:
        stem, k = file_name(name).lstrip(".") or "_", 2
        place = stem
        while place in stems.values():
            place, k = f"{stem}-{k}", k + 1
        stems[name] = place
    return stems


def tally_survey(
    folder: str, survey: Survey, by: tuple[str, ...], count: Count
) -> dict[str, Tallies]:
    """Count a folder of reports as `perturb` and `export` write it: the tallies of every question,
    by the columns `by`. `count` counts the files of one question.
    """
    counted, names = {}, question_files(survey.questions)
    for question in survey.listed:
        files = _files(folder, names[question.name], question.name)
        tallies: Tallies = {} if by else {None: Tally.empty(question.mechanism)}
        if files:
            add_by_group(tallies, count(files, question.mechanism, by))
        counted[question.name] = tallies
    return counted


def _files(folder: str, stem: str, name: str) -> list[str]:
    """The files of a question. Spark writes a folder for each that somebody answered."""
    path = Path(folder) / f"{stem}.parquet"
    if path.exists():
        return [str(path)]
    parts = sorted(Path(folder).glob("question=*"))
    if not parts:
        raise DataError(f"{folder} has no {path.name}, the reports on {quoted(name)}")
    return [
        str(file)
        for part in parts
        if part.name == f"question={stem}"
        for file in report_files([str(part)])
    ]


def of_question(path: str, survey: Survey, name: str) -> str:
    """What a folder of a whole survey holds on one question: the file or folder that `perturb`,
    `tally` or `export` made for it. Any other path is itself.
    """
    folder, stems = Path(path), question_files(survey.questions)
    if is_simple(survey) or not folder.is_dir():
        return path
    wanted = folder / stems[name]
    if any(folder.glob("question=*")):  # of Spark
        return f"{folder}/question={stems[name]}"
    for ending in (".json", ".parquet"):
        if {x.stem for x in folder.glob(f"*{ending}")} == set(stems.values()):
            return f"{wanted}{ending}"
    inside = {x.name for x in folder.iterdir() if x.is_dir()}
    return str(wanted) if inside == set(stems.values()) else path


def save_survey_tallies(counted: Mapping[str, Tallies], folder: str) -> None:
    """Write a tally per question into a folder; with groups, a folder per question."""
    names = question_files(counted)
    for name, tallies in counted.items():
        place = Path(folder) / names[name]
        if set(tallies) == {None}:
            Path(folder).mkdir(parents=True, exist_ok=True)
            tallies[None].save(f"{place}.json")
        else:
            save_groups(tallies, place)


def save_tallies(tally: SurveyTally, output: str) -> None:
    """Write what a collection has counted: one file, or a folder where there are several questions
    or public ones.
    """
    survey = tally.survey
    if is_simple(survey):
        tally.question(0).save(output)
        return
    counted: dict[str, Tallies] = {}
    for place, question in enumerate(survey.listed):
        groups: Tallies = {None: tally.question(place)}
        if survey.public:
            groups = {survey.group(key): t for key, t in tally.groups(place).items()}
        counted[question.name] = groups
    save_survey_tallies(counted, output)


def write_contents(output: str, survey: Survey, blocks: Iterable[list[bytes]]) -> None:
    """Write the reports that a collection has kept: one Parquet file, or a folder of them."""
    paths = [Path(output)]
    if not is_simple(survey):
        Path(output).mkdir(parents=True, exist_ok=True)
        names = question_files(survey.questions)
        paths = [Path(output) / f"{names[question.name]}.parquet" for question in survey.listed]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(reports_file(path, question.mechanism))
            for path, question in zip(paths, survey.listed, strict=True)
        ]
        for writer, question in zip(writers, survey.listed, strict=True):
            writer.add(
                *_block(survey, question.mechanism, [])
            )  # names the columns, if all is empty
        for block in blocks:
            contents: list[list[bytes]] = [[] for _ in survey.listed]
            for content in block:
                contents[question_place(survey, content)].append(content)
            for writer, question, mine in zip(writers, survey.listed, contents, strict=True):
                writer.add(*_block(survey, question.mechanism, mine))


def _block(survey: Survey, mechanism: Mechanism, contents: list[bytes]) -> Block:
    import pyarrow as pa

    front = front_size(survey)
    width = front + mechanism.report_size
    rows = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, width)
    places = rows[:, public_part(survey)]
    openly = {
        public.name: pa.array(np.array(public.items, object)[places[:, k]], pa.string())
        for k, public in enumerate(survey.public)
    }
    return rows[:, front:], pa.table(openly) if openly else None
