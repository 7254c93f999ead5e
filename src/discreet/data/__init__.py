"""Files of answers and reports, and engines that count them."""

from discreet import arrays as _arrays  # noqa: F401  # says what is missing, if something is
