"""The participant's side of a collector: verify the mechanism, perturb, remember, upload. The
server is not trusted.

Averaging over repeats is the classic attack, and a server may rename a question or nudge a
probability to ask again. So a ledger on this machine keeps what was sent: the same collection gets
the same report again, byte for byte, and a question about items that were asked about before is
refused until the person agrees to the summed budget. It never holds an answer. A report is written
down before anybody sees it: whoever could choose among several draws would tell more.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import math
import os
import random
import re
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from discreet.encodings import REASONS
from discreet.errors import DataError, DiscreetError, short_fingerprint
from discreet.files import write_text
from discreet.guarantee import MARGIN, in_words
from discreet.labels import cleaned, is_prose, looks, show
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.texts import read_document, read_json
from discreet.wire import ID_SIZE, origin, path_of, upload_headers

STATES = ("upcoming", "open", "closed")  # of a collection
_LATE = timedelta(hours=1)  # after its end a question is closed: clocks may differ
_LARGEST = 256 << 20  # bytes of an answer that are read
_LONGEST_PAUSE = 20.0  # seconds between two attempts, whatever the server asks for


class ClientError(DiscreetError):
    """The collector cannot be reached, or does not answer as one."""


class LedgerError(DiscreetError):
    """The ledger cannot be used; nothing is sent without it."""


class PromiseError(DiscreetError):
    """The collection is not what the caller pinned."""


class OverlapError(DiscreetError):
    """Items that were asked about before; `epsilon` is the summed budget of the item about which
    most would be told, `whole` that of whole lists, where lists are asked for.
    """

    def __init__(self, item: str, epsilon: float, earlier: int, whole: float | None = None) -> None:
        times = "an earlier answer" if earlier == 1 else f"{earlier} earlier answers"
        lists = f", and about whole lists by at most {_factor(whole)}" if whole else ""
        super().__init__(
            f"you already gave {times} about the same items; together, your reports can change "
            f'what is known about "{item}" by a factor of at most {_factor(epsilon)} '
            f"(budget {epsilon:.4g}){lists}; agree to that (--agree, agree=True) or refuse"
        )
        self.item, self.epsilon, self.whole = item, epsilon, whole


def _factor(epsilon: float) -> str:
    """In words; budgets are summed in floats, and the margin keeps the factor above the truth."""
    return in_words(math.exp(epsilon) * MARGIN if epsilon < 700 else math.inf)


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


@dataclass(frozen=True)
class Asked:
    """A collection as this client has verified it."""

    name: str
    mechanism: Mechanism
    state: str  # "upcoming", "open" or "closed", as the collector says


@dataclass(frozen=True)
class Prepared:
    """What will be sent if `send` is called; nothing has left yet."""

    asked: Asked
    id: bytes
    report: bytes
    repeated: bool  # drawn before for this very collection, whatever the answer was then
    agreed: int = 0  # earlier questions about the same items to which the person agreed
    max_total: float | None = None  # the sum over all collections that the person allows


@dataclass(frozen=True)
class Receipt:
    """What the collector acknowledged: 1 accepted, or 1 duplicate of a report that it had counted
    before.
    """

    accepted: int
    duplicates: int
    id: bytes = field(default=b"", repr=False, compare=False)
    report: bytes = field(default=b"", repr=False, compare=False)


class Client:
    """Answers at a collector. `max_total` caps the sum of the budgets over all collections in the
    ledger, whatever they ask about: labels can be rewritten, a sum cannot. `waiting` is called
    with the reason before every new attempt while the collector is away or busy.

    >>> client = Client("http://127.0.0.1:8000")                                # doctest: +SKIP
    >>> policy = Policy.load("survey.toml")  # doctest: +SKIP
    >>> client.answer("health-survey", "anemia", policy=policy)  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str,
        ledger: Ledger | None = None,
        patience: float = 60.0,
        max_total: float | None = None,
        waiting: Callable[[str], None] = lambda why: None,
    ) -> None:
        parts = _split(url)
        if parts is None:
            raise DataError(
                f'"{cleaned(str(url))}" is not the address of a collector; it begins with http:// '
                "or https://"
            )
        self.url = url.rstrip("/")
        self.origin = origin(parts.scheme, (parts.hostname or "").rstrip("."), parts.port)
        self.ledger, self.patience, self.waiting = ledger or Ledger(), patience, waiting
        self.max_total = _limit(max_total)
        # made here, and not once and for all: it reads SSL_CERT_FILE when it is made
        self._opener = urllib.request.build_opener(_Stay)

    # ---- ask -------------------------------------------------------------------------------------

    def collection(
        self,
        name: str,
        policy: Policy | None = None,
        max_epsilon: float | Mapping[str, float] | None = None,
        fingerprint: str | None = None,
    ) -> Asked:
        """Fetch a collection and verify its guarantee exactly; refuse it unless it is what the
        caller pins: a policy, the largest budget (of all items, or per item), a fingerprint.
        """
        found = self._request(self._path(name))
        try:
            document, state = dict(found["mechanism"]), STATES[STATES.index(found["state"])]
        except (KeyError, TypeError, ValueError):
            raise ClientError(
                f"{self.url} does not answer like a collector; check the address"
            ) from None
        mechanism = Mechanism.from_document(document)
        if fingerprint is not None and mechanism.fingerprint != fingerprint:
            raise PromiseError(
                f"the invitation is for fingerprint {short_fingerprint(fingerprint)}… but this is "
                f"{short_fingerprint(mechanism.fingerprint)}…; do not answer, and ask who invited "
                "you"
            )
        if mechanism.policy.name != name:
            raise PromiseError(
                f"the link is for {show(name)}, but the question there is called "
                f"{show(mechanism.policy.name)}; a link of your own could tell who you are: do not "
                "answer, and compare the whole link with somebody else's"
            )
        if policy is not None and (differences := mechanism.differences(policy)):
            raise PromiseError(
                f'"{name}" is not the policy you named: {differences[0]}; do not answer, and ask '
                "who invited you"
            )
        if max_epsilon is not None:
            _check_budgets(mechanism, max_epsilon)
        about = mechanism.policy.about
        if state == "upcoming" and not about.opens:
            raise ClientError(f"{self.url} says that a question without a date has not opened yet")
        if about.state(datetime.now(UTC) - _LATE) == "closed":  # whoever says what
            state = "closed"
        return Asked(name, mechanism, state)

    def prepare(
        self, asked: Asked, answer: Any, agree: bool = False, max_total: float | None = None
    ) -> Prepared:
        """Perturb an answer and write the report down; nothing is sent yet. It is drawn once: a
        collection whose report has been prepared gives it again, whatever the answer. `agree` is to
        the sum for the same items; `max_total`, here or of the client, is not lifted by it.
        """
        limits = [x for x in (_limit(max_total), self.max_total) if x is not None]
        most = min(limits, default=None)
        fresh = asked.mechanism.perturb(answer)  # also refuses an answer that is none
        with self.ledger.locked() as entries:
            entry = _find(entries, self.origin, asked)
            repeated, agreed = entry is not None, 0
            if entry is None or entry["state"] == SHOWN:
                agreed = _consented(entries, asked.mechanism, most, math.inf if agree else 0)
            if entry is None:
                entry = _entry(self.origin, asked, secrets.token_bytes(ID_SIZE), fresh)
                entries.append(entry)
        sent = bytes.fromhex(entry["id"]), bytes.fromhex(entry["report"])
        return Prepared(asked, *sent, repeated, agreed, most)

    def unsent(self, asked: Asked) -> Prepared | None:
        """The report that was on its way to this collection when something went wrong: nobody knows
        whether it arrived. Send it again; its id makes sure that it is counted once.
        """
        with self.ledger.locked() as entries:
            entry = _find(entries, self.origin, asked)
        if entry is None or entry["state"] != LEAVING:
            return None
        return Prepared(asked, bytes.fromhex(entry["id"]), bytes.fromhex(entry["report"]), True)

    def send(self, prepared: Prepared) -> Receipt:
        """Upload the report, again and again while the collector is away: it is counted once."""
        asked, mechanism = prepared.asked, prepared.asked.mechanism
        with self.ledger.locked() as entries:
            entry = _find(entries, self.origin, asked)
            if entry is None:  # the ledger was removed meanwhile
                entry = _entry(self.origin, asked, prepared.id, prepared.report)
                entries.append(entry)
            if entry["state"] == SHOWN:
                _consented(entries, mechanism, prepared.max_total, prepared.agreed)
                entry["state"] = LEAVING
        body = bytes.fromhex(entry["id"] + entry["report"])
        headers = upload_headers(mechanism.fingerprint)
        found = self._request(self._path(asked.name) + "/reports", body, headers)
        try:
            receipt = Receipt(
                int(found["accepted"]), int(found["duplicates"]), body[:ID_SIZE], body[ID_SIZE:]
            )
        except (KeyError, TypeError, ValueError):
            receipt = Receipt(0, 0)
        if receipt.accepted + receipt.duplicates != 1:
            raise ClientError(
                "the collector did not say that it has the report; send it again later"
            )
        with self.ledger.locked() as entries:
            for known in entries:
                if known["id"] == entry["id"]:
                    known["state"] = COUNTED
        return receipt

    def answer(
        self,
        name: str,
        answer: Any,
        agree: bool = False,
        max_total: float | None = None,
        **pins: Any,
    ) -> Receipt:
        """Ask, prepare and send; `pins` are those of `collection`."""
        asked = self.collection(name, **pins)
        return self.send(self.prepare(asked, answer, agree, max_total))

    # ---- talk ------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return self.url + path_of(name)

    def _request(
        self, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The JSON that the collector answers; tried again while it is away or busy."""
        end, pause = time.monotonic() + self.patience, 0.25
        request = urllib.request.Request(
            url, body, {"User-Agent": "discreet", "Accept": "application/json", **(headers or {})}
        )
        while True:
            why, wait = "", pause * (1 + random.random())
            try:
                with self._opener.open(
                    request, timeout=max(1.0, min(_LONGEST_PAUSE, end - time.monotonic()))
                ) as answer:
                    raw = answer.read(_LARGEST + 1)
                if len(raw) > _LARGEST:
                    raise ClientError(
                        f"{self.url} answers more than any collector would; check the address"
                    )
                if len(raw) < _whole(answer.headers.get("Content-Length")):
                    raise http.client.IncompleteRead(raw)
                return read_document(raw)
            except urllib.error.HTTPError as error:
                with error:  # it holds the connection
                    if error.code < 500 and error.code not in (408, 425, 429):
                        raise ClientError(f"the collector refused: {_detail(error)}") from None
                    why = f"it answers {error.code}"
                    asked = float(_whole(error.headers.get("Retry-After")))
                    wait = min(_LONGEST_PAUSE, max(wait, asked))
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                reason = getattr(error, "reason", error)
                said = getattr(reason, "strerror", None) or str(reason)
                why = cleaned(said) or type(error).__name__
            except (ValueError, RecursionError):
                raise ClientError(
                    f"{self.url} does not answer like a collector; check the address"
                ) from None
            if time.monotonic() + wait > end:
                raise ClientError(
                    f"the collector at {self.url} cannot be used: {why}; try again later"
                )
            self.waiting(why)
            time.sleep(wait)
            pause = min(_LONGEST_PAUSE, 2 * pause)


class _Stay(urllib.request.HTTPRedirectHandler):
    """A collector does not redirect: a report goes where it was meant to go."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Never."""


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(error.read(65536))["detail"]
        return (cleaned(said) if isinstance(said, str) else "") or f"it answers {error.code}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return f"it answers {error.code}"


def _whole(text: str | None) -> int:
    """A header that is a whole number; 0 if it is none, or no sensible one."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else 0


def invitation(url: str) -> tuple[str, str, str | None]:
    """Server, collection and pinned fingerprint of an invitation link, such as
    http://host/c/survey#fingerprint.
    """
    parts = _split(url)
    found = re.fullmatch(r"(.*)/(?:c|v1/collections)/([^/]+)/?", parts.path) if parts else None
    if not parts or not found:
        raise DataError(
            f'"{cleaned(str(url))}" is not an invitation; it looks like '
            "https://host/c/survey#fingerprint"
        )
    pinned = parts.fragment.removeprefix("fingerprint=") or None
    if pinned is not None and not re.fullmatch("[0-9a-f]{64}", pinned):
        raise DataError(
            "what stands after # in the invitation is not a fingerprint: it has 64 characters 0-9 "
            "and a-f"
        )
    return f"{parts.scheme}://{parts.netloc}{found[1]}", unquote(found[2]), pinned


def _split(url: object) -> SplitResult | None:
    """The parts of a web address, or None if it is none."""
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    web = parts.scheme in ("http", "https") and parts.netloc and parts.hostname
    try:
        port = parts.port
    except ValueError:
        return None
    plain = port is None or re.search(r":\d{1,5}$", parts.netloc)  # no sign, no blank
    return parts if web and plain and is_prose(url) else None


def _check_budgets(mechanism: Mechanism, limit: float | Mapping[str, float]) -> None:
    levels = mechanism.guarantee().budgets.tolist()
    given = limit if isinstance(limit, Mapping) else {}
    pinned: dict[str, float] = {}  # by every look of its item; of two pins the smaller counts
    for item, most in [*given.items(), *([] if isinstance(limit, Mapping) else [("", limit)])]:
        if isinstance(most, bool) or not isinstance(most, int | float) or not most > 0:
            raise DataError(f"a budget is a positive number, got {most!r}")
        for look in looks(item):
            pinned[look] = min(pinned.get(look, math.inf), most)
    there = {look for item in mechanism.policy.items for look in looks(item)}
    unknown = [item for item in given if there.isdisjoint(looks(item))]
    if unknown:
        raise PromiseError(
            f'"{min(unknown)}", for which you pinned a budget, is not an item of this collection; '
            "do not answer"
        )
    for item, k in zip(mechanism.policy.items, mechanism.policy.level_of, strict=True):
        most = (
            min(pinned.get(look, math.inf) for look in looks(item))
            if isinstance(limit, Mapping)
            else limit
        )
        if levels[k] > most + 1e-9:
            raise PromiseError(
                f'"{item}" has budget {levels[k]:.4g} in this collection, above the {most:.4g} '
                "you allow; do not answer"
            )


# ---- the ledger ----------------------------------------------------------------------------------

# a report is shown to its sender alone, then may have left, then the collector has it for certain
SHOWN, LEAVING, COUNTED = "shown", "leaving", "counted"


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
    def locked(self) -> Iterator[list[dict[str, Any]]]:
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

    def _entries(self, text: str | None) -> list[dict[str, Any]]:
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


def _is_entry(entry: dict[str, Any]) -> bool:
    texts = all(isinstance(entry[key], str) for key in ("origin", "name", "fingerprint"))
    sent = all(re.fullmatch("([0-9a-f]{2})+", entry[key]) for key in ("id", "report"))
    items = entry["items"]
    levels, level_of = entry["budgets"]["levels"], entry["budgets"]["levelOf"]
    if not all(isinstance(x, list) for x in (items, levels, level_of)) or not items:
        return False
    placed = len(level_of) == len(items) and all(
        type(k) is int and 0 <= k < len(levels) for k in level_of
    )
    numbers = [*levels, entry["budgets"]["whole"]]
    known = all(type(x) in (int, float) and math.isfinite(x) and x >= 0 for x in numbers)
    named = all(isinstance(x, str) for x in items)
    whole = len(entry["id"]) == 2 * ID_SIZE and entry["state"] in (SHOWN, LEAVING, COUNTED)
    return texts and sent and placed and known and named and whole


def _entry(origin: str, asked: Asked, id: bytes, report: bytes) -> dict[str, Any]:
    mechanism = asked.mechanism
    reason = mechanism.coder.check(report)
    if reason:  # cannot happen; if it did, nothing must leave
        raise LedgerError(f"the report is not one of this mechanism: {REASONS[reason]}")
    return {
        "origin": origin,
        "name": asked.name,
        "fingerprint": mechanism.fingerprint,
        "id": id.hex(),
        "report": report.hex(),
        "items": list(mechanism.policy.items),
        "budgets": {
            "levels": mechanism.guarantee().epsilons.tolist(),
            "levelOf": list(mechanism.policy.level_of),
            "whole": mechanism.guarantee().ldp_epsilon,  # of an answer with all that is in it
        },
        "state": SHOWN,
    }


def _find(entries: list[dict[str, Any]], origin: str, asked: Asked) -> dict[str, Any] | None:
    wanted = (origin, asked.name, asked.mechanism.fingerprint)
    return next((e for e in entries if (e["origin"], e["name"], e["fingerprint"]) == wanted), None)


def _consented(
    entries: list[dict[str, Any]], mechanism: Mechanism, most: float | None, agreed: float
) -> int:
    """How many earlier answers, of whatever server, are about the same items; refused if they are
    more than the person agreed to, or if all answers together would tell more than `most`. What was
    only shown to her has told nobody anything.
    """
    told = [entry for entry in entries if entry["state"] != SHOWN]
    _check_total(told, mechanism, most)
    earlier = _overlaps(told, mechanism)
    if len(earlier) > agreed:
        raise _overlap(mechanism, earlier)
    return len(earlier)


def _overlaps(entries: list[dict[str, Any]], mechanism: Mechanism) -> list[dict[str, Any]]:
    """Those that share an item."""
    here = {look for item in mechanism.policy.items for look in looks(item)}
    return [
        entry
        for entry in entries
        if any(not here.isdisjoint(looks(item)) for item in entry["items"])
    ]


def _overlap(mechanism: Mechanism, earlier: list[dict[str, Any]]) -> OverlapError:
    """The item about which most would be told in all: budgets add up (sequential composition)."""
    spent = [_spent(entry) for entry in earlier]
    own, totals = mechanism.guarantee().epsilons.tolist(), []
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
    if mechanism.policy.takes_sets:
        each = [entry["budgets"]["whole"] for entry in earlier]
        whole = math.fsum([*each, mechanism.guarantee().ldp_epsilon])
    return OverlapError(item, epsilon, len(earlier), whole)


def _spent(entry: dict[str, Any]) -> dict[str, float]:
    """The budget of every look of an item; the larger, where two labels are one item."""
    found: dict[str, float] = {}
    for item, k in zip(entry["items"], entry["budgets"]["levelOf"], strict=True):
        for look in looks(item):
            found[look] = max(found.get(look, 0.0), entry["budgets"]["levels"][k])
    return found


def _check_total(entries: list[dict[str, Any]], mechanism: Mechanism, most: float | None) -> None:
    """Refuse what would bring the sum over all collections above the cap."""
    if most is None:
        return
    each = [entry["budgets"]["whole"] for entry in entries]
    total = math.fsum([*each, mechanism.guarantee().ldp_epsilon])
    if total > most + 1e-9:
        raise TotalError(total, most, len(entries))


def _limit(most: float | None) -> float | None:
    number = isinstance(most, int | float) and not isinstance(most, bool)
    if most is not None and not (number and most > 0):
        raise DataError(f"max_total is a positive number, got {most!r}")
    return most
