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
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit

from discreet.device.answers import Answers, by_name, perturb_one, public_places
from discreet.device.ledger import (
    COUNTED,
    DRAWN,
    LEAVING,
    SHOWN,
    Entry,
    Ledger,
    find_entries,
    new_entry,
    refuse_unless_agreed,
    write_report,
)
from discreet.device.pins import PromiseError, check_budgets, read_limit, unlike
from discreet.device.randomness import SystemRandomness
from discreet.device.wire import collection_path, front, front_size, origin, upload_headers
from discreet.errors import ClientError, DataError, short_fingerprint
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.labels import cleaned, is_prose, quoted
from discreet.policy.lazy import cached_property
from discreet.survey import Question, Survey

if TYPE_CHECKING:
    from discreet.device.network import Network
    from discreet.policy.types import Answer, JsonObject

STATES = ("upcoming", "open", "closed")  # of a collection
_LATE = timedelta(hours=1)  # after its end a survey is closed: clocks may differ


@dataclass(frozen=True)
class Asked:
    """A collection as this client has verified it."""

    name: str
    survey: Survey
    state: str  # "upcoming", "open" or "closed", as the collector says
    one_way: bool  # whether the person accepts protection that is one-way

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of a survey of one question."""
        return self.survey.mechanism


@dataclass(frozen=True)
class Frame:
    """What is sent for one question: an id, and a report with what stands before it."""

    question: str
    id: bytes
    content: bytes = field(repr=False)
    report: bytes = field(repr=False)


@dataclass(frozen=True)
class Prepared:
    """What will be sent if `send` is called; nothing has left yet."""

    asked: Asked
    frames: tuple[Frame, ...]
    repeated: bool  # drawn before for this very survey, whatever the answers were then
    agreed: int = 0  # earlier answers about the same items to which the person agreed
    max_total: float | None = None  # the sum over all surveys that the person allows

    @property
    def report(self) -> bytes:
        """The report, of a survey in which one question is answered."""
        (frame,) = self.frames
        return frame.report


@dataclass(frozen=True)
class Receipt:
    """What the collector acknowledged: how many reports it accepted, and how many it had counted
    before.
    """

    accepted: int
    duplicates: int
    frames: tuple[Frame, ...] = field(default=(), repr=False, compare=False)


# More than 400 lines: the steps of one answer, in their order, each with an example.
class Client:
    """Answers at a collector. `max_total` caps the sum of the budgets over all surveys in the
    ledger, whatever they ask about: labels can be rewritten, a sum cannot. `waiting` is called
    with the reason before every new attempt while the collector is away or busy.

    `answer` does it all; `collection`, `draw`, `prepare` and `send` are its steps. The examples
    below are answers at a collector whose address is `url`, such as "https://survey.example.org".

    >>> client = Client(url)
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
        self.max_total = read_limit(max_total)

    # ---- ask -------------------------------------------------------------------------------------

    def collection(
        self,
        name: str,
        policy: Survey | Policy | None = None,
        max_epsilon: float | Mapping[str, float] | None = None,
        fingerprint: str | None = None,
        one_way: bool = False,
    ) -> Asked:
        """Fetch a collection and verify its guarantees exactly; refuse it unless it is what the
        caller pins: a survey or the policy of its only question, the largest budget (of all items,
        or per item), a fingerprint. With a largest budget, one-way protection is refused unless
        `one_way` accepts it: then the budget, like `max_total`, limits by how much the odds of a
        protected answer can be raised.

        >>> client.collection("toy-survey", max_epsilon=2).state
        'open'
        >>> client.collection("toy-survey", max_epsilon=1)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        discreet.device.pins.PromiseError: "HIV" has budget 1.386 in this collection, ...
        """
        answer = self._request(self._path(name))
        try:
            document, state = dict(answer["survey"]), STATES[STATES.index(answer["state"])]
        except (KeyError, TypeError, ValueError):
            raise ClientError(
                f"{self.url} does not answer like a collector; check the address"
            ) from None
        survey = Survey.from_document(document)
        if fingerprint is not None and survey.fingerprint != fingerprint:
            raise PromiseError(
                f"the invitation is for fingerprint {short_fingerprint(fingerprint)}… but this is "
                f"{short_fingerprint(survey.fingerprint)}…; do not answer, and ask who invited you"
            )
        if survey.name != name:
            raise PromiseError(
                f"the link is for {quoted(name)}, but the survey there is called "
                f"{quoted(survey.name)}; a link that only you have could tell who you are: do not "
                "answer, and compare the whole link with somebody else's"
            )
        if policy is not None and (differences := unlike(survey, policy)):
            raise PromiseError(
                f'"{name}" is not what you named: {differences[0]}; do not answer, and ask who '
                "invited you"
            )
        if max_epsilon is not None:
            check_budgets(survey, max_epsilon, one_way)
        if state == "upcoming" and not survey.about.opens:
            raise ClientError(f"{self.url} says that a survey without a date has not opened yet")
        if survey.about.state(datetime.now(UTC) - _LATE) == "closed":  # whoever says what
            state = "closed"
        return Asked(name, survey, state, one_way)

    def draw(self, asked: Asked) -> tuple[Question, ...]:
        """The questions that this device answers. The draw does not depend on the answers. It is
        written down before anything is shown, because a device that could draw again would reveal
        more.

        >>> [question.name for question in client.draw(client.collection("toy-survey"))]
        ['question']
        """
        survey = asked.survey
        with self.ledger.locked() as entries:
            return tuple(survey.question(e["question"]) for e in self._drawn(entries, survey))

    def _drawn(self, entries: list[Entry], survey: Survey) -> list[Entry]:
        """The entries of the drawn questions, made if there are none yet."""
        mine = find_entries(entries, self.origin, survey)
        if not mine:
            for place in survey.draw(SystemRandomness()):
                entries.append(new_entry(self.origin, survey, survey.listed[place]))
            mine = find_entries(entries, self.origin, survey)
        return mine

    def prepare(
        self,
        asked: Asked,
        answer: Answer | Answers,
        agree: bool = False,
        max_total: float | None = None,
    ) -> Prepared:
        """Perturb the answers to the drawn questions and write the reports down; nothing is sent
        yet. `answer` is that of the only question, or a mapping by the names of the questions,
        public ones too; answers to questions that were not drawn are not looked at.

        A report is drawn once: a survey whose reports have been prepared gives them again,
        whatever the answers. `agree` is to the sum for the same items; `max_total`, here or of the
        client, is not lifted by it.

        >>> asked = client.collection("toy-survey")
        >>> prepared = client.prepare(asked, "headache")
        >>> client.prepare(asked, "HIV").report == prepared.report
        True
        """
        limits = [x for x in (read_limit(max_total), self.max_total) if x is not None]
        most, survey = min(limits, default=None), asked.survey
        answers = by_name(survey, answer)
        group = public_places(survey, answers)
        if survey.answers < len(survey.listed):
            self.draw(asked)  # written down even if the answers are refused: nobody draws again
        with self.ledger.locked() as entries:
            mine = self._drawn(entries, survey)
            drawn = [entry for entry in mine if entry["state"] == DRAWN]
            # perturbing also refuses an answer that is none, before anything is written
            reports = {e["question"]: perturb_one(survey, e["question"], answers) for e in mine}
            agreed = 0
            if any(entry["state"] in (DRAWN, SHOWN) for entry in mine):
                agreed = refuse_unless_agreed(
                    entries, mine, survey, most, math.inf if agree else 0, asked.one_way
                )
            for entry in drawn:
                place, report = reports[entry["question"]]
                mechanism = survey.listed[place].mechanism
                write_report(entry, mechanism, front(survey, place, group), report)
            frames = tuple(_frame(survey, entry) for entry in mine)
        return Prepared(asked, frames, not drawn, agreed, most)

    def unsent(self, asked: Asked) -> Prepared | None:
        """The reports that were on their way to this collection when something went wrong: nobody
        knows whether they arrived. Send them again; their ids make sure that they are counted once.

        >>> client.unsent(client.collection("toy-survey")) is None
        True
        """
        with self.ledger.locked() as entries:
            mine = find_entries(entries, self.origin, asked.survey)
        if not any(entry["state"] == LEAVING for entry in mine):
            return None
        ready = [entry for entry in mine if entry["state"] != DRAWN]
        return Prepared(asked, tuple(_frame(asked.survey, entry) for entry in ready), True)

    def send(self, prepared: Prepared) -> Receipt:
        """Upload the reports one by one, in random order, again and again while the collector is
        away: each is counted once. Nothing in them says that they belong together. Someone who sees
        the connections can guess it from address, time and public answers; `promise` covers that.

        >>> prepared = client.prepare(client.collection("toy-survey"), "headache")
        >>> client.send(prepared)
        Receipt(accepted=1, duplicates=0)
        >>> client.send(prepared)
        Receipt(accepted=0, duplicates=1)
        """
        asked, survey = prepared.asked, prepared.asked.survey
        with self.ledger.locked() as entries:
            mine = self._restored(entries, prepared)
            if any(entry["state"] == SHOWN for entry in mine):
                refuse_unless_agreed(
                    entries, mine, survey, prepared.max_total, prepared.agreed, asked.one_way
                )
            for entry in mine:
                if entry["state"] == SHOWN:
                    entry["state"] = LEAVING
            frames = [_frame(survey, entry) for entry in mine]
        accepted = duplicates = 0
        rest, randomness = list(frames), SystemRandomness()
        while rest:
            frame = rest.pop(randomness.below(len(rest)))
            answer = self._upload(asked, frame)
            accepted, duplicates = accepted + answer[0], duplicates + answer[1]
        return Receipt(accepted, duplicates, tuple(frames))

    def _restored(self, entries: list[Entry], prepared: Prepared) -> list[Entry]:
        """The entries of what was prepared; made again if the ledger was removed meanwhile."""
        survey = prepared.asked.survey
        mine = find_entries(entries, self.origin, survey)
        if not mine:
            for frame in prepared.frames:
                entry = new_entry(self.origin, survey, survey.question(frame.question))
                entry |= {"id": frame.id.hex(), "report": frame.content.hex(), "state": SHOWN}
                entries.append(entry)
            mine = find_entries(entries, self.origin, survey)
        return [entry for entry in mine if entry["state"] != DRAWN]

    def _upload(self, asked: Asked, frame: Frame) -> tuple[int, int]:
        headers = upload_headers(asked.survey.fingerprint)
        body = frame.id + frame.content
        answer = self._request(self._path(asked.name) + "/reports", body, headers)
        try:
            accepted, duplicates = int(answer["accepted"]), int(answer["duplicates"])
        except (KeyError, TypeError, ValueError):
            accepted = duplicates = 0
        if accepted + duplicates != 1:
            raise ClientError("the collector did not acknowledge the report; send it again later")
        with self.ledger.locked() as entries:
            for entry in entries:
                if entry["id"] == frame.id.hex():
                    entry["state"] = COUNTED
        return accepted, duplicates

    def answer(
        self,
        name: str,
        answer: Answer | Answers,
        agree: bool = False,
        max_total: float | None = None,
        policy: Survey | Policy | None = None,
        max_epsilon: float | Mapping[str, float] | None = None,
        fingerprint: str | None = None,
        one_way: bool = False,
    ) -> Receipt:
        """Fetch and verify a collection, perturb the answers and send the reports.

        >>> client.answer("toy-survey", "headache", max_total=2)
        Receipt(accepted=1, duplicates=0)
        """
        read_limit(max_total)
        asked = self.collection(name, policy, max_epsilon, fingerprint, one_way)
        return self.send(self.prepare(asked, answer, agree, max_total))

    # ---- talk ------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return self.url + collection_path(name)

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
    http://host/c/survey#fingerprint. A link has one spelling. Anything more in it could make it
    unique to one person.

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
            "the part after # in the invitation is not a fingerprint: it has 64 characters 0-9 and "
            "a-f"
        )
    name = unquote(path[2])
    # as people type it, as `serve` prints it and as browsers escape it
    spelled = path[2] in (name, quote(name, safe=""), quote(name, safe="!'()*"))
    where = url.partition("#")[0]
    if not spelled or not where.endswith(path[2]) or "//" in parts.path or "@" in parts.netloc:
        raise PromiseError(
            "the link has more in it than the survey and its fingerprint; a link that only you "
            "have could tell who you are: do not answer, and compare the whole link with somebody "
            "else's"
        )
    return f"{parts.scheme}://{parts.netloc}{path[1]}", name, pinned


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


def _frame(survey: Survey, entry: Entry) -> Frame:
    content = bytes.fromhex(entry["report"])
    report = content[front_size(survey) :]
    return Frame(entry["question"], bytes.fromhex(entry["id"]), content, report)
