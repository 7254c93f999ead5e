"""Proofs of lower bounds in a file beside the survey, for anybody to verify (set_proof.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from discreet.arrays.people import People
from discreet.designs.set_bound import budgets_with_sizes
from discreet.designs.set_proof import verify
from discreet.errors import DiscreetError, MechanismError
from discreet.mechanism import Mechanism
from discreet.policy.files import write_text
from discreet.policy.labels import quoted
from discreet.policy.sniff import parse_document
from discreet.survey import Survey


def save_proofs(survey: Survey, path: str) -> str | None:
    """Write the proofs that the certificates have beside the survey's file; the name of theirs,
    None if there are none.
    """
    kept = {q.name: q.mechanism.certificate for q in survey.listed}
    proofs = {name: made.proof for name, made in kept.items() if made and made.proof}
    if not proofs:
        return None
    beside = path.removesuffix(".json") + ".proof.json"
    document = {"survey": survey.fingerprint, "proofs": proofs}
    write_text(beside, json.dumps(document, indent=1) + "\n")
    return beside


def verify_proofs(survey: str, proofs: str, problems: list[str]) -> list[str]:
    """What the proofs beside a survey prove, in a sentence each; `problems` takes what is wrong."""
    made = Survey.load(survey)
    each = _read(proofs, made.fingerprint)
    told = []
    for name, proof in each.items():
        question = next((q for q in made.listed if q.name == name), None)
        if question is None or not isinstance(proof, dict):
            problems.append(f"{proofs}: {quoted(name)} is no question of the survey, or no proof")
            continue
        try:
            bound, value = verify_proof(question.mechanism, proof)
        except DiscreetError as error:
            problems.append(f"{name}: {error}")
            continue
        told.append(
            f"{name}: no mechanism with this guarantee has a total MSE / n below {bound:,.6g}; "
            f"this one has {value:,.6g}."
        )
    return told


def _read(path: str, fingerprint: str) -> Mapping[str, object]:
    """The proofs in a file, by question."""
    try:
        document = parse_document(Path(path).read_bytes())
    except FileNotFoundError:
        raise MechanismError(f"{path} does not exist") from None
    except OSError as error:
        raise MechanismError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        document = None
    proofs = document.get("proofs") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(proofs, dict) or not proofs:
        raise MechanismError(
            f'{path} holds no proofs; "discreet design --certify -o survey.json" writes them to '
            "survey.proof.json"
        )
    if document.get("survey") != fingerprint:
        raise MechanismError(
            f"{path} belongs to the survey with fingerprint "
            f"{quoted(document.get('survey'))}, not to this one"
        )
    return proofs


def verify_proof(mechanism: Mechanism, proof: Mapping[str, object]) -> tuple[float, float]:
    """The lower bound that a proof proves for a mechanism's guarantee, and the mechanism's own
    expected error, as its certificate says it; raises DiscreetError if the proof is of something
    else, or proves less than the certificate claims.
    """
    items, budgets = budgets_with_sizes(mechanism.policy)
    claimed = mechanism.certificate
    if claimed is None or claimed.lower_bound is None:
        raise DiscreetError("the mechanism claims no lower bound, so there is nothing to prove")
    if proof.get("items") != list(items) or proof.get("budgets") != list(budgets):
        raise DiscreetError(
            f"the proof is for {proof.get('items')} items at budgets {proof.get('budgets')}; the "
            f"mechanism has {list(items)} at {list(budgets)}"
        )
    bound = verify(proof)  # first: it refuses what is no proof
    sizes = People.at_shares(mechanism).sizes
    told = np.array(proof["sizes"], dtype=float)
    if told.shape != sizes.shape or not np.allclose(told, sizes, atol=1e-6):
        raise DiscreetError("the proof assumes other numbers of items per person")
    if bound < claimed.lower_bound * (1 - 1e-6):
        raise DiscreetError(
            f"the proof proves a lower bound of {bound:.6g}; the certificate claims "
            f"{claimed.lower_bound:.6g}"
        )
    return bound, claimed.value
