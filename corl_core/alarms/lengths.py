"""Completions that shrink to nothing, or that no longer end: both score while nobody reasons any more.

Past with Intuitor's self-certainty (short or endless texts are the surest) and with Co-rewarding; see its issues and methods in
arXiv 2505.19590 and 2508.00410. No ground truth is needed.
"""

from corl_core.alarms.seen import MIN_STEPS, Found, Past, mean, now_and_first

COLLAPSED = 0.3  # of the length at the start
CLIPPED = 0.5


def length_collapse(past: Past) -> Found | None:
    """Mean completion length over the window is below 0.3 of its mean over the first steps."""
    pair = now_and_first(past, "completions/mean_length")
    if pair is None or not pair[0] < COLLAPSED * pair[1]:
        return None
    now, first = pair
    text = f"Completions of {past.agent} have {now:.3g} tokens, and had {first:.3g} at the start: less than {COLLAPSED:g} of it."
    return Found({"mean_length": now, "mean_length_first": first}, text)


def length_blow_up(past: Past) -> Found | None:
    """More than half of the completions in the window were cut off at the longest allowed length. It is measured against no
    start: answers that are cut off are not read, so a run that begins like this needs more tokens."""
    now = mean(past.steps, "completions/clipped_ratio", MIN_STEPS)
    if now is None or not now > CLIPPED:
        return None
    text = f"{now:.0%} of the completions of {past.agent} are cut off at the longest allowed length, more than {CLIPPED:.0%}."
    return Found({"clipped_ratio": now}, text)
