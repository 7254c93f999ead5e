"""The documentation site: `sphinx-build -W docs docs/_build/html`, without any network."""

from __future__ import annotations

import re

from discreet import __version__

project = "discreet"
project_copyright = "the discreet authors; Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "*.template.md"]  # templates: what make_paper and make_truth fill in

# The guides are plain Markdown, which a code host shows too: links to headings work as there.
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # benchmarks.md is put together from tables with their headings

# The reference: docstrings are prose with `names`; types are told as short as in the source.
default_role = "code"
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_mock_imports = ["pyspark"]  # only its types are named, and it takes seconds to import
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Block", "Encoding", "Floats")}
nitpicky = True  # a name of ours that is gone is found; these are other people's, or not public
_OTHERS = (
    r"(collections|fractions|numpy|pathlib)\..*|ArrayLike|Axes|DataFrame|NDArray|Path|SparkSession"
)
_OTHERS += r"|u?int\d+|integer|float64|pa\..*|pd\..*"
_INSIDE = (
    r"Block|Key|Encoding|Floats|Mixture|TypeAliasForwardRef|Leakage|Arrays|Bytes|Shrunk|Fraction"
)
_INSIDE += (
    r"|Items?|Prior|Answers?|Reports|Counts|JsonObject|BudgetLike|Ints|discreet\.designs\.task\..*"
)
_INSIDE += r"|discreet\.check\..*|discreet\.promises\.ratios\.Pairs"
_INSIDE += r"|discreet\.policy\.(kinds\.Kind|notions\.Notion)"
_INSIDE += r"|discreet\.estimates\.weights\.Raked|discreet\.survey\.survey\.(Questions?|Draws)"
_INSIDE += r"|discreet\.device\.client\.Frame|discreet\.policy\.totals\.Total"
_INSIDE += r"|discreet\.device\.answers\..*"
nitpick_ignore_regex = [("py:class", _OTHERS), ("py:class", _INSIDE)]

html_theme = "furo"
html_title = f"discreet {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_copy_source = False
html_show_sphinx = False


def _colours(accent: str) -> dict[str, str]:
    names = ("brand-primary", "brand-content", "brand-visited", "api-name", "api-pre-name")
    return {f"color-{name}": accent for name in names}


html_theme_options = {  # the accents of the collector's own pages
    "light_css_variables": _colours("#0f766e"),
    "dark_css_variables": _colours("#4fd1c0"),
}
pygments_style = "friendly"
pygments_dark_style = "native"


def plain_bars(app, what, name, obj, options, lines):
    """Docstrings write |x| and Pr(y | x); in reStructuredText a bar would begin a substitution."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...")) else line.replace("|", r"\|")
        for line in lines
    ]


def short_types(app, what, name, obj, options, signature, returns):
    """Types of arrays by the names that the source has for them."""

    def short(text):
        text = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text or "")
        array = r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[~numpy\.(\w+)\]\]"
        return re.sub(array, r"NDArray[\1]", text) or None

    return short(signature), short(returns)


def setup(app):
    app.connect("autodoc-process-signature", short_types)
    app.connect("autodoc-process-docstring", plain_bars)
