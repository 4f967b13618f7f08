"""What is measured about a step: pure functions on frozen records.

Ground truth enters here and in evaluation, never in a label-free reward. A metric that is not defined (no labelled
group, no truth, no variation) is None, and is then absent from the journal rather than zero. The docstring of each
function is the text that the dashboard shows beside the curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean

from corl_core.votes import Vote


@dataclass(frozen=True)
class Step:
    """One agent's rollouts of one step on P questions, K trained on each and V >= K voting, as the metrics see them."""

    keys: tuple[tuple[str | None, ...], ...]  # (P, K) canonical answers; None did not parse
    votes: tuple[Vote, ...]  # (P,) the agent's own votes, over V completions each
    labels: tuple[str | None, ...] | None  # (P,) pseudo-labels received, None where there is none; None: no signal has labels
    rewards: tuple[tuple[float, ...] | None, ...]  # (P,) groups of K; None: unlabelled
    truths: tuple[str | None, ...]  # (P,) canonical true answers; None: unknown
    min_share: float = 0.0  # vote share below which a vote does not count
    is_sum: bool = False  # rewards are a weighted sum of signals
    outcomes: tuple[str, ...] = ()  # (P*V,) how reading each completion went: see `answers.Reading`


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _labelled(step: Step) -> list[tuple[float, ...]]:
    return [group for group in step.rewards if group is not None]


def reward(step: Step) -> float | None:
    """Mean reward over the rollouts of labelled groups."""
    return _mean([value for group in _labelled(step) for value in group])


