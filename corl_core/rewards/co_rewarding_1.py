"""Co-rewarding-I: a question and its paraphrase label each other, within one policy (arXiv 2508.00410).

    label(x)  = vote of the agent's group on x', the same question in other words
    label(x') = vote of its group on x
    reward    = 1 if a rollout's answer is equivalent to its label, else 0

Both groups are trained on, each normalised by itself. The same as Co-RL of two agents with shared weights. Assumes that
wording, not the model, causes the mistakes: what the model gets wrong in both wordings is reinforced. Here each step holds
half as many questions, each twice, so that a step costs the same as any other method's. Degenerate cases: a question without
a paraphrase is asked twice in the same words (an independent vote of the same policy; the released code drops such
questions); a group that does not parse leaves the other wording unlabelled. The released code compares strings of the last
box; here answers are equal when their keys are.
"""

from collections.abc import Sequence

from corl_core.votes import Vote, passes


def pseudo_labels(own: Sequence[Vote], min_share: float = 0.0) -> list[str | None]:
    """Canonical key of each group's label. Groups 2i and 2i+1 are the two wordings of one question."""
    sent = [cast.key if passes(cast, min_share) else None for cast in own]
    return [sent[index ^ 1] for index in range(len(sent))]
