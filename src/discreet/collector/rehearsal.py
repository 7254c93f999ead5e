"""A rehearsal of a survey: simulated people answer it. A rehearsal has its own name and
fingerprint, so its reports can never be counted with real ones.
"""

from __future__ import annotations

import http.client
import secrets
import ssl
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from discreet.collector.lan import OwnCertificate
from discreet.data.examples import made_up_answers
from discreet.device.wire import ID_SIZE, collection_path, front, upload_headers
from discreet.mechanism import Mechanism
from discreet.survey import Survey
from discreet.survey.about import REHEARSAL


def rehearse(survey: Survey) -> Survey:
    """Make the survey of the rehearsal: the same questions under another name, open from now on.
    Each question says that it is a rehearsal, which gives its mechanism another fingerprint.
    """
    about = replace(survey.about, opens="", closes="", rehearsal=True)
    name, more = f"{survey.name}-rehearsal", (survey.public, survey.translations)
    questions = [replace(q, mechanism=_marked(q.mechanism)) for q in survey.listed]
    return Survey(name, questions, about, survey.answers, *more)


def _marked(mechanism: Mechanism) -> Mechanism:
    question = REHEARSAL + mechanism.policy.question
    return replace(mechanism, policy=replace(mechanism.policy, question=question))


def made_up_contents(survey: Survey, people: int) -> list[bytes]:
    """The reports of simulated people, each behind what stands before it in its frame: everyone
    answers the questions that are drawn, and the public ones.
    """
    rng, contents = np.random.default_rng(1), []
    drawn = rng.random((people, len(survey.listed))).argsort(axis=1)[:, : survey.answers]
    group = [rng.integers(len(public.items), size=people) for public in survey.public]
    for place, question in enumerate(survey.listed):
        who = np.flatnonzero((drawn == place).any(axis=1))
        given = made_up_answers(question.policy, len(who))
        reports = question.mechanism.perturb_many(given, threads=1, indices=True)
        for person, report in zip(who, reports, strict=True):
            answers = [int(places[person]) for places in group]
            contents.append(front(survey, place, answers) + report.tobytes())
    return [contents[k] for k in rng.permutation(len(contents))]


def arrive(
    address: tuple[str, int], survey: Survey, people: int, certificate: OwnCertificate | None = None
) -> None:
    """Send the reports of so many simulated people over HTTP with random ids, like real ones, some
    dozens at a time.
    """
    headers, contents = upload_headers(survey.fingerprint), made_up_contents(survey, people)
    done, rng = 0, np.random.default_rng(1)
    while done < len(contents):
        some = contents[done : done + int(rng.integers(20, 120))]
        body = b"".join(secrets.token_bytes(ID_SIZE) + content for content in some)
        with suppress(OSError, http.client.HTTPException):
            connection = _connection(address, certificate)
            connection.request("POST", collection_path(survey.name) + "/reports", body, headers)
            if connection.getresponse().status == 200:
                done += len(some)
            connection.close()
        time.sleep(0.2)


def _connection(
    address: tuple[str, int], certificate: OwnCertificate | None
) -> http.client.HTTPConnection:
    if certificate is None:
        return http.client.HTTPConnection(*address, timeout=10)
    context = ssl.create_default_context(cafile=certificate.cert)
    context.check_hostname = False  # the address is any of this machine's
    return http.client.HTTPSConnection(*address, timeout=10, context=context)
