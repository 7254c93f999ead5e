"""The auditor's check of a raw mechanism file: nothing in it is trusted, and it can fail."""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.check.document import fingerprint, read_document, refuse_strange
from discreet.errors import GuaranteeError, MechanismError
from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.policy.types import JsonObject
from discreet.promises.guarantee import Guarantee
from discreet.promises.words import in_words

MAX_SENTENCES = 1000  # levels whose promises are told one by one; with more, the extremes


@dataclass
class Findings:
    """What is wrong with a mechanism file, and what it promises if nothing is."""

    fingerprint: str
    problems: list[str] = field(default_factory=list)
    promises: list[str] = field(default_factory=list)
    caution: str = ""  # a warning that stands before the promises
    certificate: str = ""


def audit(path: str, policy: Policy | None = None) -> Findings:
    """Check the fingerprint, the guarantee and, if given, the policy; raises MechanismError if
    unreadable.
    """
    document = read_document(path)
    body = {key: value for key, value in document.items() if key != "fingerprint"}
    refuse_strange(body)
    findings = Findings(fingerprint(body))
    if document.get("fingerprint") != findings.fingerprint:
        findings.problems.append(
            "the content does not match the fingerprint: it was changed after it was made"
        )
    mechanism, problems = audit_body(body)
    findings.problems += problems
    if mechanism is None:
        return findings
    findings.certificate = mechanism.certificate.sentence if mechanism.certificate else ""
    guarantee = mechanism.guarantee()
    findings.caution = guarantee.caution
    few = len(mechanism.policy.levels) <= MAX_SENTENCES
    findings.promises = guarantee.sentences() if few else _in_short(guarantee)
    if policy is not None:
        differences = mechanism.differences(policy)
        findings.problems += [f"not the policy given: {text}" for text in differences]
    return findings


def audit_body(body: JsonObject) -> tuple[Mechanism | None, list[str]]:
    """The mechanism of a document, None if its guarantee does not hold, and what is wrong with it,
    in sentences; MechanismError if it cannot be read as one.
    """
    try:
        mechanism = Mechanism.from_canonical(body)
    except GuaranteeError as error:
        where = f" (part {error.part})" if error.part is not None else ""
        names = f" [levels {', '.join(error.levels)}]" if len(error.levels) == 1 else ""
        return None, [f"the guarantee does not hold: {error}{names}{where}"]
    problems = []
    try:
        mechanism.check_written_as(body)
    except MechanismError as error:
        problems.append(str(error))
    if not mechanism.encoding.unbiased(mechanism):
        problems.append(
            "the rows of a part name a person's own items with chances that differ: counts would "
            "be wrong for people with several items"
        )
    return mechanism, problems


def _in_short(guarantee: Guarantee) -> list[str]:
    """The promises of too many levels to be told one by one (none of them has explicit pairs)."""
    factors, names = guarantee.factors, guarantee.names
    least, most = (pick(range(len(names)), key=factors.__getitem__) for pick in (min, max))
    promise = (
        "having or not having an item changes the chance of any report"
        if guarantee.policy.kind.lists
        else "whoever sees your report can change their odds between an answer and any other"
    )
    return [
        f"{len(names):,} levels: {promise} by at most a factor that is the answer's level's, from "
        f'{in_words(factors[least])} (level "{names[least]}") to {in_words(factors[most])} '
        f'(level "{names[most]}").',
        *guarantee.list_promises(),
    ]
