"""Reward up, accuracy down: the agent learns to please its label, not to answer.

Reported of label-free training in rllm's and verl's issues (68.9 → 56.8 on AIME24 within 90 steps while the reward rose). The
held-out accuracy is ground truth, so without it this alarm is not applicable.
"""

from collections.abc import Sequence

from corl_core.alarms.seen import EVALUATIONS, Found, Past

FALL = 0.03  # of accuracy, over the evaluations looked at
RISE = 0.02  # of the reward, relative to its largest size among them


def reward_up_accuracy_down(past: Past) -> Found | None:
    """Over the last 4 evaluations the least-squares line of held-out accuracy falls by more than 0.03 from end to end, and that
    of the mean training reward (over the window of steps before each) rises by more than 0.02 of the largest |reward| there.
    Being relative, the rise reads rewards that are not 0 or 1 as well.
    """
    known = [e for e in past.evaluations if "eval/accuracy" in e.metrics and "reward" in e.training]
    if len(known) < EVALUATIONS:
        return None
    steps = [evaluation.step for evaluation in known]
    accuracy = [evaluation.metrics["eval/accuracy"] for evaluation in known]
    reward = [evaluation.training["reward"] for evaluation in known]
    fall, rise = -_change(steps, accuracy), _change(steps, reward)
    if not (fall > FALL and rise > RISE * max(map(abs, reward))):
        return None
    text = (
        f"Since step {steps[0]} the reward of {past.agent} rose from {reward[0]:.3f} to {reward[-1]:.3f} while its held-out "
        f"accuracy fell from {accuracy[0]:.3f} to {accuracy[-1]:.3f}."
    )
    return Found({"since": steps[0], "reward_change": rise, "accuracy_change": -fall}, text)


def _change(x: Sequence[float], y: Sequence[float]) -> float:
    """Rise of the least-squares line from the first x to the last; 0 when all x are one."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread if spread else 0.0
    return slope * (x[-1] - x[0])
