"""What an organiser does on the results page, and what the page must show of the service's JSON."""

import math

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
    """A number as the page writes it in English; of whole ones halves go up."""
    rounded = x if decimals else math.floor(x + 0.5)
    return f"{rounded:,.{decimals}f}".replace("-0.0", "0.0" if -0.05 <= x <= 0 else "-0.0")


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
