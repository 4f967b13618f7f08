"""Steps that teach nothing: no group of rollouts tells a better answer from a worse one."""

from corl_core.alarms.seen import MIN_STEPS, Found, Past, mean, now_and_first

WITHOUT = 0.9  # share of groups without learning signal
SATURATED = 0.9  # mean reward from which equal rewards mean that all is learned


def zero_signal(past: Past) -> Found | None:
    """More than 0.9 of the window's groups give no gradient, and not because everything is rewarded: the mean reward is below
    0.9, or absent since nothing is labelled, or it was like this from the first steps on (a reward that is always granted).

    Groups that are all right have no signal either, and that is how a run ends well; what is rewarded there may still be
    wrong, which is label lock-in's matter. No ground truth is needed.
    """
    without = mean(past.steps, "frac_reward_zero_std", MIN_STEPS)
    if without is None or not without > WITHOUT:
        return None
    reward, started = mean(past.steps, "reward"), now_and_first(past, "frac_reward_zero_std")
    from_the_start = started is not None and started[1] > WITHOUT
    if reward is not None and reward >= SATURATED and not from_the_start:
        return None
    why = "nothing is labelled" if reward is None else f"the mean reward is {reward:.2f}"
    text = f"{without:.0%} of the groups of {past.agent} give no learning signal, and {why}."
    return Found({"frac_reward_zero_std": without} | ({} if reward is None else {"reward": reward}), text)
