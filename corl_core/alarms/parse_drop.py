"""Answers that can no longer be read: votes then rest on few completions, or on none."""

from corl_core.alarms.seen import Found, Past, now_and_first

LEFT = 0.5  # of the parse rate at the start


def parse_drop(past: Past) -> Found | None:
    """The parse rate over the window is below 0.5 of its mean over the first steps. An agent that never gave a readable answer
    has nothing to lose and raises none here; it has no learning signal, which is an alarm of its own."""
    pair = now_and_first(past, "parse_rate")
    if pair is None or not pair[0] < LEFT * pair[1]:
        return None
    now, first = pair
    text = f"An answer can be read from {now:.0%} of the completions of {past.agent}; at the start it was {first:.0%}."
    return Found({"parse_rate": now, "parse_rate_first": first}, text)
