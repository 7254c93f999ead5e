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

# a report is shown to its sender alone, then may have left, then the collector has it for certain
SHOWN, LEAVING, COUNTED = "shown", "leaving", "counted"
Entry = dict[str, Any]


class LedgerError(DiscreetError):
    """The ledger cannot be used; nothing is sent without it."""


class OverlapError(DiscreetError):
    """Items that were asked about before; `epsilon` is the summed budget of the item about which
    most would be told, `whole` that of whole lists, where lists are asked for.
    """

    def __init__(
        self,
        item: str,
        epsilon: float,
        earlier: int,
        whole: float | None = None,
        one_way: bool = False,
    ) -> None:
        times = "an earlier answer" if earlier == 1 else f"{earlier} earlier answers"
        lists = f", and about whole lists by at most {_factor(whole)}" if whole else ""
        change = f'change what is known about "{item}"'
        if one_way:
            change = f'raise the odds that "{item}" is your answer'
            lists += ", and that it is not may become known"
        super().__init__(
            f"you already gave {times} about the same items; together, your reports can {change} "
            f"by a factor of at most {_factor(epsilon)} (budget {epsilon:.4g}){lists}; agree to "
            "that (--agree, agree=True) or refuse"
        )
        self.item, self.epsilon, self.whole = item, epsilon, whole


class TotalError(DiscreetError):
    """More would be told in all than the person allows; `epsilon` is the sum over all collections,
    whatever they ask about.
    """

    def __init__(self, epsilon: float, limit: float, earlier: int) -> None:
        times = "an earlier answer" if earlier == 1 else f"{earlier} earlier answers"
        what = f"this answer and {times} together have" if earlier else "this answer has"
        super().__init__(
            f"{what} the budget {epsilon:.4g}, above the {limit:.4g} that you allow in all; "
            "it is not sent, even if you agree"
        )
        self.epsilon, self.limit = epsilon, limit


def _factor(epsilon: float) -> str:
    """In words; budgets are summed in floats, and the margin keeps the factor above the truth."""
    return in_words(math.exp(epsilon) * MARGIN if epsilon < 700 else math.inf)


class Ledger:
    """What this machine has told, and to whom: origins, names, item labels, budgets and the reports
    sent. No answer, no time.

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
    texts = all(isinstance(entry[key], str) for key in ("origin", "name", "fingerprint"))
    sent = all(re.fullmatch("([0-9a-f]{2})+", entry[key]) for key in ("id", "report"))
    items = entry["items"]
    levels, level_of = entry["budgets"]["levels"], entry["budgets"]["levelOf"]
    if not all(isinstance(x, list) for x in (items, levels, level_of)) or not items:
        return False
    placed = len(level_of) == len(items) and all(
        type(k) is int and 0 <= k < len(levels) for k in level_of
    )
    numbers = [x for x in (*levels, entry["budgets"]["whole"]) if x is not None]  # None: no limit
    finite = all(type(x) in (int, float) and math.isfinite(x) and x >= 0 for x in numbers)
    finite = finite and type(entry["budgets"]["oneWay"]) is bool
    named = all(isinstance(x, str) for x in items)
    whole = len(entry["id"]) == 2 * ID_SIZE and entry["state"] in (SHOWN, LEAVING, COUNTED)
    return texts and sent and placed and finite and named and whole


# ---- one entry, and all of them ------------------------------------------------------------------


def new_entry(origin: str, name: str, mechanism: Mechanism, id: bytes, report: bytes) -> Entry:
    """What is remembered of a report, before anybody sees it."""
    reason = mechanism.coder.check(report)
    if reason:  # cannot happen; if it did, nothing must leave
        raise LedgerError(f"the report is not one of this mechanism: {REASONS[reason]}")
    return {
        "origin": origin,
        "name": name,
        "fingerprint": mechanism.fingerprint,
        "id": id.hex(),
        "report": report.hex(),
        "items": list(mechanism.policy.items),
        "budgets": {
            "levels": [finite(x) for x in mechanism.guarantee().epsilons],
            "levelOf": list(mechanism.policy.level_of),
            "whole": finite(mechanism.guarantee().ldp_epsilon),  # of all that is in an answer
            "oneWay": not mechanism.policy.is_mutual,  # the levels' budgets are of raised odds
        },
        "state": SHOWN,
    }


def _number(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon


def find_entry(entries: list[Entry], origin: str, name: str, mechanism: Mechanism) -> Entry | None:
    """The entry of this question at this address."""
    wanted = (origin, name, mechanism.fingerprint)
    return next((e for e in entries if (e["origin"], e["name"], e["fingerprint"]) == wanted), None)


def refuse_unless_agreed(
    entries: list[Entry], mechanism: Mechanism, most: float | None, agreed: float
) -> int:
    """How many earlier answers, of whatever server, are about the same items; refused if they are
    more than the person agreed to, or if all answers together would tell more than `most`. What was
    only shown to her has sent nobody anything.
    """
    sent = [entry for entry in entries if entry["state"] != SHOWN]
    _check_total(sent, mechanism, most)
    earlier = _overlaps(sent, mechanism)
    if len(earlier) > agreed:
        raise _overlap(mechanism, earlier)
    return len(earlier)


def _overlaps(entries: list[Entry], mechanism: Mechanism) -> list[Entry]:
    """Those that share an item."""
    here = {look for item in mechanism.policy.items for look in looks(item)}
    return [
        entry
        for entry in entries
        if any(not here.isdisjoint(looks(item)) for item in entry["items"])
    ]


def _overlap(mechanism: Mechanism, earlier: list[Entry]) -> OverlapError:
    """The item about which most would be told in all: budgets add up (sequential composition)."""
    spent = [_spent(entry) for entry in earlier]
    own, totals = mechanism.guarantee().epsilons, []
    for item, k in zip(mechanism.policy.items, mechanism.policy.level_of, strict=True):
        each = [
            max(known[look] for look in looks(item) if look in known)
            for known in spent
            if not known.keys().isdisjoint(looks(item))
        ]
        if each:
            totals.append((math.fsum([*each, own[k]]), item))
    epsilon, item = max(totals)
    whole = None
    if mechanism.policy.kind.lists:
        each = [_number(entry["budgets"]["whole"]) for entry in earlier]
        whole = math.fsum([*each, mechanism.guarantee().ldp_epsilon])
    one_way = not mechanism.policy.is_mutual or any(e["budgets"]["oneWay"] for e in earlier)
    return OverlapError(item, epsilon, len(earlier), whole, one_way)


def _spent(entry: Entry) -> dict[str, float]:
    """The budget of every look of an item; the larger, where two labels are one item."""
    found: dict[str, float] = {}
    for item, k in zip(entry["items"], entry["budgets"]["levelOf"], strict=True):
        for look in looks(item):
            found[look] = max(found.get(look, 0.0), _number(entry["budgets"]["levels"][k]))
    return found


def _check_total(entries: list[Entry], mechanism: Mechanism, most: float | None) -> None:
    """Refuse what would bring the sum over all collections above the cap."""
    if most is None:
        return
    each = [_number(entry["budgets"]["whole"]) for entry in entries]
    total = math.fsum([*each, mechanism.guarantee().ldp_epsilon])
    if total > most + 1e-9:
        raise TotalError(total, most, len(entries))
