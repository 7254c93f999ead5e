"""A rehearsal of a survey: simulated people answer it. A rehearsal has its own name and
fingerprint, so its reports can never be counted with real ones.
"""

from __future__ import annotations

import http.client
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from discreet.device.wire import ID_SIZE, path_of, upload_headers
from discreet.mechanism import Mechanism


def rehearse(mechanism: Mechanism) -> Mechanism:
    """Make the mechanism of the rehearsal: the same parts under another name, open from now on."""
    policy = mechanism.policy
    about = replace(policy.about, opens="", closes="", rehearsal=True)
    renamed = replace(policy, name=f"{policy.name}-rehearsal", about=about)
    return replace(mechanism, policy=renamed)


def arrive(address: tuple[str, int], mechanism: Mechanism, given: Sequence[object]) -> None:
    """Perturb answers and send the reports over HTTP with random ids, like real ones, some dozens
    at a time.
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
