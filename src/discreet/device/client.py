"""The participant's side of a collector: verify the mechanism, perturb, remember, upload. The
server is not trusted.

Averaging over repeats is the classic attack, and a server may rename a question or nudge a
probability to ask again. So a ledger on this machine keeps what was sent: the same collection gets
the same report again, byte for byte, and a question about items that were asked about before is
refused until the person agrees to the summed budget. It never holds an answer. A report is written
down before anybody sees it: whoever could choose among several draws would tell more.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from discreet.device.ledger import (
    COUNTED,
    LEAVING,
    SHOWN,
    Entry,
    Ledger,
    find_entry,
    new_entry,
    refuse_unless_agreed,
)
from discreet.device.wire import ID_SIZE, origin, path_of, upload_headers
from discreet.errors import ClientError, DataError, DiscreetError, short_fingerprint
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import cleaned, is_prose, looks, quoted
from discreet.policy.lazy import cached_property

if TYPE_CHECKING:
    from discreet.device.network import Network
    from discreet.policy.types import Answer, JsonObject

STATES = ("upcoming", "open", "closed")  # of a collection
_LATE = timedelta(hours=1)  # after its end a question is closed: clocks may differ


class PromiseError(DiscreetError):
    """The collection is not what the caller pinned."""


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

    `answer` does it all; `collection`, `prepare` and `send` are its three steps. tests/device has
    them at work against a real collector.

    >>> client = Client("https://survey.example.org:443/")
    >>> client.origin
    'https://survey.example.org'
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

    # ---- ask -------------------------------------------------------------------------------------

    def collection(
        self,
        name: str,
        policy: Policy | None = None,
        max_epsilon: float | Mapping[str, float] | None = None,
        fingerprint: str | None = None,
        one_way: bool = False,
    ) -> Asked:
        """Fetch a collection and verify its guarantee exactly; refuse it unless it is what the
        caller pins: a policy, the largest budget (of all items, or per item), a fingerprint. With
        a largest budget, one-way protection is refused unless `one_way` accepts it: then the
        budget limits by how much the odds of a protected answer can be raised.
        """
        answer = self._request(self._path(name))
        try:
            document, state = dict(answer["mechanism"]), STATES[STATES.index(answer["state"])]
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
                f"the link is for {quoted(name)}, but the question there is called "
                f"{quoted(mechanism.policy.name)}; a link of your own could tell who you are: do "
                "not answer, and compare the whole link with somebody else's"
            )
        if policy is not None and (differences := mechanism.differences(policy)):
            raise PromiseError(
                f'"{name}" is not the policy you named: {differences[0]}; do not answer, and ask '
                "who invited you"
            )
        if max_epsilon is not None:
            _check_budgets(mechanism, max_epsilon, one_way)
        about = mechanism.policy.about
        if state == "upcoming" and not about.opens:
            raise ClientError(f"{self.url} says that a question without a date has not opened yet")
        if about.state(datetime.now(UTC) - _LATE) == "closed":  # whoever says what
            state = "closed"
        return Asked(name, mechanism, state)

    def prepare(
        self, asked: Asked, answer: Answer, agree: bool = False, max_total: float | None = None
    ) -> Prepared:
        """Perturb an answer and write the report down; nothing is sent yet. It is drawn once: a
        collection whose report has been prepared gives it again, whatever the answer. `agree` is to
        the sum for the same items; `max_total`, here or of the client, is not lifted by it.
        """
        limits = [x for x in (_limit(max_total), self.max_total) if x is not None]
        most = min(limits, default=None)
        fresh = asked.mechanism.perturb(answer)  # also refuses an answer that is none
        with self.ledger.locked() as entries:
            entry = self._entry(entries, asked)
            repeated, agreed = entry is not None, 0
            if entry is None or entry["state"] == SHOWN:
                agreed = refuse_unless_agreed(
                    entries, asked.mechanism, most, math.inf if agree else 0
                )
            if entry is None:
                entry = new_entry(
                    self.origin, asked.name, asked.mechanism, os.urandom(ID_SIZE), fresh
                )
                entries.append(entry)
        sent = bytes.fromhex(entry["id"]), bytes.fromhex(entry["report"])
        return Prepared(asked, *sent, repeated, agreed, most)

    def unsent(self, asked: Asked) -> Prepared | None:
        """The report that was on its way to this collection when something went wrong: nobody knows
        whether it arrived. Send it again; its id makes sure that it is counted once.
        """
        with self.ledger.locked() as entries:
            entry = self._entry(entries, asked)
        if entry is None or entry["state"] != LEAVING:
            return None
        return Prepared(asked, bytes.fromhex(entry["id"]), bytes.fromhex(entry["report"]), True)

    def send(self, prepared: Prepared) -> Receipt:
        """Upload the report, again and again while the collector is away: it is counted once."""
        asked, mechanism = prepared.asked, prepared.asked.mechanism
        with self.ledger.locked() as entries:
            entry = self._entry(entries, asked)
            if entry is None:  # the ledger was removed meanwhile
                entry = new_entry(
                    self.origin, asked.name, asked.mechanism, prepared.id, prepared.report
                )
                entries.append(entry)
            if entry["state"] == SHOWN:
                refuse_unless_agreed(entries, mechanism, prepared.max_total, prepared.agreed)
                entry["state"] = LEAVING
        body = bytes.fromhex(entry["id"] + entry["report"])
        headers = upload_headers(mechanism.fingerprint)
        answer = self._request(self._path(asked.name) + "/reports", body, headers)
        try:
            receipt = Receipt(
                int(answer["accepted"]), int(answer["duplicates"]), body[:ID_SIZE], body[ID_SIZE:]
            )
        except (KeyError, TypeError, ValueError):
            receipt = Receipt(0, 0)
        if receipt.accepted + receipt.duplicates != 1:
            raise ClientError(
                "the collector did not say that it has the report; send it again later"
            )
        with self.ledger.locked() as entries:
            for other in entries:
                if other["id"] == entry["id"]:
                    other["state"] = COUNTED
        return receipt

    def answer(
        self,
        name: str,
        answer: Answer,
        agree: bool = False,
        max_total: float | None = None,
        policy: Policy | None = None,
        max_epsilon: float | Mapping[str, float] | None = None,
        fingerprint: str | None = None,
        one_way: bool = False,
    ) -> Receipt:
        """Fetch and verify a collection, perturb the answer and send the report.

        >>> client.answer("health", "flu", max_total=-1)
        Traceback (most recent call last):
        discreet.errors.DataError: max_total is a positive number, got -1
        """
        _limit(max_total)
        asked = self.collection(name, policy, max_epsilon, fingerprint, one_way)
        return self.send(self.prepare(asked, answer, agree, max_total))

    def _entry(self, entries: list[Entry], asked: Asked) -> Entry | None:
        return find_entry(entries, self.origin, asked.name, asked.mechanism)

    # ---- talk ------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return self.url + path_of(name)

    def _request(
        self, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        """The JSON that the collector answers; tried again while it is away or busy."""
        return self._network.request(url, body, headers or {})

    @cached_property
    def _network(self) -> Network:
        from discreet.device.network import Network  # loaded when there is something to send

        return Network(self.url, self.patience, self.waiting)


def invitation(url: str) -> tuple[str, str, str | None]:
    """Server, collection and pinned fingerprint of an invitation link, such as
    http://host/c/survey#fingerprint.

    >>> invitation("https://host/c/my%20survey")
    ('https://host', 'my survey', None)
    """
    parts = _split(url)
    path = re.fullmatch(r"(.*)/(?:c|v1/collections)/([^/]+)/?", parts.path) if parts else None
    if not parts or not path:
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
    return f"{parts.scheme}://{parts.netloc}{path[1]}", unquote(path[2]), pinned


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


def _check_budgets(mechanism: Mechanism, limit: float | Mapping[str, float], one_way: bool) -> None:
    policy = mechanism.policy
    if not policy.is_mutual and not one_way:
        raise PromiseError(
            "answers of this collection are protected one way only: that one is not yours may "
            "become known; do not answer, or accept that (--one-way, one_way=True)"
        )
    named = isinstance(limit, Mapping)  # whoever names an open item does not accept that it is open
    levels = [
        0.0 if level.budget.is_open and not named else budget
        for level, budget in zip(policy.levels, mechanism.guarantee().budgets, strict=True)
    ]
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


def _limit(most: float | None) -> float | None:
    number = isinstance(most, int | float) and not isinstance(most, bool)
    if most is not None and not (number and most > 0):
        raise DataError(f"max_total is a positive number, got {most!r}")
    return most
