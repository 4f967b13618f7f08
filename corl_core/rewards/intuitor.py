"""Intuitor: a completion is worth how certain the model was of it (arXiv 2505.19590).

    reward = self-certainty = mean over tokens of KL(uniform || p_t) = mean over tokens of [-log V - mean_v log p_t(v)]

with p_t the current policy's next-token distribution over the whole vocabulary V at the sampling temperature. The released
code leaves out the constant -log V, which vanishes in advantages. Every completion token counts, the end token included.
Assumes that a model is more certain where it is right; where it is not, certainty is reinforced all the same, and the model
may collapse into whatever it can say with certainty. The policy must be the current one: a frozen judge gets exploited
around step 100 (same source). Degenerate cases: an empty completion gets 0; equal certainties give no gradient.
"""

from corl_core.rewards.batch import Rewards


def rewards(self_certainties: tuple[tuple[float, ...], ...]) -> Rewards:
    """The certainties are the rewards: (P, V), nats, at least 0."""
    return self_certainties
