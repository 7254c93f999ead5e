"""Trying a survey out: simulated people answer it, marked as what they are. A rehearsal has a name
and a fingerprint of its own, so that nothing of it can be counted with real reports.
"""

from __future__ import annotations

import http.client
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.mechanism import Mechanism
from discreet.policy import Policy
from discreet.wire import ID_SIZE, path_of, upload_headers

_TYPICAL = 4  # items of a simulated person who may name several, on average


def of(mechanism: Mechanism) -> Mechanism:
    """The same mechanism under the name of a rehearsal, open from now on."""
    policy = mechanism.policy
    about = replace(policy.about, opens="", closes="", rehearsal=True)
    renamed = replace(policy, name=f"{policy.name}-rehearsal", about=about)
    return replace(mechanism, policy=renamed)


def answers(policy: Policy, people: int) -> Sequence[Any]:
    """Made-up answers by index, with a power law; they have a seed, their perturbation never has.

    >>> from discreet.demo import example
    >>> len(answers(example("toy"), 100))
    100
    """
    rng = np.random.default_rng(2020)
    popularity = 1 / np.arange(1, policy.m + 1) ** 0.8
    order = rng.permutation(policy.m)

    def drawn(count: int) -> Any:
        return rng.choice(order, count, p=popularity / popularity.sum())

    if not policy.takes_sets:
        return drawn(people)
    sizes = np.minimum(rng.poisson(_TYPICAL, people), policy.m)
    items = drawn(int(sizes.sum()))
    return [sorted({*map(int, part)}) for part in np.split(items, np.cumsum(sizes)[:-1])]


def arrive(address: tuple[str, int], mechanism: Mechanism, given: Sequence[Any]) -> None:
    """People by the dozen: each answer is perturbed and sent over HTTP with a random id, like
    anyone's.
    """
    headers = upload_headers(mechanism.fingerprint)
    done, rng = 0, np.random.default_rng(1)
    while done < len(given):
        group = given[done : done + int(rng.integers(20, 120))]
        body = b"".join(
            secrets.token_bytes(ID_SIZE) + bytes(report)
            for report in mechanism.perturb_many(group, threads=1, indices=True)
        )
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(*address, timeout=10)
            connection.request("POST", path_of(mechanism.policy.name) + "/reports", body, headers)
            if connection.getresponse().status == 200:
                done += len(group)
            connection.close()
        time.sleep(0.2)
