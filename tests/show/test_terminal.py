"""Tables for the terminal, cell by cell; what users wrote stays text."""

import math
from dataclasses import replace

import pytest
from rich.console import Console
from small import small

import discreet as d
from discreet.data.examples import example
from discreet.estimates.fakes import Reach
from discreet.estimates.simulation import Score
from discreet.estimates.weights import Weighting
from discreet.show import facts, forecasts, layout, terminal


@pytest.fixture
def printed(capsys):
    """The lines that a function prints, blanks and rules left out."""

    def of(draw, *arguments):
        draw(*arguments)
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        return [line for line in lines if line.strip("─")]

    return of


def test_a_pipe_has_a_fixed_width(capsys):
    assert layout.console().width == 140
    for count in (132, 133):
        layout.console().print("[bold]x[/bold] 'a' 1 " + "y" * count)
    assert capsys.readouterr().out == f"x 'a' 1 {'y' * 132}\nx 'a' 1 \n{'y' * 133}\n"


def test_names_are_to_the_left_and_numbers_to_the_right(capsys):
    terminal.estimate(estimate_of(1), [{**KNOWN, "item": "a name"}], 0.9)
    _, _, heads, _, row, *_ = capsys.readouterr().out.splitlines()
    assert row.index("a name") == heads.index("item")
    assert row.index("1,234") + len("1,234") == heads.index("people") + len("people")


def facts_of(mechanism, **changes):
    return {**facts.describe(mechanism), "name": "a [b] survey", "published": "", **changes}


def test_a_mechanism(printed):
    mechanism = small("bits")
    ratios = (("4", 0.5), ("[red]4.1", 2.0))
    levels = [
        {"level": level, "items": 3000, "epsilon": level[-1], "factor": 7.50001, "variance": 1 / 3,
         "plain_variance": {"ss": 2 / 3}, "against_best_plain": ratio}
        for level, ratio in ratios
    ]  # fmt: skip
    totals = {
        "subset": {"expected": 43.4812, "worst_case": 54.95},
        "ss": {"expected": 0.2385, "worst_case": 0.2385},
    }
    facts = facts_of(mechanism, levels=levels, total_mse=totals, promises=["[red]One", "Two"])
    assert printed(terminal.mechanism, mechanism, facts) == [
        "a [b] survey: 7 items in 2 levels, single answers, notion min",
        "model subset at the uniform prior; a report has 2 bytes (bits: independent bits)",
        "part 4: part, own, other 4.1: part, own, other",
        "0 0.6000, 0.7000, 0.4000 0.3000, 0.4000, 0.2000",
        "1 0.3000, silent 0.2000, 0.6000, 0.3000",
        "2 0.1000, 0.5000, 0.2500 0.5000, silent",
        "Each cell: the chance that an answer of this level uses the part; then the chances that "
        "the report names it, and any other item.",
        "level items epsilon promised factor variance / person with ss against plain LDP",
        "4 3,000 4 7.51 0.3333 0.6667 2.00 x better",
        "[red]4.1 3,000 1 7.51 0.3333 0.6667 2.00 x worse",
        "The other levels gain at the expense of [red]4.1; a weight in the policy changes that.",
        "total MSE / n expected worst case",
        "subset 43.48 54.95",
        "ss (plain LDP) 0.2385 0.2385",
        "Guarantee, checked exactly: plain LDP with epsilon 2.015 (at most 4.1 by the policy), and "
        "for each level:",
        "• [red]One",
        "• Two",
        Reach.for_mechanism(mechanism).sentence(mechanism),
    ]


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(0.9949, "1.01 x better"), (0.995, "the same"), (1.0049, "the same"), (1.005, "x worse")],
)
def test_what_is_as_good_is_called_the_same(printed, ratio, verdict):
    """And nobody pays where all levels lose, or none."""
    mechanism = small("bits")
    facts = facts_of(mechanism)
    levels = [{**row, "against_best_plain": ratio} for row in facts["levels"]]
    lines = printed(terminal.mechanism, mechanism, {**facts, "levels": levels})
    assert sum(line.endswith(verdict) for line in lines) == 2
    assert not any("at the expense of" in line for line in lines)


