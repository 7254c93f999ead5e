"""Files of a survey of several questions: answers in one table, reports and tallies in a folder
with a file per question, which has the public answers as columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays.grouped_tallies import add_by_group, file_name, save_groups
from discreet.arrays.survey_tally import SurveyTally
from discreet.arrays.tally import Tally
from discreet.arrays.types import Bytes, Ints
from discreet.data.counting import tally_files
from discreet.data.files import Advance, parquet_file
from discreet.data.reports import report_files, write_reports
from discreet.device.wire import front_size
from discreet.errors import DataError
from discreet.mechanism import Mechanism
from discreet.policy.labels import quoted
from discreet.survey import Question, Survey
from discreet.survey.crosses import cell

if TYPE_CHECKING:
    import pyarrow as pa

    Block = tuple[Bytes, pa.Table | None]

BLOCK = 1 << 18  # people per block


def is_simple(survey: Survey) -> bool:
    """Whether its reports are those of one mechanism, with nothing beside them."""
    return len(survey.listed) == 1 and not survey.public


def question_files(names: Iterable[str]) -> dict[str, str]:
    """The file of every question, without its ending: a number tells two apart that would have the
    same.

    >>> question_files(["age", "a b", "a?b"])
    {'age': 'age', 'a b': 'a_b', 'a?b': 'a_b-2'}
    """
    found: dict[str, str] = {}
    for name in names:
        stem, k = file_name(name).lstrip(".") or "_", 2
        place = stem
        while place in found.values():
            place, k = f"{stem}-{k}", k + 1
        found[name] = place
    return found


# ---- answers -------------------------------------------------------------------------------------


def perturb_survey(
    path: str, survey: Survey, folder: str, advance: Advance = lambda _: None
) -> dict[str, int]:
    """Perturb a table (CSV or Parquet) that has a column per question, public ones too. For every
    person the questions that they answer are drawn; a file of reports per question is written into
    the folder. Returns how many reports each has.
    """
    tables = list(_tables(path, survey, advance))
    if not sum(len(table) for table in tables):
        raise DataError(f"{path} has no answers, so there is nothing to perturb")
    for table in tables:
        _check_answers(survey, table)
    Path(folder).mkdir(parents=True, exist_ok=True)
    drawn = [_draw(survey, len(table)) for table in tables]
    counts, names = {}, question_files(survey.questions)
    for place, question in enumerate(survey.listed):
        blocks = (
            _perturb_block(survey, question, table, np.flatnonzero(chosen[:, place]))
            for table, chosen in zip(tables, drawn, strict=True)
        )
        target = Path(folder) / f"{names[question.name]}.parquet"
        counts[question.name] = write_reports(target, question.mechanism, blocks)
    return counts


def _draw(survey: Survey, people: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Per person and question whether it is drawn: a uniform subset, with secure randomness."""
    from discreet.device.randomness import SystemRandomness

    chosen = np.zeros((people, len(survey.listed)), bool)
    if survey.answers == len(survey.listed):
        chosen[:] = True
        return chosen
    randomness = SystemRandomness()
    for person in range(people):
        chosen[person, list(survey.draw(randomness))] = True
    return chosen


def _tables(path: str, survey: Survey, advance: Advance) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    asked = [q.name for q in survey.listed if q.of is None]
    names = [*asked, *(public.name for public in survey.public)]
    if path.lower().endswith(".parquet"):
        with parquet_file(path) as file:
            _check_columns(path, file.schema_arrow.names, names)
            for batch in file.iter_batches(BLOCK, columns=names):
                yield pa.Table.from_batches([batch])
        advance(Path(path).stat().st_size)
        return
    if not path.lower().endswith(".csv"):
        raise DataError(f"{path}: the answers to a survey are a .csv or a .parquet file")
    try:
        text = {name: pa.string() for name in names}
        options = arrow_csv.ConvertOptions(column_types=text, strings_can_be_null=True)
        table = arrow_csv.read_csv(path, convert_options=options)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a table: {str(error).splitlines()[0][:120]}") from None
    _check_columns(path, table.column_names, names)
    advance(Path(path).stat().st_size)
    yield from (table.slice(k, BLOCK) for k in range(0, len(table), BLOCK))


def _check_columns(path: str, there: list[str], names: list[str]) -> None:
    missing = [name for name in names if name not in there]
    if missing:
        raise DataError(
            f'{path} has no column "{missing[0]}"; a survey needs a column for each of its '
            f"questions: {', '.join(names)}"
        )


