"""Policies for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from discreet import Policy

budgets = st.sampled_from(["ln(4)", "ln(6)", "ln(3/2)", 1, 1.2, 2, 0.05, 0.7, 3.5, 8])


@st.composite
def policies(draw, max_levels=3, max_size=2, max_items=5, notions=("min", "avg"), **settings):
    """Small policies: every combination of budgets, sizes and notions."""
    t = draw(st.integers(1, max_levels))
    sizes = [draw(st.integers(1, max_size)) for _ in range(t)]
    while sum(sizes) > max_items:
        sizes[sizes.index(max(sizes))] -= 1
    rows = [
        (f"L{k}", draw(budgets), [f"{k}.{i}" for i in range(size)]) for k, size in enumerate(sizes)
    ]
    return Policy.from_levels(rows, notion=draw(st.sampled_from(notions)), **settings)
