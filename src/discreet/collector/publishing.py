"""What anyone may see without the token. No SQL.

Reports are published in batches. A batch is made of reports on one question, at least as many as
the survey's minimum, and no report is in two. Everything that is shown is a sum of batches: so
nobody can compute the counts of fewer reports, however often they ask and whatever they subtract.

While a collection is open, a batch is of one group: what has come from this group since its last
batch. In the end, what is left of groups that stay too small is added up by the answers to one
public question, and what is still left over all groups. Fewer reports than the minimum are never
published.
"""

from __future__ import annotations

from discreet.arrays.survey_tally import ANY, Slot, SurveyTally
from discreet.arrays.tally import Tally
from discreet.device.wire import front

Groups = dict[tuple[int, ...], Tally]  # by public answers, of which some may be ANY


def publish_more(shown: SurveyTally, whole: SurveyTally, closed: bool) -> SurveyTally:
    """What is shown after the batches that are due now; `shown` itself if none is."""
    more: dict[Slot, Tally] = {}
    for place in range(len(whole.survey.listed)):
        for group, batch in _due(shown, whole, place, closed).items():
            more[front(whole.survey, place, group)] = batch
    return shown + SurveyTally(whole.survey, more) if more else shown


def _due(shown: SurveyTally, whole: SurveyTally, place: int, closed: bool) -> Groups:
    """The batches of a question that are due, by group."""
    before = shown.groups(place, partly=True)
    if any(ANY in group for group in before):  # the last ones are out
        return {}
    left = {key: _less(tally, before.get(key)) for key, tally in whole.groups(place).items()}
    count, batches = len(whole.survey.public), Groups()
    steps = [range(count)]
    if closed:
        steps += [*(range(k, k + 1) for k in range(count)), range(0)]
    for kept in steps:
        large = _large(left, kept, whole.survey.about.least)
        batches |= large
        left = {key: tally for key, tally in left.items() if _part(key, kept) not in large}
    return batches


def _large(left: Groups, kept: range, least: int) -> Groups:
    """Those groups that are large enough, if only the public answers at the places `kept` count."""
    sums = Groups()
    for key, tally in left.items():
        part = _part(key, kept)
        sums[part] = sums[part] + tally if part in sums else tally
    return {part: tally for part, tally in sums.items() if tally.n >= least}


def _part(key: tuple[int, ...], kept: range) -> tuple[int, ...]:
    return tuple(answer if k in kept else ANY for k, answer in enumerate(key))


def _less(tally: Tally, before: Tally | None) -> Tally:
    if before is None:
        return tally
    return Tally(tally.mechanism, tally.part_n - before.part_n, tally.counts - before.counts)