def test_other_words_of_a_mechanism(printed):
    mechanism = small("ticket", "one", 2)
    certificate = {"sentence": "the best possible"}
    changes = {"report_bytes": 1, "ldp_bound": None, "promises": [], "certificate": certificate}
    lines = printed(terminal.mechanism, mechanism, facts_of(mechanism, warnings=[], **changes))
    assert lines[:3] == [
        "a [b] survey: 7 items in 2 levels, sets of answers, padding 2, notion min",
        "model subset at the uniform prior; a report has 1 byte (ticket: "
        f"{mechanism.encoding.summary})",
        "Its expected error: the best possible.",
    ]
    assert "(there is no bound), and for each level:" in lines[-3]
    assert lines[-2] == "• (too many levels to list; see --json or mechanism.guarantee().pairs)"


def test_a_level_is_text_and_a_long_promise_is_one_line(printed):
    policy = d.Policy.from_levels([("[red]a", 1, ["x", "y"]), ("[/b]", 2, ["z", "u"])])
    mechanism = d.design(policy, "opt1")
    lines = printed(
        terminal.mechanism, mechanism, facts_of(mechanism, promises=["word " * 50 + "end"])
    )
    assert lines[2] == "part [red]a: part, own, other [/b]: part, own, other"
    assert lines[-2] == "• " + "word " * 50 + "end"
    assert '("[/b]") people' in lines[-1]


def test_a_certificates_note_is_text(printed):
    mechanism = small("bits")
    facts = facts_of(mechanism, certificate={"sentence": "not certified ([/x] [red]y)"})
    assert printed(terminal.mechanism, mechanism, facts)[2] == (
        "Its expected error: not certified ([/x] [red]y)."
    )


def test_warnings_are_text_behind_the_title(printed):
    mechanism = small("bits")
    warnings = ["[red]one [/x]", "word " * 50 + "end"]
    lines = printed(terminal.mechanism, mechanism, facts_of(mechanism, warnings=warnings))
    assert lines[1:3] == [f"Warning: {warning}" for warning in warnings]
    assert printed(forecasts.plan, forecast(warnings=warnings))[1:3] == lines[1:3]


def test_warnings_are_yellow_on_a_terminal(monkeypatch, capsys):
    colours = Console(force_terminal=True, color_system="standard", highlight=False, width=140)
    monkeypatch.setattr(forecasts, "console", lambda: colours)
    forecasts.plan(forecast(warnings=["too much"]))
    assert "\x1b[33mWarning: too much\x1b[0m" in capsys.readouterr().out


def forecast(**changes):
    def needs(people):
        return {"users_for_target": people} if changes.get("target_error") else {}

    row = {"stderr_count": 1234.56, "stderr_share": 0.0123456, "smallest_share": 0.02}
    return {
        "name": "a [b] survey", "users": 10_000, "about": "population", "prior": "uniform",
        "target_error": None,
        "rows": [
            {"model": "subset", "level": "[red]high", **row, **needs(5000)},
            {"model": "subset", "level": "low", **row, **needs(6)},
            {"model": "oue", "level": "low", **row, **needs(7)},
        ],
        "gain": 0.1234, "best": "subset", "best_plain": "oue", "certificate": None, "goals": [],
        "fake": {"sentence": "One [red]fake report"},
        "warnings": [], "padding": None, "padding_curve": None, "objective": None,
        "visible": [], "published": "", **changes,
    }  # fmt: skip


def test_a_plan(printed):
    assert printed(forecasts.plan, forecast()) == [
        "a [b] survey: forecast for 10,000 people, at the uniform prior",
        "model level std. error (people) std. error (share) detectable share",
        "subset [red]high 1,234.6 1.235% 2.000%",
        "low 1,234.6 1.235% 2.000%",
        "oue low 1,234.6 1.235% 2.000%",
        "Errors of counts are about the people who answer. Shares are of the population, so with "
        "the luck of who answers. Detectable share: the smallest that stands out from 0 with a "
        "chance of 80 %, at a confidence of 95 %.",
        "Chosen: subset; its total MSE is 12.3% below that of the best plain-LDP model, oue.",
        "One [red]fake report",
    ]


