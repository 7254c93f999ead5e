"""What a device remembers of what it told, never the answer."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.device.wire import ID_SIZE
from discreet.encodings import REASONS
from discreet.errors import DataError, DiscreetError
from discreet.mechanism import Mechanism
from discreet.policy.files import write_text
from discreet.policy.labels import looks
from discreet.policy.sniff import read_json
from discreet.promises.words import MARGIN, finite, in_words
from discreet.survey import Question, Survey
from discreet.survey.told import told_by, told_openly

# a question is drawn; its report is shown to its sender alone, then may have left, then the
# collector has it for certain
DRAWN, SHOWN, LEAVING, COUNTED = "drawn", "shown", "leaving", "counted"
_SENT = (LEAVING, COUNTED)
Entry = dict[str, Any]


class LedgerError(DiscreetError):
    """The ledger cannot be used; nothing is sent without it."""


class OverlapError(DiscreetError):
    """Questions that were asked before. `epsilon` is the summed budget of the `item` about which
    most would be told; of everything together where the earlier answers were to other questions of
    the survey, and `item` is None. `whole` names what else is told, with its budget: whole lists,
    where lists are asked for, or all answers, where some were to other questions.
    """

    def __init__(
        self,
        item: str | None,
        epsilon: float,
        earlier: int,
        whole: tuple[str, float] | None = None,
        one_way: bool = False,
    ) -> None:
        times = "an earlier answer" if earlier == 1 else f"{earlier} earlier answers"
        subject = "about the same items" if item else "to other questions of this survey"
        what = "change the odds between your answers and any others"
        if item:
            what = f'change what is known about "{item}"'
        lists = f", and about {whole[0]} {_most(whole[1])}" if whole else ""
        if one_way and item:
            what = f'raise the odds that "{item}" is your answer'
            lists += ", and that it is not may become known"
        budget = "" if epsilon == math.inf else f" (budget {epsilon:.4g})"
        super().__init__(
            f"you already gave {times} {subject}; together, your reports can {what} "
            f"{_most(epsilon)}{budget}{lists}; agree to that (--agree, agree=True) or refuse"
        )
        self.item, self.epsilon, self.whole = item, epsilon, whole and whole[1]


class TotalError(DiscreetError):
    """More would be told in all than the person allows; `epsilon` is the sum over all collections,
    whatever they ask about.
    """

    def __init__(self, epsilon: float, limit: float, earlier: int, hint: str = "") -> None:
        times = "an earlier answer" if earlier == 1 else f"{earlier} earlier answers"
        what = f"this answer and {times} together have" if earlier else "this answer has"
        super().__init__(
            f"{what} the budget {epsilon:.4g}, above the {limit:.4g} that you allow in all; "
            f"it is not sent, even if you agree{hint}"
        )
        self.epsilon, self.limit = epsilon, limit


def _most(epsilon: float) -> str:
    """In words; budgets are summed in floats, and the margin keeps the factor above the truth."""
    if epsilon == math.inf:
        return "without any limit"
    factor = math.exp(epsilon) * MARGIN if epsilon < 700 else math.inf
    return f"by a factor of at most {in_words(factor)}"


class Ledger:
    """What this machine has sent, and to whom: origins, names, item labels, budgets and reports. It
    keeps no answer and no time.

    A small file for its owner alone: DISCREET_LEDGER, or discreet/ledger.json in the user's data
    folder.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        self.path = Path(
            path or os.environ.get("DISCREET_LEDGER") or Path(home) / "discreet" / "ledger.json"
        )

    @contextmanager
    def locked(self) -> Iterator[list[Entry]]:
        """The entries, for this process alone; changes are written at the end, before anything is
        sent.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.path} cannot be used: {error.strerror}; nothing is sent "
                "without it"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self._text()
            entries = self._entries(before)
            yield entries
            after = json.dumps({"entries": entries}, ensure_ascii=False)
            if entries != self._entries(before):
                self._write(after)
        finally:
            os.close(lock)

    def _text(self) -> str | None:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise LedgerError(
                f"the ledger {self.path} cannot be read: {why}; nothing is sent without it"
            ) from None

    def _entries(self, text: str | None) -> list[Entry]:
        if text is None:
            return []
        try:
            whole = read_json(text)
            entries = whole["entries"]
            shape = len(whole) == 1 and isinstance(entries, list)
            if shape and all(_is_entry(entry) for entry in entries):
                return entries
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise LedgerError(
            f"the ledger {self.path} is damaged, so nothing is sent; restore it, or remove it if "
            "earlier answers may be forgotten"
        )

    def _write(self, text: str) -> None:
        old = os.umask(0o077)
        try:
            write_text(self.path, text + "\n")
            self.path.chmod(0o600)
        except (OSError, DataError) as error:
            raise LedgerError(
                f"the ledger {self.path} cannot be written: {error}; nothing is sent without it"
            ) from None
        finally:
            os.umask(old)


def _is_entry(entry: Entry) -> bool:
    keys = ("origin", "name", "fingerprint", "question")
    texts = all(isinstance(entry[key], str) for key in keys)
    drawn = entry["state"] == DRAWN
    sent = all(
        entry[key] == "" if drawn else re.fullmatch("([0-9a-f]{2})+", entry[key])
        for key in ("id", "report")
    )
    items, told = entry["items"], entry["told"]
    levels, level_of = entry["budgets"]["levels"], entry["budgets"]["levelOf"]
    if not all(isinstance(x, list) for x in (items, told, levels, level_of)) or not items:
        return False
    placed = len(level_of) == len(items) and all(
        type(k) is int and 0 <= k < len(levels) for k in level_of
    )
    sums = entry["budgets"]["whole"], entry["budgets"]["raised"]
    numbers = [x for x in (*levels, *sums) if x is not None]  # None: no limit
    finite = all(type(x) in (int, float) and math.isfinite(x) and x >= 0 for x in numbers)
    finite = finite and type(entry["budgets"]["oneWay"]) is bool
    named = all(isinstance(x, str) for x in (*items, *told))
    whole = drawn or len(entry["id"]) == 2 * ID_SIZE
    known = entry["state"] in (DRAWN, SHOWN, LEAVING, COUNTED)
    return texts and sent and placed and finite and named and whole and known


# ---- one entry, and all of them ------------------------------------------------------------------


def new_entry(origin: str, survey: Survey, question: Question) -> Entry:
    """What is remembered of a question that was drawn, before anything is shown."""
    mechanism = question.mechanism
    labels, levels, level_of = told_by(survey, question, mechanism.guarantee().epsilons)
    return {
        "origin": origin,
        "name": survey.name,
        "fingerprint": survey.fingerprint,
        "question": question.name,
        "id": "",
        "report": "",
        "items": labels,
        "told": told_openly(survey),
        "budgets": {
            "levels": [finite(x) for x in levels],
            "levelOf": level_of,
            "whole": finite(mechanism.guarantee().ldp_epsilon),  # of all that is in an answer
            "raised": finite(mechanism.guarantee().raise_epsilon),  # the same, of raised odds alone
            "oneWay": not mechanism.policy.is_mutual,  # the levels' budgets are of raised odds
        },
        "state": DRAWN,
    }


def write_report(entry: Entry, mechanism: Mechanism, front: bytes, report: bytes) -> None:
    """Write a report down before anybody sees it, with an id of its own."""
    reason = mechanism.coder.refusal(report)
    if reason:  # cannot happen; if it did, nothing must leave
        raise LedgerError(f"the report is not one of this mechanism: {REASONS[reason]}")
    entry["id"], entry["report"] = os.urandom(ID_SIZE).hex(), (front + report).hex()
    entry["state"] = SHOWN


def _number(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon


def find_entries(entries: list[Entry], origin: str, survey: Survey) -> list[Entry]:
    """The entries of this survey at this address, in the order of its questions."""
    wanted = (origin, survey.name, survey.fingerprint)
    drawn = [e for e in entries if (e["origin"], e["name"], e["fingerprint"]) == wanted]
    places = {question.name: k for k, question in enumerate(survey.listed)}
    if any(entry["question"] not in places for entry in drawn):
        raise LedgerError("the ledger holds a question that this survey does not have")
    return sorted(drawn, key=lambda entry: places[entry["question"]])


def refuse_unless_agreed(
    entries: list[Entry],
    mine: list[Entry],
    survey: Survey,
    most: float | None,
    agreed: float,
    one_way: bool = False,
) -> int:
    """How many earlier answers, of whatever server, are about items of this survey; refused if they
    are more than the person agreed to, or if all answers together would tell more than `most`; of
    raised odds alone, if the person accepts one-way protection. Every question of the survey
    counts, drawn or not: else a survey under another name would be drawn, and answered, once more.
    A report that only the person has seen has told nobody anything.
    """
    ids = {id(entry) for entry in mine}
    sent = [entry for entry in entries if entry["state"] in _SENT and id(entry) not in ids]
    _check_total(sent, mine, most, one_way)
    asked = [_asked(survey, question) for question in survey.listed]
    earlier = [entry for entry in sent if any(_shares_item(entry, own) for own in asked)]
    if len(earlier) > agreed:
        raise _overlap(survey, mine, earlier)
    return len(earlier)


def _asked(survey: Survey, question: Question) -> Entry:
    """What a question asks about, as an entry has it; no budget is looked at."""
    levels = [0.0] * len(question.policy.levels)
    return {"items": told_by(survey, question, levels).labels, "told": told_openly(survey)}


def _looks(items: list[str]) -> set[str]:
    return {look for item in items for look in looks(item)}


def _shares_item(one: Entry, other: Entry) -> bool:
    """Whether an item of one is also in the other. What both told openly is not counted: it was
    never protected.
    """
    here, there = _looks(one["items"]), _looks(other["items"])
    openly = bool(here & _looks(other["told"]) or there & _looks(one["told"]))
    return openly or not here.isdisjoint(there)


def _overlap(survey: Survey, mine: list[Entry], earlier: list[Entry]) -> OverlapError:
    """The item about which most would be told in all: budgets add up (sequential composition)."""
    spent, own_spent = ([_spent(entry) for entry in entries] for entries in (earlier, mine))
    sums = [
        (math.fsum([*each, *_spent_by_now(item, budget, own_spent)]), item)
        for own in mine
        for item, budget in _budgets(own)
        if (each := _spent_on(item, spent, openly=budget == math.inf and item in own["told"]))
    ]
    everything = math.fsum(_number(entry["budgets"]["whole"]) for entry in [*earlier, *mine])
    if not sums:
        return OverlapError(None, everything, len(earlier))
    epsilon, item = max(sums, key=lambda pair: pair[0])  # the first: in the survey's own language
    whole = None
    if any(question.policy.kind.lists for question in survey.listed):
        whole = "whole lists", everything
    elif not all(any(_shares_item(entry, own) for own in mine) for entry in earlier):
        whole = "all your answers together", everything
    one_way = any(entry["budgets"]["oneWay"] for entry in [*earlier, *mine])
    return OverlapError(item, epsilon, len(earlier), whole, one_way)


def _budgets(entry: Entry) -> Iterator[tuple[str, float]]:
    """Every item with its budget; what was told openly has no limit."""
    levels = entry["budgets"]["levels"]
    for item, k in zip(entry["items"], entry["budgets"]["levelOf"], strict=True):
        yield item, _number(levels[k])
    for item in entry["told"]:
        yield item, math.inf


Spent = tuple[dict[str, float], set[str]]  # budgets by look; the looks that were told openly


def _spent(entry: Entry) -> Spent:
    """The budget of every look of an item; the larger, where two labels are one item."""
    largest: dict[str, float] = {}
    for item, k in zip(entry["items"], entry["budgets"]["levelOf"], strict=True):
        for look in looks(item):
            largest[look] = max(largest.get(look, 0.0), _number(entry["budgets"]["levels"][k]))
    return largest, _looks(entry["told"])


def _spent_on(item: str, spent: list[Spent], openly: bool) -> list[float]:
    """What earlier answers told of an item, each; `openly` asks for protected answers alone."""
    here, each = set(looks(item)), []
    for budgets, told in spent:
        known = [budgets[look] for look in here if look in budgets]
        if not openly and here & told:
            known.append(math.inf)
        each += [max(known)] if known else []
    return each


def _spent_by_now(item: str, budget: float, mine: list[Spent]) -> list[float]:
    """What the reports of this survey tell of an item, each: a crossed one tells of it, too."""
    if budget == math.inf:
        return [budget]
    return _spent_on(item, [(budgets, set()) for budgets, _ in mine], openly=False)


def _check_total(sent: list[Entry], mine: list[Entry], most: float | None, one_way: bool) -> None:
    """Refuse what would bring the sum over all surveys above the cap. There are two sums: of what
    is told either way, and of how far odds are raised. Public answers have no budget and are in
    neither.
    """
    if most is None:
        return
    either, raised = (
        math.fsum(_number(entry["budgets"][key]) for entry in [*sent, *mine])
        for key in ("whole", "raised")
    )
    total = raised if one_way else either
    if total > most + 1e-9:
        fits = not one_way and raised <= most + 1e-9
        hint = f"; its raised odds have {raised:.4g}: accept that (--one-way, one_way=True)"
        raise TotalError(total, most, len(sent), hint if fits else "")