def _std(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sqrt(fmean((value - mean) ** 2 for value in values))


def reward_std(step: Step) -> float | None:
    """Standard deviation of the rewards within a group (population), averaged over labelled groups. With 0/1 rewards
    and C hits of K it is √(C(K−C))/K. This is not TRL's figure of that name, which spans the whole batch."""
    return _mean([_std(group) for group in _labelled(step)])


def frac_reward_zero_std(step: Step) -> float | None:
    """Share of groups that give no gradient: all rewards equal, or no pseudo-label."""
    return _mean([float(group is None or _std(group) < 1e-8) for group in step.rewards])


def labeled_frac(step: Step) -> float | None:
    """Share of questions for which the agent received a pseudo-label. Undefined for signals without pseudo-labels."""
    return _mean([float(label is not None) for label in step.labels or ()])


def vote_share(step: Step) -> float | None:
    """The winning answer's fraction of a group's parsed answers, averaged over groups; 0 where none parsed."""
    return _mean([cast.share for cast in step.votes])


def parse_rate(step: Step) -> float | None:
    """Share of the completions that vote from which an answer could be parsed."""
    sampled = sum(cast.num_rollouts for cast in step.votes)
    return sum(cast.num_parsed for cast in step.votes) / sampled if sampled else None


def _outcome(step: Step, name: str) -> float | None:
    return _mean([float(outcome == name) for outcome in step.outcomes])


def grade_timeout_rate(step: Step) -> float | None:
    """Share of completions whose answer was compared as text because its mathematics took too long."""
    return _outcome(step, "timeout")


def grade_error_rate(step: Step) -> float | None:
    """Share of completions whose answer was compared as text because the grading worker failed."""
    return _outcome(step, "error")


def unparsed_vote_rate(step: Step) -> float | None:
    """Share of groups that cast no vote because no completion gave an answer."""
    return _mean([float(cast.num_parsed == 0) for cast in step.votes])


def below_share_rate(step: Step) -> float | None:
    """Share of groups whose vote does not count because its share is below the threshold (vote.min_share)."""
    return _mean([float(cast.answer is not None and cast.share < step.min_share) for cast in step.votes])


def tie_rate(step: Step) -> float | None:
    """Share of groups in which two answers share the highest count."""
    return _mean([float(cast.tied) for cast in step.votes])


def _right(labels: Sequence[str | None], truths: Sequence[str | None]) -> list[float]:
    known = zip(labels, truths, strict=True)
    return [float(label == truth) for label, truth in known if label is not None and truth is not None]


def pseudo_label_accuracy(step: Step) -> float | None:
    """Share of the pseudo-labels an agent receives that are right, among labelled questions with known truth."""
    return _mean(_right(step.labels, step.truths)) if step.labels is not None else None


def vote_accuracy(step: Step) -> float | None:
    """Share of the agent's own votes that are right, among questions on which it cast one and the truth is known."""
    return _mean(_right([cast.key for cast in step.votes], step.truths))


def _reward_and_truth(step: Step) -> list[tuple[float, float]]:
    """Each rollout's reward and the one the truth would give; [] where rewards are not 0 or 1, or are by chance."""
    if step.is_sum or not {value for group in _labelled(step) for value in group} <= {0.0, 1.0}:
        return []
    return [
        (value, float(key is not None and key == truth))
        for keys, group, truth in zip(step.keys, step.rewards, step.truths, strict=True)
        if group is not None and truth is not None
        for key, value in zip(keys, group, strict=True)
    ]


def reward_accuracy(step: Step) -> float | None:
    """Share of rollouts whose 0/1 reward equals the one the truth would give. It stays high when a wrong label meets
    scattered answers (a 'lucky hit'), so read it beside the false reward rate."""
    return _mean([float(value == true) for value, true in _reward_and_truth(step)])


def false_reward_rate(step: Step) -> float | None:
    """Share of wrong rollouts that were rewarded: the harmful part of a wrong pseudo-label."""
    return _mean([value for value, true in _reward_and_truth(step) if true == 0])


# ---- between two agents; a and b are aligned sequences over the same questions ----


def agreement(a: Sequence[str | None], b: Sequence[str | None]) -> float | None:
    """Share of questions on which two agents' votes are the same answer, among those on which both voted; the mean
    over pairs of agents. It says consensus, not correctness."""
    both = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return _mean([float(x == y) for x, y in both])


@dataclass(frozen=True)
class PairCounts:
    """Questions by who was right; a vote that was not cast is wrong. `same_wrong` counts within `neither`."""

    both: int
    only_a: int
    only_b: int
    neither: int
    same_wrong: int

    @property
    def total(self) -> int:
        return self.both + self.only_a + self.only_b + self.neither


def count_pair(a: Sequence[str | None], b: Sequence[str | None], truths: Sequence[str | None]) -> PairCounts:
    """Counts over the questions whose truth is known."""
    rows = [(x == t, y == t, x is not None and x == y) for x, y, t in zip(a, b, truths, strict=True) if t is not None]
    tally = {cell: sum(row[:2] == cell for row in rows) for cell in [(True, True), (True, False), (False, True), (False, False)]}
    same = sum(not x and not y and equal for x, y, equal in rows)
    return PairCounts(tally[True, True], tally[True, False], tally[False, True], tally[False, False], same)


def kappa(pair: PairCounts) -> float | None:
    """Cohen's kappa of the two agents' correctness: 1 when they are right on the same questions, 0 when independent,
    negative when complementary. Undefined when chance agreement is 1 (both all right or all wrong)."""
    if not pair.total:
        return None
    right_a, right_b = (pair.both + pair.only_a) / pair.total, (pair.both + pair.only_b) / pair.total
    observed = (pair.both + pair.neither) / pair.total
    chance = right_a * right_b + (1 - right_a) * (1 - right_b)
    return None if 1 - chance < 1e-12 else (observed - chance) / (1 - chance)


def jaccard(pair: PairCounts) -> float | None:
    """Questions both agents get wrong over questions at least one gets wrong. Undefined when neither errs."""
    wrong = pair.total - pair.both
    return pair.neither / wrong if wrong else None


def same_wrong(pair: PairCounts) -> float | None:
    """Share of all questions on which both agents give the same wrong answer: the errors that Co-RL cannot see."""
    return pair.same_wrong / pair.total if pair.total else None


def both_wrong(pair: PairCounts) -> float | None:
    """Share of all questions that both agents get wrong, whatever they answer."""
    return pair.neither / pair.total if pair.total else None


OVERLAPS = {"kappa": kappa, "jaccard": jaccard, "same_wrong": same_wrong, "both_wrong": both_wrong}

AGENT_METRICS = {
    function.__name__: function
    for function in (
        reward, reward_std, frac_reward_zero_std, labeled_frac, vote_share, parse_rate, tie_rate,
        unparsed_vote_rate, below_share_rate, grade_timeout_rate, grade_error_rate,
        pseudo_label_accuracy, vote_accuracy, reward_accuracy, false_reward_rate,
    )
}  # fmt: skip


def agent_metrics(step: Step) -> dict[str, float]:
    """Every metric of one agent's step that is defined, by name."""
    values = {name: function(step) for name, function in AGENT_METRICS.items()}
    return {name: value for name, value in values.items() if value is not None}


def cohort_agreement(votes: dict[str, Sequence[str | None]]) -> dict[str, float]:
    """`agreement` and `agreement/a.b`, from every agent's votes on the same questions."""
    pairs = {f"{a}.{b}": agreement(votes[a], votes[b]) for a, b in combinations(votes, 2)}
    return _with_mean("agreement", pairs)


def cohort_overlap(votes: dict[str, Sequence[str | None]], truths: Sequence[str | None]) -> dict[str, float]:
    """`error_overlap/<measure>` and `error_overlap/<measure>/a.b`, from votes on the same questions."""
    counts = {f"{a}.{b}": count_pair(votes[a], votes[b], truths) for a, b in combinations(votes, 2)}
    values: dict[str, float] = {}
    for name, measure in OVERLAPS.items():
        values |= _with_mean(f"error_overlap/{name}", {pair: measure(count) for pair, count in counts.items()})
    return values


def _with_mean(name: str, pairs: dict[str, float | None]) -> dict[str, float]:
    defined = {pair: value for pair, value in pairs.items() if value is not None}
    if not defined:
        return {}
    return {name: fmean(defined.values())} | {f"{name}/{pair}": value for pair, value in defined.items()}
