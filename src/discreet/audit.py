"""The auditor's check of a raw mechanism file: nothing in it is trusted, and it can fail."""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.errors import GuaranteeError, MechanismError
from discreet.mechanism import Mechanism, fingerprint, read_document, refuse_strange
from discreet.policy import Policy


@dataclass
class Findings:
    """What is wrong with a mechanism file, and what it promises if nothing is."""

    fingerprint: str
    problems: list[str] = field(default_factory=list)
    promises: list[str] = field(default_factory=list)
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
    try:
        mechanism = Mechanism.from_body(body)
    except GuaranteeError as error:
        where = f" (part {error.part})" if error.part is not None else ""
        names = f" [levels {', '.join(error.levels)}]" if len(error.levels) == 1 else ""
        findings.problems.append(f"the guarantee does not hold: {error}{names}{where}")
        return findings
    try:
        mechanism.check_written_as(body)
    except MechanismError as error:
        findings.problems.append(str(error))
    findings.certificate = mechanism.certificate.sentence if mechanism.certificate else ""
    findings.promises = (
        mechanism.guarantee().sentences() if len(mechanism.policy.levels) <= 1000 else []
    )
    if policy is not None:
        differences = policy.differences(mechanism.policy)
        if policy.padding is not None and policy.padding != mechanism.padding:
            differences.append(f"padding is {mechanism.padding}, not {policy.padding}")
        findings.problems += [f"not the policy given: {text}" for text in differences]
    return findings