def test_a_plan_says_where_no_share_can_be_seen_and_whom_shares_are_about(printed):
    rows = [{**row, "smallest_share": 1.2} for row in forecast()["rows"]]
    lines = printed(forecasts.plan, forecast(rows=rows, about="respondents"))
    assert lines[2] == "subset [red]high 1,234.6 1.235% none"
    assert "Shares are of the people who answer, so without the luck of who does." in lines[5]


def test_a_plan_with_a_target_a_padding_and_a_loss(printed):
    curve = {ell: 1000.0 * ell for ell in range(1, 12)}
    lines = printed(forecasts.plan, forecast(
        target_error=0.01, padding=5, padding_curve=curve, gain=-0.05, objective="mse",
        certificate={"sentence": "the best possible"},
    ))  # fmt: skip
    assert [lines[1].endswith("detectable share users for the target"), *lines[2:5]] == [
        True,
        "subset [red]high 1,234.6 1.235% 2.000% 5,000",
        "low 1,234.6 1.235% 2.000% 6",
        "oue low 1,234.6 1.235% 2.000% 7",
    ]
    assert lines[5:] == [
        "Errors of counts are about the people who answer. Shares are of the population, so with "
        "the luck of who answers. Detectable share: the smallest that stands out from 0 with a "
        "chance of 80 %, at a confidence of 95 %.",
        "Padding 5 has the smallest expected MSE with undercounting (2: 2,000, "
        "3: 3,000, 4: 4,000, 5: 5,000, 6: 6,000, 7: 7,000, 8: 8,000).",
        "Chosen: subset; its total MSE is 5.0% above that of the best plain-LDP model, oue.",
        "Its expected error: the best possible.",
        "One [red]fake report",
    ]


KNOWN = {"item": "[red]x", "level": "[b]", "count": 1234.4, "stderr": 5.6, "lower": 1200.0,
         "upper": 1260.0, "share": 0.12345, "share_low": 0.1, "share_high": 0.15}  # fmt: skip
HEADS = "item level people std. error share 90 % interval"
MEANING = (
    "People: of those who answered. Share and interval: of the population they were drawn from."
)


def estimate_of(n, **more):
    mechanism = d.design(d.Policy.from_levels([("all", 1, ["x", "y"])]), "rappor")
    some = mechanism.tally([bytes([1])] * 5).estimate()
    return replace(some, n=n, **more)


def test_an_estimate(printed):
    unknown = {**dict.fromkeys(KNOWN), "item": "y", "level": "b"}
    assert printed(terminal.estimate, estimate_of(12345), [KNOWN, unknown], 0.9) == [
        "12,345 reports",
        HEADS,
        "[red]x [b] 1,234 6 12.3% 10.0% to 15.0%",
        "y b – – – – to –",
        MEANING,
    ]
    assert printed(terminal.estimate, estimate_of(0), [], 0.9) == ["0 reports", HEADS, MEANING]
    told = printed(terminal.estimate, estimate_of(5), [KNOWN], 0.9, "respondents", [unknown])
    assert told[-2:] == ["y b – – – – to –", f"{MEANING[:54]}the same people."]
    weighed = estimate_of(5, weighting=Weighting(3.4, 2.0, None))
    told = printed(terminal.estimate, weighed, [KNOWN])
    assert told[0] == "5 reports, weighted; as good as 3 of equal weight"
    assert told[-1].startswith("People: of as many as answered, by weight.")
    assert told[-2].startswith("About 2 reports carry most of the weight")


@pytest.mark.parametrize(
    ("truth", "told"), [(1199, "1,199 (outside)"), (1200, "1,200"), (1260, "1,260"),
                        (1261, "1,261 (outside)")],
)  # fmt: skip
def test_an_estimate_beside_its_views_and_the_truth(printed, truth, told):
    row = {**KNOWN, "shrunk": 1230.6, "consistent": 1.4, "in_top": 0.987}
    rest = (0.9, "population", (), {"[red]x": truth})
    assert printed(terminal.estimate, estimate_of(1), [row], *rest)[1:3] == [
        f"{HEADS} consistent in the top truth",
        f"[red]x [b] 1,234 6 12.3% 10.0% to 15.0% 1 99% {told}",
    ]
    asked = {**row, "shrunk_lower": 1.0}
    assert printed(terminal.estimate, estimate_of(1), [asked], *rest)[1:3] == [
        f"{HEADS} shrunk consistent in the top truth",
        f"[red]x [b] 1,234 6 12.3% 10.0% to 15.0% 1,231 1 99% {told}",
    ]


