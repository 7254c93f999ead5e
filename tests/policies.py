"""Policies that several rooms are tried with."""

import discreet as d


def three_levels(eps=1.0, sizes=(5, 5, 90), **settings_):
    names = ("high", "middle", "low")
    budgets = (eps, round(1.2 * eps, 6), 2 * eps)
    rows = [
        (n, e, [f"{n}{i}" for i in range(k)]) for n, e, k in zip(names, budgets, sizes, strict=True)
    ]
    return d.Policy.from_levels(rows, **settings_)
