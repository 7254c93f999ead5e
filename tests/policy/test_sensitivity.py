"""The words for budgets say the factor that the budget is."""

import math

from discreet.policy import Budget
from discreet.policy.sensitivity import SENSITIVITIES


def test_words_factors_and_budgets_agree():
    assert [s.factor for s in SENSITIVITIES] == [3, 4, 6, 9]
    for word in SENSITIVITIES:
        assert math.isclose(math.exp(float(Budget.parse(word.epsilon))), word.factor)


def test_no_word_is_beyond_what_the_most_sensitive_one_allows():
    """Under `min` a budget beyond twice the smallest gains nothing."""
    budgets = [float(Budget.parse(word.epsilon)) for word in SENSITIVITIES]
    assert budgets == sorted(budgets) and budgets[-1] <= 2 * budgets[0] + 1e-12
    assert len({word.name for word in SENSITIVITIES}) == len(SENSITIVITIES)
