"""What a model would receive: for every directed edge, the accuracy of the pseudo-labels that a peer's votes are.

The vote of the peer's K samples of a question is the pseudo-label (arXiv 2608.17253, Eq. 3–4). Shares are over the questions
that both were asked, with known truth; a peer that casts no vote gives no label. Beside the accuracy stands what it does to the
receiver: `corrects` and `misleads` compare the label with the receiver's own vote, which is what training on itself would use.
Predicted from untrained models, so it holds for the first step; votes change as both learn.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from corl_core.diversity.answers import NOT_ASKED, Answers
from corl_core.diversity.pairs import RESAMPLES, Interval, interval
from corl_core.seeds import derive


@dataclass(frozen=True)
class Edge:
    """`peer`'s votes reward `agent`. A value is None where no question decides it; intervals are bootstraps over questions."""

    peer: str
    agent: str
    num_questions: int  # with known truth, asked of both
    labelled: float | None  # share of these on which the peer votes
    pseudo_label_accuracy: float | None  # of the labels, as the metric of that name
    interval: Interval | None
    own_vote_accuracy: float | None  # of the receiver's own votes, on the questions on which it casts one
    corrects: float | None  # share of the receiver's wrong votes on which the label is right
    misleads: float | None  # share of the receiver's right votes on which the label is wrong

    @property
    def gain(self) -> float | None:
        """Accuracy of the peer's labels above that of the receiver's own."""
        if self.pseudo_label_accuracy is None or self.own_vote_accuracy is None:
            return None
        return self.pseudo_label_accuracy - self.own_vote_accuracy


def edges(answers: Answers, seed: int = 0) -> list[Edge]:
    """All ordered pairs, by peer; [] without any known truth."""
    if not answers.num_labelled:
        return []
    return [_edge(answers, peer, agent, seed) for peer, agent in permutations(range(len(answers.models)), 2)]


def _edge(answers: Answers, peer: int, agent: int, seed: int) -> Edge:
    labels, own = answers.votes[peer], answers.votes[agent]
    known = (answers.truths >= 0) & (labels != NOT_ASKED) & (own != NOT_ASKED)
    labels, own, truths = labels[known], own[known], answers.truths[known]
    right, cast, own_right = labels == truths, labels >= 0, own == truths
    peer_name, agent_name = answers.models[peer], answers.models[agent]
    rng = np.random.default_rng(derive("edge", seed, peer_name, agent_name))
    return Edge(
        peer_name, agent_name, int(known.sum()), _mean(cast), _mean(right[cast]), _resampled(right, cast, rng),
        _mean(own_right[own >= 0]), _mean(right[~own_right & cast]), _mean(~right[own_right & cast]),
    )  # fmt: skip


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def _resampled(right: np.ndarray, cast: np.ndarray, rng: np.random.Generator) -> Interval | None:
    """Interval of the accuracy among labels, whose number differs from resample to resample."""
    if not cast.any():
        return None
    cells = np.array([right.sum(), (cast & ~right).sum(), (~cast).sum()], dtype=float)
    hits, misses, _ = rng.multinomial(len(cast), cells / cells.sum(), size=RESAMPLES).T
    given = hits + misses
    return interval(np.divide(hits, given, out=np.full(RESAMPLES, np.nan), where=given > 0))
