"""What people are invited to: one or more questions, and what everything they send promises."""

from discreet.survey.about import About
from discreet.survey.public import Public
from discreet.survey.survey import FORMAT, Question, Survey

__all__ = ["FORMAT", "About", "Public", "Question", "Survey"]
