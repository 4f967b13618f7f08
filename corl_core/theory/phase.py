"""Where the flow of two agents splits, what it keeps, and which side a start is on (arXiv 2608.17253, Thm 1 and App. B).

Mutual pair: (1, 1) and (0, 0) are stable, (½, ½) is a saddle, and the separatrix is p_A + p_B = 1 whatever K. Own votes:
each agent for itself, split at ½. So {p_A + p_B > 1} against {p_A > ½ and p_B > ½}: both agents right is reached from more
starts, but (.9, .05) loses an agent that own votes would have kept. The rule is special to N = 2: for rings of three and
more, Σp > N/2 predicts only about 94% of uniform starts, and `consensus` follows the flow instead.
"""

import numpy as np
from scipy.special import betainc

from corl_core.theory.binomial import check_probabilities, margin_slope, reward_std, vote_margin
from corl_core.theory.meanfield import Supervision, trajectory

Array = np.ndarray
NODES = 80  # Gauss-Legendre; exact to 1e-10 for accuracies within .0001 of 0 or 1


def potential(p: Array | float, num_generations: int) -> Array:
    """F(p) = ∫ φ/q from ½ to p, with q = p(1−p)m: F(p_A) − F(p_B) is constant along a mutual pair's path. Even about ½."""
    span = np.log(np.asarray(p, dtype=float)) - np.log1p(-np.asarray(p, dtype=float))  # dF = φ/m dℓ, from ℓ = 0
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    here = 1 / (1 + np.exp(-span[..., None] * (nodes + 1) / 2))
    return span / 2 * ((vote_margin(here, num_generations) / reward_std(here, num_generations)) @ weights)


def saddle_rates(num_agents: int, num_generations: int) -> Array:
    """Eigenvalues of a ring's flow at (½, …, ½), η = 1: λ ω^k with ω = e^{2πi/N} and λ = q(½) φ′(½). N = 2: ±λ; N = 3: λ
    and a stable spiral; N = 4: a neutral pair; N ≥ 5: unstable oscillations too."""
    rate = 0.25 * float(reward_std(0.5, num_generations)) * margin_slope(num_generations)
    return rate * np.exp(2j * np.pi * np.arange(num_agents) / num_agents)


def right_side(start: Array, supervision: Supervision) -> Array:
    """Whether each agent ends right, from accuracies (..., N), by the exact rules: own votes (any N) and a mutual pair.

    Raises ValueError for a longer ring, which has no such rule: see `consensus`. A start on the edge is not right.
    """
    given = check_probabilities(start)
    if supervision in ("self", "ema"):
        return given > 0.5
    if supervision == "ground_truth":
        return given > 0
    if given.shape[-1] != 2:
        raise ValueError(f"a ring of {given.shape[-1]}: no rule tells the outcome from the start; follow the flow instead")
    return np.broadcast_to(given.sum(axis=-1, keepdims=True) > 1 + 1e-12, given.shape)


def consensus(start: Array, num_generations: int, horizon: float = 400.0, sure: float = 0.9, tolerance: float = 1e-6) -> Array:
    """How a ring ends from accuracies (..., N), by following the flow: 1 all right, 0 all wrong, NaN when undecided at
    `horizon`, shape (...)."""
    end = trajectory(start, "ring", num_generations, np.array([0.0, horizon]), tolerance=tolerance)[-1]
    right, wrong = (end > sure).all(axis=-1), (end < 1 - sure).all(axis=-1)
    return np.where(right, 1.0, np.where(wrong, 0.0, np.nan))


def population(a: float, b: float) -> tuple[float, float]:
    """Final accuracy (own votes, mutual pair) over questions whose two accuracies are independent draws from Beta(a, b):
    P(p > ½) and P(p_A + p_B > 1). The pair amplifies the mean: better where it is above ½, worse below, equal at ½."""
    if a <= 0 or b <= 0:
        raise ValueError(f"Beta({a:g}, {b:g}): both numbers must be above 0")
    edges = np.linspace(0, 1, 4001)
    share = np.diff(betainc(a, b, edges))  # P(p_A in a cell); the peer must be above 1 − the cell's middle
    above = 1 - betainc(a, b, 1 - (edges[1:] + edges[:-1]) / 2)
    return float(1 - betainc(a, b, 0.5)), float(share @ above)
