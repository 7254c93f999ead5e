"""Run by the Python of .bench-venv: time of the peers' own unary encodings, as JSON. Arguments: n m eps."""

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


if __name__ == "__main__":
    n, m, eps = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    found = {}
    for peer in (pure_ldp, multi_freq_ldpy, opendp):
        try:
            found[peer.__name__] = peer(n, m, eps)
        except Exception as error:
            found[peer.__name__] = {"error": f"{type(error).__name__}: {error}"[:200]}
    print(json.dumps(found))
