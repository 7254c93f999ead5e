"""What is asked, and how much each answer is protected."""

from discreet.policy.budgets import OPEN, Budget, Level, Pair
from discreet.policy.policy import Policy

__all__ = ["OPEN", "Budget", "Level", "Pair", "Policy"]
