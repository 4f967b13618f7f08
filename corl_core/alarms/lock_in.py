"""Label lock-in: an agent is sure of votes that are wrong, so training on them makes it surer.

Two signs, one without ground truth and one with; both need no more than the journals. Neither asks agents to agree, as one might
expect of a collapse: agents that learn from their own votes lock in different answers, and that is what gives them away.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from corl_core.alarms.seen import Found, Joint, JointStep, Past

MIN_ERROR = 0.1  # proved share of wrong votes, below which two agents may differ
GROWTH = 1.3  # of the ratio of error to doubt, since the start
MIN_COMPARED = 80  # votes of an agent compared with a peer's, in the window and at the start
LOST = 0.05  # of majority accuracy
IN_A_ROW = 2  # evaluations
SURE = 0.9  # vote share


@dataclass(frozen=True)
class Gap:
    """What an agent and its peers prove of each other's votes, and what they doubt of them."""

    agreement: float
    vote_share: float
    num_votes: int

    @property
    def error(self) -> float:
        return (1 - self.agreement) / 2

    @property
    def doubt(self) -> float:
        return 1 - (self.num_votes * self.vote_share - 1) / (self.num_votes - 1)


def confident_disagreement(joint: Joint, agent: str) -> Found | None:
    """The agent and its peers are surer of their votes than their disagreement allows. No ground truth is needed.

    Where two votes differ, at most one is right: at agreement a, at least (1 - a) / 2 of the two agents' votes are wrong. The
    share they doubt themselves is 1 - s', where s' is the share of a vote's *other* rollouts that give its answer, (V s - 1) /
    (V - 1) for vote share s of V voting rollouts. Both are averaged over the agent's pairs and the fewest last steps that hold 80
    comparisons. An alarm when the proved error exceeds the doubt, is at least 0.1, and is to the doubt at least 1.3 times what it
    was in the run's first 80 comparisons. Not applicable to an agent alone or to one rollout.

    Agents that learn from peers grow sure as they come to agree; agents that learn from themselves grow sure alone.
    """
    now, first = _gap(joint, agent, reversed(joint.steps)), _gap(joint, agent, joint.first)
    if now is None or first is None or now.error < MIN_ERROR:
        return None
    if now.error <= now.doubt or now.error * first.doubt < GROWTH * first.error * now.doubt:
        return None
    text = (
        f"{agent} and its peers are sure of their votes (vote share {now.vote_share:.2f}, at the start {first.vote_share:.2f}) "
        f"but agree on {now.agreement:.0%} of the questions: at least {now.error:.0%} of these votes are wrong."
    )
    numbers = {"vote_share": now.vote_share, "agreement": now.agreement, "proved_error": now.error, "doubt": now.doubt}
    return Found(numbers | {"proved_error_first": first.error, "doubt_first": first.doubt}, text)


def _gap(joint: Joint, agent: str, steps: Iterable[JointStep]) -> Gap | None:
    """Over as many of the steps, in the order given, as hold MIN_COMPARED comparisons; None when they do not."""
    compared, agreements, shares = 0, [], []
    peers = [peer for peer in joint.agents if peer != agent]
    for step in steps:
        for peer in peers:
            agreement = step.metrics.get(f"agreement/{agent}.{peer}", step.metrics.get(f"agreement/{peer}.{agent}"))
            if agreement is not None and agent in step.shares and peer in step.shares:
                agreements.append(agreement)
                shares.append((step.shares[agent] + step.shares[peer]) / 2)
                compared += step.num_questions
        if compared >= MIN_COMPARED and joint.num_votes > 1:
            return Gap(fmean(agreements), fmean(shares), joint.num_votes)
    return None


def confident_fall(past: Past) -> Found | None:
    """Held-out majority accuracy has been more than 0.05 below its best for 2 evaluations in a row, with a vote share of at least
    0.9 in the steps before each: the agent is sure, and of the wrong thing. It sees what agents of one kind lock in together."""
    recent, best = list(past.evaluations)[-IN_A_ROW:], past.best
    if best is None or len(recent) < IN_A_ROW:
        return None
    majority = [evaluation.metrics.get("eval/majority_accuracy") for evaluation in recent]
    share = [evaluation.training.get("vote_share") for evaluation in recent]
    top = best.metrics["eval/majority_accuracy"]
    if any(value is None or not top - value > LOST for value in majority) or any(s is None or s < SURE for s in share):
        return None
    text = (
        f"The majority accuracy of {past.agent} on held-out questions was {top:.3f} at step {best.step} and is "
        f"{majority[-1]:.3f}, while its vote share rose to {share[-1]:.2f}: it is sure of wrong votes."
    )
    evidence = {"majority_accuracy_best": top, "best_step": best.step, "majority_accuracy": majority[-1], "vote_share": share[-1]}
    return Found(evidence, text)