def _check_answers(survey: Survey, table: pa.Table) -> None:
    """DataError unless every answer is one of its question, before anything is written."""
    for question in survey.listed:
        if question.of is None:
            _labels(table, survey, question.name)
    for public in survey.public:
        strange = set(table[public.name].to_pylist()) - {*public.items}
        if strange:
            raise DataError(
                f'the column "{public.name}" holds {quoted(next(iter(strange)))}, which is not an '
                "answer to this public question"
            )


def _perturb_block(survey: Survey, question: Question, table: pa.Table, who: Ints) -> Block:
    """The reports of these people on a question, with their public answers."""
    chosen = table.take(who)
    columns = [_labels(chosen, survey, name) for name in question.of or (question.name,)]
    answers = columns[0]
    if question.of is not None:
        answers = [cell(str(one), str(two)) for one, two in zip(*columns, strict=True)]
    reports = question.mechanism.perturb_many(answers) if len(who) else _none(question.mechanism)
    openly = [public.name for public in survey.public]
    return reports, chosen.select(openly) if openly else None


def _none(mechanism: Mechanism) -> Bytes:
    return np.zeros((0, mechanism.report_size), np.uint8)


def _labels(table: pa.Table, survey: Survey, name: str) -> list[Any]:
    """The answers in a column: labels, or lists of them; CSV has them between vertical bars."""
    values = table[name].to_pylist()
    policy = survey.question(name).policy
    if policy.kind.lists:
        values = [x.split("|") if isinstance(x, str) else x or [] for x in values]
        wrong = any(item not in policy.index for items in values for item in items)
    else:
        wrong = any(x not in policy.index for x in values)
    if wrong:  # an error never repeats an answer
        raise DataError(f'the column "{name}" holds something that is not an item of its question')
    return values


# ---- reports and tallies -------------------------------------------------------------------------


def tally_survey(
    folder: str,
    survey: Survey,
    by: Iterable[str] = (),
    advance: Advance = lambda _: None,
) -> dict[str, dict[Any, Tally]]:
    """Count a folder of reports as `perturb_survey` and `export` write it: the tallies of every
    question, by the columns `by`.
    """
    columns, counted, names = tuple(by), {}, question_files(survey.questions)
    for question in survey.listed:
        path = Path(folder) / f"{names[question.name]}.parquet"
        if not path.exists():
            raise DataError(f"{folder} has no {path.name}, the reports on {quoted(question.name)}")
        tallies: dict[Any, Tally] = {} if columns else {None: Tally.empty(question.mechanism)}
        files = report_files([str(path)])
        add_by_group(tallies, tally_files(files, question.mechanism, columns or None, advance))
        counted[question.name] = tallies
    return counted


def save_survey_tallies(counted: Mapping[str, Mapping[Any, Tally]], folder: str) -> None:
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
    counted: dict[str, dict[Any, Tally]] = {}
    for place, question in enumerate(survey.listed):
        groups: dict[Any, Tally] = {None: tally.question(place)}
        if survey.public:
            groups = {survey.group(key): t for key, t in tally.groups(place).items()}
        counted[question.name] = groups
    save_survey_tallies(counted, output)


def write_contents(output: str, survey: Survey, blocks: Iterable[list[bytes]]) -> None:
    """Write the reports that a collection has kept: one Parquet file, or a folder of them."""
    if is_simple(survey):
        width = survey.mechanism.report_size
        rows = (np.frombuffer(b"".join(b), np.uint8).reshape(-1, width) for b in blocks)
        write_reports(output, survey.mechanism, rows)
        return
    several = len(survey.listed) > 1
    contents: list[list[bytes]] = [[] for _ in survey.listed]
    for block in blocks:
        for content in block:
            contents[content[0] if several else 0].append(content)
    Path(output).mkdir(parents=True, exist_ok=True)
    names = question_files(survey.questions)
    for question, mine in zip(survey.listed, contents, strict=True):
        path = Path(output) / f"{names[question.name]}.parquet"
        write_reports(path, question.mechanism, [_block(survey, question.mechanism, mine)])


def _block(survey: Survey, mechanism: Mechanism, contents: list[bytes]) -> Block:
    import pyarrow as pa

    front, several = front_size(survey), len(survey.listed) > 1
    width = front + mechanism.report_size
    rows = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, width)
    openly = {
        public.name: pa.array(np.array(public.items, object)[rows[:, several + k]], pa.string())
        for k, public in enumerate(survey.public)
    }
    return rows[:, front:], pa.table(openly) if openly else None
