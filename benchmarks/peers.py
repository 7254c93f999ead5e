"""Run by the Python of .bench-venv: time of the peers' own mechanisms, as JSON. Arguments: n m eps;
or `accuracy` and a file of true counts: the total squared error / n of their estimates.
"""

from __future__ import annotations

import json
import sys
import time


def pure_ldp(n: int, m: int, eps: float) -> dict[str, float]:
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    client = UEClient(eps, m, use_oue=True, index_mapper=lambda x: x)
    server = UEServer(eps, m, use_oue=True, index_mapper=lambda x: x)
    few = min(n, max(200, 2_000_000 // m))
    start = time.perf_counter()
    reports = [client.privatise(i % m) for i in range(few)]
    middle = time.perf_counter()
    for report in reports:
        server.aggregate(report)
    end = time.perf_counter()
    return {
        "perturb": (middle - start) / few,
        "tally": (end - middle) / few,
        "bytes": reports[0].nbytes,
    }


def multi_freq_ldpy(n: int, m: int, eps: float) -> dict[str, float]:
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    UE_Client(0, m, eps)  # compiles
    few = min(n, max(200, 20_000_000 // m))
    start = time.perf_counter()
    reports = [UE_Client(i % m, m, eps) for i in range(few)]
    middle = time.perf_counter()
    UE_Aggregator_MI(reports, eps)
    end = time.perf_counter()
    return {
        "perturb": (middle - start) / few,
        "tally": (end - middle) / few,
        "bytes": reports[0].nbytes,
    }


def multi_freq_ldpy_subset(n: int, m: int, eps: float) -> dict[str, float]:
    """Subset selection; of the peers only this one has it."""
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client

    SS_Client(0, m, eps)  # compiles
    few = min(n, max(200, 2_000_000 // m))
    start = time.perf_counter()
    reports = [SS_Client(i % m, m, eps) for i in range(few)]
    middle = time.perf_counter()
    SS_Aggregator_MI(reports[:2000], m, eps)
    end = time.perf_counter()
    tally = (end - middle) / min(few, 2000)
    return {"perturb": (middle - start) / few, "tally": tally, "bytes": reports[0].nbytes}


def opendp(n: int, m: int, eps: float) -> dict[str, float]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    size = -(-m // 8)
    domain, metric = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    # RAPPOR's flipping: Pr[flip] = f / 2 = 1 / (e^{eps/2} + 1)
    measure = dp.m.make_randomized_response_bitvec(
        domain, metric, f=2 / (2.718281828459045 ** (eps / 2) + 1)
    )
    data = [bytes(b == i // 8 and 1 << (i % 8) for b in range(size)) for i in range(min(m, 64))]
    few = min(n, max(20, 200_000 // m))
    start = time.perf_counter()
    reports = [measure(data[i % len(data)]) for i in range(few)]
    middle = time.perf_counter()
    return {"perturb": (middle - start) / few, "bytes": len(bytes(reports[0]))}


def accuracy(truth: list[int], eps: float) -> dict[str, float]:
    """Total squared error / n of one run each, before any clipping where the peer lets us."""
    import numpy as np
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    m, n = len(truth), sum(truth)
    answers = [i for i, count in enumerate(truth) for _ in range(count)]
    e, real = np.exp(eps), np.array(truth)

    def error(seen: object, p: float, q: float) -> float:
        return float((((np.asarray(seen) - n * q) / (p - q) - real) ** 2).sum() / n)

    k = int(max(1, np.rint(m / (e + 1))))
    own = k * e / (k * e + m - k)
    subset = np.bincount(np.concatenate([SS_Client(a, m, eps) for a in answers]), minlength=m)
    grr = np.bincount([GRR_Client(a, m, eps) for a in answers], minlength=m)
    oue = np.sum([UE_Client(a, m, eps, True) for a in answers], axis=0)
    client = UEClient(eps, m, use_oue=True, index_mapper=lambda x: x)
    server = UEServer(eps, m, use_oue=True, index_mapper=lambda x: x)
    for a in answers:
        server.aggregate(client.privatise(a))
    unary = server.estimate_all(range(m))
    return {
        "multi-freq-ldpy GRR": error(grr, e / (e + m - 1), 1 / (e + m - 1)),
        "multi-freq-ldpy OUE": error(oue, 0.5, 1 / (e + 1)),
        "multi-freq-ldpy SS": error(subset, own, (k - own) / (m - 1)),
        "pure-ldp OUE": float(((np.asarray(unary) - real) ** 2).sum() / n),
    }


def surveys(truths: list[list[int]], eps: float, repeats: int) -> dict[str, float]:
    """Total squared error / n over all questions, before clipping, of multi-freq-ldpy's SPL (every
    question at a share of the budget) and SMP (one question drawn), with subset selection.
    """
    import numpy as np
    from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_SS_Client
    from multi_freq_ldpy.mdim_freq_est.SPL_solution import SPL_SS_Client

    n, sizes = sum(truths[0]), [len(truth) for truth in truths]
    rng = np.random.default_rng(0)
    columns = [np.repeat(np.arange(len(truth)), truth) for truth in truths]

    def counts(reports: list[np.ndarray], m: int, eps: float, share: float) -> np.ndarray:
        k = len(reports[0])
        own = k * np.exp(eps) / (k * np.exp(eps) + m - k)
        other = (k - own) / (m - 1)
        seen = np.bincount(np.concatenate(reports), minlength=m)
        return (seen - len(reports) * other) / (own - other) / share

    def error(split: bool) -> float:
        people = list(zip(*(rng.permutation(column) for column in columns), strict=True))
        by_question: list[list[np.ndarray]] = [[] for _ in sizes]
        for person in people:
            if split:
                for mine, report in zip(
                    by_question, SPL_SS_Client(person, sizes, len(sizes), eps), strict=True
                ):
                    mine.append(report)
            else:
                place, report = SMP_SS_Client(person, sizes, len(sizes), eps)
                by_question[place].append(report)
        total = 0.0
        for truth, m, reports in zip(truths, sizes, by_question, strict=True):
            budget = eps / len(sizes) if split else eps
            total += ((counts(reports, m, budget, len(reports) / n) - truth) ** 2).sum() / n
        return float(total)

    return {
        name: float(np.mean([error(split) for _ in range(repeats)]))
        for name, split in (("SPL", True), ("SMP", False))
    }


def hashing(m: int, eps: float, few: int = 200) -> dict[str, float]:
    """Seconds per report of the peers' decoders of local hashing, which look at every item."""
    import xxhash

    # both were written for an xxhash that took text
    hash_ = xxhash.xxh32
    xxhash.xxh32 = lambda x, seed=0: hash_(x.encode() if isinstance(x, str) else x, seed=seed)
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    client = LHClient(eps, m, use_olh=True, index_mapper=lambda x: x)
    server = LHServer(eps, m, use_olh=True, index_mapper=lambda x: x)
    reports = [client.privatise(i % m) for i in range(few)]
    start = time.perf_counter()
    for report in reports:
        server.aggregate(report)
    middle = time.perf_counter()
    others = [LH_Client(i % m, m, eps) for i in range(few)]
    ready = time.perf_counter()
    LH_Aggregator_MI(others, m, eps)
    end = time.perf_counter()
    return {
        "pure-ldp, local hashing": (middle - start) / few,
        "multi-freq-ldpy, local hashing": (end - ready) / few,
    }


if __name__ == "__main__":
    if sys.argv[1] == "hashing":
        print(json.dumps(hashing(int(sys.argv[2]), float(sys.argv[3]))))
        sys.exit()
    if sys.argv[1] == "surveys":
        print(json.dumps(surveys(json.loads(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))))
        sys.exit()
    if sys.argv[1] == "accuracy":
        print(json.dumps(accuracy(json.loads(sys.argv[2]), float(sys.argv[3]))))
        sys.exit()
    n, m, eps = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    found = {}
    for peer in (pure_ldp, multi_freq_ldpy, multi_freq_ldpy_subset, opendp):
        try:
            found[peer.__name__] = peer(n, m, eps)
        except Exception as error:
            found[peer.__name__] = {"error": f"{type(error).__name__}: {error}"[:200]}
    print(json.dumps(found))
