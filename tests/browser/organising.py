"""What an organiser does on the results page, and what the page must show of the service's JSON."""

import math
from decimal import ROUND_HALF_UP, Decimal

from chromium import TOKEN


def organiser(visitor, server, name, another=False, view=""):
    """The results page of someone who knows the token; `view` stands in the address behind "#"."""
    page = (visitor.another if another else visitor.open)(server.results[name] + view)
    page.get_by_label("Organiser’s token").fill(TOKEN)
    page.get_by_role("button", name="Show results").click()
    page.locator("#numbers").wait_for()
    return page


def rows(page, body="#rows"):
    """The texts of the table: answer, chart, share and interval, people and interval, errors."""
    return page.evaluate(
        """(body) => [...document.querySelectorAll(`${body} tr`)].map(({ cells }) => {
          const [head, chart, ...rest] = [...cells];
          return [head.firstChild.textContent, chart.textContent, ...rest.flatMap((cell) => {
            const [value, interval] = cell.childNodes;
            return [value?.textContent ?? "", ...cell.matches(".share, .people")
              ? [interval?.textContent ?? ""] : []];
          })];
        })""",
        body,
    )


def figure(x, decimals=0):
    """A number as the page writes it in English: halves go up, of decimals those away from 0."""
    whole = Decimal(math.floor(x + 0.5))
    rounded = Decimal(x).quantize(Decimal(10) ** -decimals, ROUND_HALF_UP) if decimals else whole
    return f"{rounded + 0 if rounded else abs(rounded):,.{decimals}f}"


def expected_row(row, n, plain, view=""):
    """What the page must show of a row of the service's JSON."""
    names = (
        (view, f"{view}_lower", f"{view}_upper", f"{view}_sd")
        if view
        else ("count", "lower", "upper", "stderr")
    )
    count, low, high, error = (row.get(name) for name in names)
    ends = (row["share_low"], row["share_high"])
    if view:
        ends = (None, None) if low is None else (low / n, high / n)
    shares = "" if ends[0] is None else " to ".join(figure(100 * x, 1) for x in ends)
    people = "" if low is None else f"{figure(low)} to {figure(high)}"
    errors = [None if error is None else figure(error), None if plain is None else figure(plain)]
    return [
        row["item"],
        "",
        f"{figure(100 * count / n, 1)} %",
        shares,
        figure(count),
        people,
        " / ".join(x or "–" for x in errors),
    ]


def expected_rows(found, view=""):
    """The whole table, sorted."""
    plain = {level["name"]: level["plain_stderr"] for level in found["levels"]}
    return [
        expected_row(row, found["n"], plain[row["level"]], view)
        for row in sorted(found["items"], key=lambda row: -row[view or "count"])
    ]
