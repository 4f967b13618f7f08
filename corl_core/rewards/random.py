"""Random reward: a coin for every completion; a control (arXiv 2506.10947).

    reward ~ Bernoulli(frac), whatever the completion says

What a method gains over this is due to its signal; some models improve on benchmarks with random rewards alone. The coins
have a seed of their own, so sampling is as in every other method. Degenerate case: a group whose coins all fall alike gives
no gradient.
"""

import random

from corl_core.rewards.batch import Rewards


def rewards(num_questions: int, num_samples: int, frac: float, seed: int) -> Rewards:
    """(P, V) in {0, 1}."""
    coins = random.Random(seed)
    return tuple(tuple(float(coins.random() < frac) for _ in range(num_samples)) for _ in range(num_questions))
