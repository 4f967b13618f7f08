"""One answer wins whatever is asked: every agent can agree on it, and every rollout that says it is rewarded.

Past as \\boxed{0} in self-labelled training (Co-rewarding, arXiv 2508.00410). No ground truth is needed.
"""

from collections import Counter
from collections.abc import Iterable

from corl_core.alarms.seen import Found, Line, Past

SHARE = 0.3
MIN_QUESTIONS = 20  # different ones that must have been asked


def constant_answer(past: Past) -> Found | None:
    """One answer holds more than 0.3 of the agent's votes on the different questions of the window, and more than it could by
    nature: twice its share in the first steps, at most half-way from there to 1. With four choices an answer that starts at 0.25
    must pass 0.5; with yes and no, 0.75. A question that was asked twice counts once, as it was answered last.
    """
    now = _shares(past.steps, MIN_QUESTIONS)
    if now is None:
        return None
    answer, share = max(now.items(), key=lambda item: item[1])
    first = (_shares(past.first, 1) or {}).get(answer, 0.0)
    limit = max(SHARE, min(2 * first, (1 + first) / 2))
    if share <= limit or past.steps[0] is past.first[0]:
        return None
    text = f"{past.agent} answers {_short(answer)} to {share:.0%} of different questions; at the start it was {first:.0%}."
    return Found({"answer": _short(answer), "share": share, "share_first": first, "limit": limit}, text)


def _shares(lines: Iterable[Line], least: int) -> dict[str, float] | None:
    """answer → its share of the votes on different questions; None for fewer than `least` of them."""
    votes = {
        question: vote
        for line in lines
        for question, vote in zip(line.get("questions", ()), line.get("votes", ()), strict=False)
        if vote is not None
    }
    if len(votes) < least:
        return None
    return {answer: count / len(votes) for answer, count in Counter(votes.values()).items()}


def _short(answer: str) -> str:
    return answer if len(answer) <= 40 else answer[:39] + "…"