def test_scores(printed):
    scores = [
        Score("subset", "raw", 4.0, 0.4, 0.1234, 0.75, 0.05, 0.953),
        Score("subset", "shrunk", 2.0, 0.2, 0.1, 0.8, 0.04, math.nan),
        Score("oue", "raw", 9012.4, 0.9, 0.1, 0.5, 0.03, 0.94),
    ]
    assert printed(terminal.scores, scores, 7, 20) == [
        "model view total MSE / n ± rel. error, top 7 precision, top 7 coverage of 95 %",
        "subset raw 4 0.4 0.123 0.75 ± 0.05 95.3%",
        "shrunk 2 0.2 0.100 0.80 ± 0.04 –",
        "oue raw 9,012 0.9 0.100 0.50 ± 0.03 94.0%",
        "Smallest error: subset, shrunk. Means of 20 experiments; ± is one standard error.",
    ]


# ---- a narrow terminal ---------------------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch, capsys):
    """The lines that a terminal of 80 columns shows."""
    screen = Console(force_terminal=True, color_system=None, highlight=False, width=80)
    for module in (terminal, forecasts):
        monkeypatch.setattr(module, "console", lambda: screen)

    def show(draw, *arguments):
        draw(*arguments)
        lines = capsys.readouterr().out.splitlines()
        assert all(len(line) <= 80 for line in lines), lines
        return [" ".join(line.split()) for line in lines]

    return show


def test_heads_wrap_before_numbers_do(narrow):
    mechanism = d.design(example("health-survey"), goal="total")
    lines = narrow(terminal.mechanism, mechanism, facts.describe(mechanism))
    assert any(line.endswith("x worse") for line in lines)
    assert sum(line.endswith("x better") for line in lines) == 2
    assert any(line.startswith("2 0.2738, 0.6444, 0.4000") for line in lines)
    narrow(forecasts.plan, forecast(target_error=0.01))


def test_a_wide_table_has_small_gaps_and_loses_nothing(narrow):
    row = {**KNOWN, "item": "a long name", "shrunk": 1230.6, "consistent": 1.4, "in_top": 0.987}
    cells = "a long name [b] 1,234 6 12.3% 10.0% to 15.0% 1 99%"
    assert cells in narrow(terminal.estimate, estimate_of(1), [row], 0.9)


def test_what_cannot_fit_is_folded(narrow):
    row = {**KNOWN, "item": "x" * 100}
    lines = narrow(terminal.estimate, estimate_of(1), [row], 0.9)
    assert sum(line.count("x") for line in lines) == 100


def test_a_promise_is_wrapped_behind_its_mark(narrow):
    mechanism = small("bits")
    lines = narrow(terminal.mechanism, mechanism, facts_of(mechanism, promises=["word " * 29]))
    start = next(k for k, line in enumerate(lines) if line.startswith("•"))
    assert lines[start] == "• " + " ".join(["word"] * 15)
    assert lines[start + 1] == " ".join(["word"] * 14)


def test_what_people_will_see_comes_first_and_what_results_tell_last(printed):
    lines = printed(forecasts.plan, forecast(visible=["You [red]see."], published="Whoever [b]."))
    assert lines[1] == "• You [red]see." and lines[-1] == "Whoever [b]."
    mechanism = small("bits")
    assert (
        printed(terminal.mechanism, mechanism, facts_of(mechanism, published="Whoever [b]."))[-1]
        == "Whoever [b]."
    )


def test_a_level_without_an_error_says_so(printed):
    """In a block of its own an item is counted as it is."""
    levels = [("x", 1, ["a", "b"]), ("y", 1, ["c"])]
    mechanism = d.design(d.Policy.from_levels(levels, notion="blocks"))
    lines = printed(terminal.mechanism, mechanism, facts.describe(mechanism))
    assert any(line.startswith("y ") and line.endswith("no error") for line in lines)
