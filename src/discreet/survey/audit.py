"""The auditor's check of a raw survey file: nothing in it is trusted, and it can fail."""

from __future__ import annotations

from discreet.check.document import read_document, refuse_strange
from discreet.errors import GuaranteeError, MechanismError
from discreet.policy.types import JsonObject
from discreet.promises.audit import Findings, audit_body
from discreet.promises.audit import audit as audit_mechanism
from discreet.survey.reading import ALL, AUTO, SurveyFile, load
from discreet.survey.survey import Survey

_CHANGED = "the content does not match the fingerprint: it was changed after it was made"


def audit(path: str, expected: str | None = None) -> Findings:
    """Check the fingerprint, every guarantee and, if given, the survey file that it was made from;
    raises MechanismError if unreadable. A mechanism file is checked alone.
    """
    document = read_document(path)
    draft = load(expected) if expected else None
    if "policy" in document:
        return audit_mechanism(path, draft.question() if draft else None)
    body = {key: value for key, value in document.items() if key != "fingerprint"}
    refuse_strange(body)
    findings = Findings(Survey.fingerprint_body(body))
    if document.get("fingerprint") != findings.fingerprint:
        findings.problems.append(_CHANGED)
    _audit_questions(body, findings)
    if findings.problems and findings.problems != [_CHANGED]:
        return findings
    try:
        survey = Survey.from_canonical(body)
    except (MechanismError, GuaranteeError) as error:
        findings.problems.append(str(error))
        return findings
    try:
        survey.check_written_as(body)
    except MechanismError as error:
        findings.problems.append(str(error))
    promise = survey.promise()
    findings.caution, findings.promises = promise.caution, promise.sentences()
    findings.certificate = "; ".join(
        (f"{q.name}: " if survey.has_several else "") + q.mechanism.certificate.sentence
        for q in survey.listed
        if q.mechanism.certificate
    )
    if draft is not None:
        findings.problems += [f"not the survey given: {text}" for text in unlike(survey, draft)]
    return findings


def _audit_questions(body: JsonObject, findings: Findings) -> None:
    rows = body.get("questions")
    for row in rows if isinstance(rows, list) else ():
        inner = row.get("mechanism") if isinstance(row, dict) else None
        if not isinstance(inner, dict):
            raise MechanismError("the survey is not complete: a question has no mechanism")
        several = len(rows or ()) > 1
        where = f"{row.get('name')}: " if several else ""
        findings.problems += [where + text for text in audit_body(inner)[1]]


def unlike(survey: Survey, draft: SurveyFile) -> list[str]:
    """In what a survey differs from the file that it should be made from."""
    sentences = []
    if draft.named and survey.name != draft.name:
        sentences.append(f'name is "{survey.name}", not "{draft.name}"')
    wanted = len(draft.policies) if draft.answers == ALL else draft.answers
    if wanted not in (AUTO, survey.answers):
        sentences.append(f"answers is {survey.answers}, not {wanted}")
    policies = draft.policies
    if list(policies) != list(survey.questions):
        return [*sentences, f"the questions are {', '.join(survey.questions)}"]
    for question in survey.listed:
        policy = policies[question.name].divided(survey.answers)
        where = f"{question.name}: " if len(policies) > 1 else ""
        sentences += [where + text for text in question.mechanism.differences(policy)]
        if question.of != draft.crosses.get(question.name):
            sentences.append(f"{question.name} crosses other questions")
    same = Survey(
        survey.name,
        survey.listed,
        draft.about,
        survey.answers,
        draft.public,
        draft.translations,
    )
    return sentences + same.differences(survey)
