"""Entropy collapse: an agent that samples one completion only can find no better one.

At about 4e-4 nats log-probabilities have been seen to turn into NaN (TRL issue 6166). No ground truth is needed.
"""

from corl_core.alarms.seen import MIN_STEPS, Found, Past, mean, now_and_first

LEFT = 0.1  # of the entropy at the start
FLOOR = 1e-3  # nats
SATURATED = 0.9  # mean reward from which certainty is what training was for


def entropy_collapse(past: Past) -> Found | None:
    """Mean token entropy over the window is below 0.1 of its mean over the first steps while the mean reward there is below 0.9,
    or it is below 1e-3 nats whatever the reward.

    An agent whose rollouts are nearly all rewarded has found the one answer to each question, and is certain for that reason: on
    the demo's healthy ring entropy ends at 0.05 to 0.1 of its start. Whether that answer is right is label lock-in's matter.
    Rewards that grow without bound (self-certainty) or stay below 0 (negative entropy) are held to the same 0.9.
    """
    now = mean(past.steps, "entropy", MIN_STEPS)
    if now is None:
        return None
    pair, reward = now_and_first(past, "entropy"), mean(past.steps, "reward")
    unrewarded = reward is None or reward < SATURATED
    if not (now < FLOOR or (pair is not None and now < LEFT * pair[1] and unrewarded)):
        return None
    first = mean(past.first, "entropy") or 0.0
    text = f"The token entropy of {past.agent} is {now:.2g} nats; at the start it was {first:.2g}."
    return Found({"entropy": now, "entropy_first": first} | ({} if reward is None else {"reward": reward}), text)
